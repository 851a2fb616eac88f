"""Work that frees resources, such as killing a command or a sandbox.

Rules: this work is never refused, and the event loop never waits for it. Each call has its own
thread, so that a call that hangs does not delay others. Therefore the caller must hold a counted
place (a running command, a sandbox), and keep it until the call has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from wasmsand.serving.daemons import Daemons

log = logging.getLogger("wasmsand.serving")

_RETRY_SECONDS = 0.5


class Endings:
    """The running calls that free resources of one server."""

    def __init__(self, daemons: Daemons) -> None:
        self._daemons = daemons
        self._under_way: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._under_way)

    def run(self, call: Callable[[], object]) -> asyncio.Future[None]:
        """Run `call` on a thread. The future is done when the call has ended; an exception is
        logged."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)

        def work() -> None:
            try:
                call()
            except Exception as error:
                log.error("bug while freeing resources", exc_info=error)
            try:
                loop.call_soon_threadsafe(finish)
            except RuntimeError:
                pass  # the server has ended

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def start() -> None:
            try:
                self._daemons.start(work)
            except RuntimeError:  # the system cannot start a thread now: try again later
                loop.call_later(_RETRY_SECONDS, start)

        start()
        return done

    async def settle(self, seconds: float) -> bool:
        """Wait for all calls, for up to `seconds`. Returns whether all have ended."""
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=seconds)
        return not self._under_way
