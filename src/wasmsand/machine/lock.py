"""The one lock of a sandbox.

Owns `SandboxLock`, which guards all kernel state of one sandbox. Rules: it is held for a
bounded amount of work, never while a guest computes or anybody waits; the host comes before
guests: a guest that has more to do in the same call lets the host's operations, a kill among
them, take the lock first. Python's locks are not fair, so without that rule a guest that
releases the lock and takes it again at once could keep everybody else out.

A signal handler of the host (Ctrl-C) can raise between any two steps of the main thread, also in
the middle of taking or releasing the lock. So the lock knows its holder: what an operation that
was broken off has left is taken back by the next one.
"""

from __future__ import annotations

import time
from _thread import RLock
from collections.abc import Callable
from types import TracebackType
from typing import Final

_PAUSE_SECONDS: Final = 0.0001
_PATIENCE_SECONDS: Final = 1.0
"""A host that has waited for that long has lost its thread; guests go on."""


class SandboxLock:
    """A lock that the host takes by `with`, and guests by `acquire` and `release`."""

    __slots__ = ("_waiting", "acquire", "is_mine", "release")

    def __init__(self) -> None:
        lock = RLock()
        # The lock's own methods: a call of Python in between would cost every system call.
        self.acquire = lock.acquire
        self.release = lock.release
        self.is_mine: Callable[[], bool] = lock._is_owned  # type: ignore[attr-defined]
        self._waiting: list[None] = []
        """An entry for each thread of the host that waits; appending and popping are atomic."""

    def __enter__(self) -> None:
        if self.is_mine():  # nobody takes it twice: it was left by an operation broken off
            return
        try:
            if not self.acquire(False):
                try:
                    self._waiting.append(None)
                    self.acquire()
                finally:
                    if self._waiting:
                        self._waiting.pop()
        except BaseException:
            self.release_mine()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_mine():
            self.release()

    def release_mine(self) -> None:
        """Release the lock, if this thread has it."""
        if self.is_mine():
            self.release()

    def take_again(self) -> None:
        """Take the lock, whatever signal handlers raise meanwhile; that is raised then."""
        interruption: BaseException | None = None
        while not self.is_mine():
            try:
                self.acquire()
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption

    def give_way(self) -> None:
        """Let go of the lock for a moment, for as long as the host wants it; take it again."""
        self.release()
        if self._waiting:
            until = time.monotonic() + _PATIENCE_SECONDS
            while self._waiting and time.monotonic() < until:
                time.sleep(_PAUSE_SECONDS)
        self.acquire()
