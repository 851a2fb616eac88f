"""Whose turn it is: which thread of a process runs.

Owns `Turn`, one per process that has threads. Rules: only the thread that has the turn runs
the program; it passes it on when it waits, when it yields, at an engine tick if others want
it, and at its end; who asked first is next. Everything but the wait itself happens under the
sandbox's lock.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from collections import deque
from collections.abc import Callable
from typing import Final

from wasmsand.machine.lock import SandboxLock

_PATIENCE_SECONDS: Final = 0.01


class Turn:
    """The right to run the program of one process."""

    __slots__ = ("_interrupt", "_lock", "_taken", "_waiting")

    def __init__(self, lock: SandboxLock, interrupt: Callable[[], None]) -> None:
        """The caller has it. `interrupt` makes whoever computes tick at once."""
        self._lock = lock
        self._interrupt = interrupt
        self._waiting: deque[LockType] = deque()
        self._taken = True

    @property
    def wanted(self) -> bool:
        """Whether others wait for it."""
        return bool(self._waiting)

    def ask(self) -> LockType:
        """A place in the queue, for a thread that will `take` the turn; another one has it."""
        gate = allocate_lock()
        gate.acquire()
        self._waiting.append(gate)
        return gate

    def take(self, place: LockType | None = None) -> None:
        """Wait for the turn; the lock is free meanwhile."""
        if place is None and self._taken:
            place = self.ask()
        if place is not None:
            self._lock.release()
            if not place.acquire(timeout=_PATIENCE_SECONDS):
                self._interrupt()  # ticks are far apart after everybody has waited for a while
                place.acquire()
            self._lock.acquire()
        self._taken = True

    def give(self) -> None:
        """Let the next one run."""
        if self._waiting:
            self._waiting.popleft().release()
        else:
            self._taken = False
