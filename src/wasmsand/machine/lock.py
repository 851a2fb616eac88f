"""The one lock of a sandbox.

Owns `SandboxLock`, which guards all kernel state of one sandbox. Rules: it is held for a
bounded amount of work, never while a guest computes or anybody waits; the host comes before
guests: a guest that has more to do in the same call lets the host's operations, a kill among
them, take the lock first. Python's locks are not fair, so without that rule a guest that
releases the lock and takes it again at once could keep everybody else out.
"""

from __future__ import annotations

import time
from _thread import allocate_lock
from types import TracebackType
from typing import Final

_PAUSE_SECONDS: Final = 0.0001
_PATIENCE_SECONDS: Final = 1.0
"""A host that has waited for that long has lost its thread; guests go on."""


class SandboxLock:
    """A lock that the host takes by `with`, and guests by `acquire` and `release`."""

    __slots__ = ("_waiting", "acquire", "release")

    def __init__(self) -> None:
        lock = allocate_lock()
        # The lock's own methods: a call of Python in between would cost every system call.
        self.acquire = lock.acquire
        self.release = lock.release
        self._waiting: list[None] = []
        """An entry for each thread of the host that waits; appending and popping are atomic."""

    def __enter__(self) -> None:
        if not self.acquire(False):
            self._waiting.append(None)
            try:
                self.acquire()
            finally:
                self._waiting.pop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def give_way(self) -> None:
        """Let go of the lock for a moment, for as long as the host wants it; take it again."""
        self.release()
        if self._waiting:
            until = time.monotonic() + _PATIENCE_SECONDS
            while self._waiting and time.monotonic() < until:
                time.sleep(_PAUSE_SECONDS)
        self.acquire()
