"""Quotas of a worker, which also asks the front process.

Owns `WorkerQuotas`. Rules: used on the event loop only; a thread makes the calls, in order. The
worker's own counts are a second check, and what its metrics show.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any

from wasmsand.http.quotas import Quotas
from wasmsand.http.tokens import Token
from wasmsand.http.workers.channel import Caller

_NOTHING = ""
"""A call that only has its place in the order."""
_Call = tuple[str, dict[str, Any], "asyncio.Future[None] | None"]


class WorkerQuotas(Quotas):
    """What the sandboxes of one worker use."""

    def __init__(self, max_sandboxes: int, ledger: Caller) -> None:
        super().__init__(max_sandboxes)
        self._ledger = ledger
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="wasmsand-ledger", daemon=True).start()

    def _work(self) -> None:
        while True:
            name, values, done = self._calls.get()
            error: Exception | None = None
            try:
                if name != _NOTHING:
                    self._ledger.call(name, **values)
            except Exception as raised:
                error = raised
            if done is not None:
                try:
                    done.get_loop().call_soon_threadsafe(_tell, done, error)
                except RuntimeError:
                    return  # the event loop has ended

    async def _ask(self, name: str, undo: str, owner: Token, size: int, identity: str) -> None:
        """Wait for an answer. If the caller is cancelled, a granted reservation is undone."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        values = {"owner": owner.name, "size": size, "identity": identity}
        self._calls.put((name, values, done))
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            done.add_done_callback(
                lambda late: None if late.exception() else self._tell(undo, owner, size)
            )
            raise

    async def settled(self) -> None:
        """See `Quotas`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls.put((_NOTHING, {}, done))
        await done

    def _tell(self, name: str, owner: Token, size: int) -> None:
        self._calls.put((name, {"owner": owner.name, "size": size}, None))

    async def reserve(self, owner: Token, size: int, identity: str) -> None:
        """See `Quotas`."""
        super().reserve_sandbox(owner, size)
        try:
            await self._ask("reserve", "release", owner, size, identity)
        except BaseException:
            super().release_sandbox(owner, size)
            raise

    async def reserve_snapshot(self, owner: Token, size: int, identity: str) -> None:
        """See `Quotas`."""
        super().reserve_bytes(owner, size)
        try:
            await self._ask("reserve_snapshot", "release_bytes", owner, size, identity)
        except BaseException:
            super().release_bytes(owner, size)
            self.forget(identity)
            raise

    def release_sandbox(self, owner: Token, size: int) -> None:
        """See `Quotas`."""
        super().release_sandbox(owner, size)
        self._tell("release", owner, size)

    def release_bytes(self, owner: Token, size: int) -> None:
        """See `Quotas`."""
        super().release_bytes(owner, size)
        if size:
            self._tell("release_bytes", owner, size)

    def forget(self, identity: str) -> None:
        """See `Quotas`."""
        self._calls.put(("forget", {"identity": identity}, None))


def _tell(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
        done.exception()  # the caller may be gone
