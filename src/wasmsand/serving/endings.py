"""Work that frees something: killing a command, ending a sandbox.

Rules: it is never refused, because nobody else would do it, and the event loop never waits
for it. Each call has a thread of its own, because one that hangs must not hold up another. So
whoever asks for it must hold a place that is counted (a running command, a sandbox), and keep
it until the call is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from wasmsand.serving.daemons import Daemons

log = logging.getLogger("wasmsand.serving")

_RETRY_SECONDS = 0.5


class Endings:
    """Such work of one server."""

    def __init__(self, daemons: Daemons) -> None:
        self._daemons = daemons
        self._under_way: set[asyncio.Future[None]] = set()

    def __len__(self) -> int:
        return len(self._under_way)

    def run(self, call: Callable[[], object]) -> asyncio.Future[None]:
        """Run `call` on a thread; the result is done when it is. What it raises is logged."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._under_way.add(done)
        done.add_done_callback(self._under_way.discard)

        def work() -> None:
            try:
                call()
            except Exception as error:
                log.error("bug while something was ended", exc_info=error)
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
            except RuntimeError:  # the system has no thread left; it will
                loop.call_later(_RETRY_SECONDS, start)

        start()
        return done

    async def settle(self, seconds: float) -> bool:
        """Wait until all is done, at most so long; whether it is."""
        if self._under_way:
            await asyncio.wait(set(self._under_way), timeout=seconds)
        return not self._under_way
