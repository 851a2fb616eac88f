"""Turns: which thread of a process runs.

Owns `Turn`, one per process with threads. Rules: only the thread that has the turn runs the
program. It passes the turn on when it waits, when it yields, at an engine tick if others wait for
the turn, and at its end. Waiting threads are served in order. Everything except the wait itself
happens under the sandbox's lock.
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
        """The caller has the turn. `interrupt` makes computing guests tick at once."""
        self._lock = lock
        self._interrupt = interrupt
        self._waiting: deque[LockType] = deque()
        self._taken = True

    @property
    def wanted(self) -> bool:
        """Whether other threads wait for the turn."""
        return bool(self._waiting)

    def ask(self) -> LockType:
        """Join the queue on behalf of a thread that will call `take`; another thread has the
        turn."""
        gate = allocate_lock()
        gate.acquire()
        self._waiting.append(gate)
        return gate

    def take(self, place: LockType | None = None) -> None:
        """Wait for the turn; the lock is released meanwhile."""
        if place is None and self._taken:
            place = self.ask()
        if place is not None:
            self._lock.release()
            self._lock.wake_postponed()
            if not place.acquire(timeout=_PATIENCE_SECONDS):
                self._interrupt()  # after an idle period, ticks are far apart
                place.acquire()
            self._lock.acquire()
        self._taken = True

    def give(self) -> None:
        """Pass the turn to the next thread."""
        if self._waiting:
            self._waiting.popleft().release()
        else:
            self._taken = False
