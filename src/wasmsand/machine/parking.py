"""Waiting on the server: one thread parks until a wait queue wakes it.

Owns `Parker`, and `OneShot`, for the host's own waits. Rules: everything but the wait itself
happens under the sandbox's lock, so a wake-up between the decision to wait and the wait is never
lost.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine.lock import SandboxLock

_LONGEST_WAIT = 3600.0
"""A lock's timeout is bounded by the platform; waking early only costs a retry."""


class OneShot:
    """Something that happens once, and one thread's wait for it.

    As `threading.Event`, but of a single lock: a signal handler that raises in the middle of the
    wait leaves it as it was.
    """

    __slots__ = ("_gate", "happened")

    def __init__(self) -> None:
        self._gate = allocate_lock()
        self._gate.acquire()
        self.happened = False

    def set(self) -> None:
        """It has happened; idempotent, but not by two threads at once."""
        if not self.happened:
            self.happened = True
            self._gate.release()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it happens within this time."""
        return self.happened or self._gate.acquire(True, -1 if seconds is None else seconds)


class Parker:
    """One thread's place to wait."""

    __slots__ = ("_gate", "_kernel_lock", "_woken")

    def __init__(self, kernel_lock: SandboxLock) -> None:
        self._kernel_lock = kernel_lock
        self._gate = allocate_lock()
        self._gate.acquire()
        self._woken = False

    def wake(self) -> None:
        """End the current wait; called under the kernel's lock."""
        if not self._woken:
            self._woken = True
            self._gate.release()

    def park(self, queues: tuple[WaitQueue, ...], deadline: int | None) -> None:
        """Release the lock, wait for a wake-up or the deadline, take the lock again."""
        self._woken = False
        wake = self.wake
        for queue in queues:
            queue.add(wake)
        self._kernel_lock.release()
        try:
            if deadline is None:
                self._gate.acquire()
                got = True
            else:
                seconds = max(0.0, (deadline - time.monotonic_ns()) / 1e9)
                got = self._gate.acquire(True, min(seconds, _LONGEST_WAIT))
        finally:
            try:
                self._kernel_lock.take_again()
            finally:
                for queue in queues:
                    queue.remove(wake)
        if self._woken and not got:
            self._gate.acquire()  # the wake-up came after the deadline: use it up
