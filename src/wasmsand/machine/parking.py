"""Waiting on the server: one thread parks until a wait queue wakes it.

Owns `Parker`, and `OneShot`, for the host's own waits. Rules: everything but the wait itself
happens under the sandbox's lock, so a wake-up between the decision to wait and the wait is never
lost; deadlines are times of the sandbox's monotonic clock.
"""

from __future__ import annotations

from _thread import allocate_lock

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine.lock import SandboxLock

_LONGEST_WAIT = 3600.0
"""A lock's timeout is bounded by the platform; waking early only costs a retry."""


class OneShot:
    """Something that happens once, and one thread's wait for it.

    As `threading.Event`, but of a single lock: a signal handler that raises in the middle of the
    wait leaves it as it was. An open gate means that the waiting thread has to look again.
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
            self._open()

    def wait(self, clock: Clock | None = None, deadline: int | None = None) -> bool:
        """Whether it happens before `deadline` of `clock`; without one, wait for it."""
        while not self.happened:
            if clock is None or deadline is None:
                self._gate.acquire()
                continue
            seconds = clock.host_seconds(deadline)
            if seconds is None:
                self._wait_for_jump(clock, deadline)
            elif seconds:
                self._gate.acquire(True, min(seconds, _LONGEST_WAIT))
            else:
                return False
        return True

    def _wait_for_jump(self, clock: Clock, deadline: int) -> None:
        clock.follow(self._open)
        try:
            if clock.host_seconds(deadline) is None:  # nor has it jumped just now
                self._gate.acquire()
        finally:
            clock.unfollow(self._open)

    def _open(self) -> None:
        try:
            self._gate.release()
        except RuntimeError:
            pass  # it is open already


class Parker:
    """One thread's place to wait."""

    __slots__ = ("_clock", "_gate", "_is_timed", "_kernel_lock", "_woken")

    def __init__(self, kernel_lock: SandboxLock, clock: Clock) -> None:
        self._kernel_lock = kernel_lock
        self._clock = clock
        self._gate = allocate_lock()
        self._gate.acquire()
        self._woken = False
        self._is_timed = False
        """Whether the thread waits for a deadline."""

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
        if deadline is not None:
            self._is_timed = True
            self._clock.follow(self._clock_jumped)
        self._kernel_lock.release()
        try:
            if deadline is None:
                self._gate.acquire()
                got = True
            else:
                seconds = self._clock.host_seconds(deadline)
                longest = _LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT)
                got = self._gate.acquire(True, longest)
        finally:
            try:
                self._kernel_lock.take_again()
            finally:
                for queue in queues:
                    queue.remove(wake)
                if deadline is not None:
                    self._is_timed = False
                    self._clock.unfollow(self._clock_jumped)
        if self._woken and not got:
            self._gate.acquire()  # the wake-up came after the deadline: use it up

    def _clock_jumped(self) -> None:
        with self._kernel_lock:
            if self._is_timed:
                self.wake()
