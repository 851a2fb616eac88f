"""Waiting on threads: a thread parks until a wait queue wakes it.

Owns `Parker`, which waits for queues of the kernel, and `OneShot`, an event for host threads.
Rules: for a `Parker`, everything except the wait itself happens under the sandbox's lock, so a
wake-up between the decision to wait and the wait is not lost. Deadlines are times of the sandbox's
monotonic clock.
"""

from __future__ import annotations

from _thread import allocate_lock

from wasmsand.engine.placement import Place, pin_here, unpin_this_thread
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine.lock import SandboxLock

_LONGEST_WAIT = 3600.0
"""Platforms bound a lock's timeout. Waking up early only costs a retry."""


class OneShot:
    """An event that happens once, and one thread's wait for it.

    Like `threading.Event`, but made of a single lock: a signal handler that raises during the wait
    leaves it intact. An open gate means that the waiting thread has to check again.
    """

    __slots__ = ("_gate", "happened")

    def __init__(self) -> None:
        self._gate = allocate_lock()
        self._gate.acquire()
        self.happened = False

    def set(self) -> None:
        """The event happens. Idempotent, but two threads must not call it at once."""
        if not self.happened:
            self.happened = True
            self._open()

    def wait(self, clock: Clock | None = None, deadline: int | None = None) -> bool:
        """Wait for the event, until `deadline` on `clock` if given. True if it happened."""
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
            if clock.host_seconds(deadline) is None:  # it has not jumped meanwhile
                self._gate.acquire()
        finally:
            clock.unfollow(self._open)

    def _open(self) -> None:
        try:
            self._gate.release()
        except RuntimeError:
            pass  # already open


class Parker:
    """Lets one thread wait."""

    __slots__ = (
        "_clock",
        "_gate",
        "_is_late",
        "_is_parked",
        "_is_timed",
        "_kernel_lock",
        "_pinned_from",
        "_woken",
        "host_thread",
        "place",
    )

    def __init__(self, kernel_lock: SandboxLock, clock: Clock) -> None:
        self._kernel_lock = kernel_lock
        self._clock = clock
        self._gate = allocate_lock()
        self._gate.acquire()
        self._woken = False
        self._is_late = False
        """Whether the gate is not open yet, although the thread counts as woken."""
        self._is_timed = False
        """Whether the thread waits with a deadline."""
        self.place: Place | None = None
        """Where the thread runs, if it is a guest's."""
        self.host_thread: int | None = None
        """The native ID of the thread, if it is one of the host that is to be pinned while it wakes
        up: see `CallerPlace`."""
        self._is_parked = False
        """Whether that thread waits. Only then it may be pinned, so that it is never left so."""
        self._pinned_from: set[int] | None = None
        """The processors that it may use, if it is pinned."""

    def wake(self) -> None:
        """End the current wait. Needs the sandbox's lock."""
        if self._kernel_lock.postpones:
            self.wake_soon()
        elif not self._woken:
            self._woken = True
            self._gate.release()
        elif self._is_late:
            self._open_late()

    def wake_later(self) -> None:
        """Like `wake`; but if the calling thread is a guest's, not before it is about to wait
        itself, ends its guest's program, or computes for more than a tick. Needs the sandbox's
        lock."""
        if self._kernel_lock.held_by_host:
            self.wake()
        elif not self._woken:
            self._woken = self._is_late = True
            self._kernel_lock.postponed.append(self._open_late)

    def _open_late(self) -> None:
        """Needs no lock: if two threads do this at once, the thread wakes once too often, which
        only costs a retry."""
        if self._is_late:
            self._is_late = False
            try:
                self._gate.release()
            except RuntimeError:
                pass  # already open

    def wake_soon(self) -> None:
        """Like `wake`, but not before the calling thread is about to wait itself, ends its guest's
        program, or computes for more than a tick. Needs the sandbox's lock."""
        if not self._woken:
            self._woken = True
            if self.place is not None:
                self.place.come_here()
            open_gate = self._gate.release if self.host_thread is None else self._open_here
            self._kernel_lock.postponed.append(open_gate)

    def _open_here(self) -> None:
        """Wake the thread on the processor that the calling one is about to leave."""
        if self._is_parked and self.host_thread is not None:
            self._pinned_from = pin_here(self.host_thread)
        self._gate.release()

    def park(self, queues: tuple[WaitQueue, ...], deadline: int | None) -> None:
        """Release the lock, wait for a wake-up or the deadline, and take the lock again."""
        self._woken = False
        wake = self.wake
        for queue in queues:
            queue.add(wake, self.wake_later)
        if deadline is not None:
            self._is_timed = True
            self._clock.follow(self._clock_jumped)
        of_host = self._kernel_lock.held_by_host
        self._kernel_lock.held_by_host = False
        self._is_parked = True
        self._kernel_lock.release()
        try:
            if self._kernel_lock.postponed:
                self._kernel_lock.wake_postponed()
            if deadline is None:
                self._gate.acquire()
                got = True
            else:
                seconds = self._clock.host_seconds(deadline)
                longest = _LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT)
                got = self._gate.acquire(True, longest)
        finally:
            self._is_parked = False
            if self._pinned_from is not None:
                unpin_this_thread(self._pinned_from)
                self._pinned_from = None
            try:
                self._kernel_lock.take_again()
            finally:
                self._kernel_lock.held_by_host = of_host
                for queue in queues:
                    queue.remove(wake)
                if deadline is not None:
                    self._is_timed = False
                    self._clock.unfollow(self._clock_jumped)
        if self._woken and not got:
            self._kernel_lock.wake_postponed()
            self._gate.acquire()  # consume a wake-up that came after the deadline

    def _clock_jumped(self) -> None:
        with self._kernel_lock:
            if self._is_timed:
                self.wake()
