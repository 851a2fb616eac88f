"""Waiting on threads: a thread parks until a wait queue wakes it.

Owns `Gate`, at which a thread waits, `Parker`, which waits for queues of the kernel, and `OneShot`,
an event for host threads.
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


class Gate:
    """One thread waits here until another one opens the gate; then it is closed again."""

    __slots__ = ("_is_waiting", "_lock", "_pinned_from", "host_thread")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self.host_thread: int | None = None
        """The native ID of the thread, if `open_here` is to pin it: see `CallerPlace`."""
        self._is_waiting = False
        """Whether the thread waits. It is pinned only then, because `wait` undoes that."""
        self._pinned_from: set[int] | None = None
        """The processors that it may use, if it is pinned."""

    def open(self) -> None:
        """Let the thread pass. Does nothing if the gate is open already."""
        try:
            self._lock.release()
        except RuntimeError:
            pass

    def open_here(self) -> None:
        """Like `open`; the thread runs on the processor that the calling one is about to leave."""
        if self._is_waiting and self.host_thread is not None:
            self._pinned_from = pin_here(self.host_thread)
        self.open()

    def wait(self, seconds: float = -1.0) -> bool:
        """Wait until the gate is open. False if that takes longer than `seconds`."""
        self._is_waiting = True
        try:
            return self._lock.acquire(True, seconds)
        finally:
            self._is_waiting = False
            if self._pinned_from is not None:
                unpin_this_thread(self._pinned_from)
                self._pinned_from = None


class OneShot:
    """An event that happens once, and one thread's wait for it.

    Like `threading.Event`, but made of a single lock: a signal handler that raises during the wait
    leaves it intact. An open gate means that the waiting thread has to check again.
    """

    __slots__ = ("gate", "happened")

    def __init__(self) -> None:
        self.gate = Gate()
        self.happened = False

    def set(self) -> None:
        """The event happens. Idempotent."""
        if not self.happened:
            self.happened = True
            self.gate.open()

    def wait(self, clock: Clock | None = None, deadline: int | None = None) -> bool:
        """Wait for the event, until `deadline` on `clock` if given. True if it happened."""
        while not self.happened:
            if clock is None or deadline is None:
                self.gate.wait()
                continue
            seconds = clock.host_seconds(deadline)
            if seconds is None:
                self._wait_for_jump(clock, deadline)
            elif seconds:
                self.gate.wait(min(seconds, _LONGEST_WAIT))
            else:
                return False
        return True

    def _wait_for_jump(self, clock: Clock, deadline: int) -> None:
        clock.follow(self.gate.open)
        try:
            if clock.host_seconds(deadline) is None:  # it has not jumped meanwhile
                self.gate.wait()
        finally:
            clock.unfollow(self.gate.open)


class Parker:
    """Lets one thread wait."""

    __slots__ = ("_clock", "_is_late", "_is_timed", "_kernel_lock", "_woken", "gate", "place")

    def __init__(self, kernel_lock: SandboxLock, clock: Clock) -> None:
        self._kernel_lock = kernel_lock
        self._clock = clock
        self.gate = Gate()
        self._woken = False
        self._is_late = False
        """Whether the gate is not open yet, although the thread counts as woken."""
        self._is_timed = False
        """Whether the thread waits with a deadline."""
        self.place: Place | None = None
        """Where the thread runs, if it is a guest's."""

    def wake(self) -> None:
        """End the current wait. Needs the sandbox's lock."""
        if self._kernel_lock.postpones:
            self.wake_soon()
        elif not self._woken:
            self._woken = True
            self.gate.open()
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
            self.gate.open()

    def wake_soon(self) -> None:
        """Like `wake`, but not before the calling thread is about to wait itself, ends its guest's
        program, or computes for more than a tick. Needs the sandbox's lock."""
        if not self._woken:
            self._woken = True
            if self.place is not None:
                self.place.come_here()
            self._kernel_lock.postponed.append(self.gate.open_here)

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
        self._kernel_lock.release()
        try:
            if self._kernel_lock.postponed:
                self._kernel_lock.wake_postponed()
            if deadline is None:
                got = self.gate.wait()
            else:
                seconds = self._clock.host_seconds(deadline)
                longest = _LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT)
                got = self.gate.wait(longest)
        finally:
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
            self.gate.wait()  # consume a wake-up that came after the deadline

    def _clock_jumped(self) -> None:
        with self._kernel_lock:
            if self._is_timed:
                self.wake()
