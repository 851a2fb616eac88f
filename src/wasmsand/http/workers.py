"""Bounded threads for calls that block.

Rules: the event loop never waits for a sandbox; a pool has so many threads and so many
waiting calls, and a further call is refused at once, because a queue that only grows
helps nobody; neither does one wait for longer than its client will. A call that nobody
waits for any more still occupies its place until it ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


QUEUE_SECONDS = 20.0
"""How long a call waits for a thread."""


class PoolFull(Exception):
    """Every thread is taken, and enough calls wait, or this one did for long enough."""


class Workers:
    """One pool."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self.name = name
        self._places = threads + waiting
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"wasmsand-{name}")
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        """Calls that run or wait."""
        return self._taken

    async def run(self, call: Callable[[], Result]) -> Result:
        """What `call` returns or raises, from a thread of the pool. Raises `PoolFull`."""
        with self._lock:
            if self._taken >= self._places:
                raise PoolFull(self.name)
            self._taken += 1
        future = self._executor.submit(call)
        future.add_done_callback(self._free)
        result = asyncio.wrap_future(future)
        try:
            done, _ = await asyncio.wait({result}, timeout=QUEUE_SECONDS)
            if not done and future.cancel():  # which it cannot be once it runs
                raise PoolFull(self.name)
            return await result
        except asyncio.CancelledError:
            result.cancel()
            raise

    def _free(self, _future: object) -> None:
        with self._lock:
            self._taken -= 1

    def close(self) -> None:
        """Take no further calls; those that run go on, those that wait are dropped."""
        self._executor.shutdown(wait=False, cancel_futures=True)
