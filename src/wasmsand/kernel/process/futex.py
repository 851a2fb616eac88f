"""futex: sleeping on an address until another thread wakes it.

Owns the queues of threads that wait on an address. Rules: addresses belong to one process, because
processes share no memory. The word is compared under the sandbox's lock, so no wake-up is lost. A
waiter is in exactly one queue until it is woken or gives up.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.call_state import HeldByCall
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.wait import WaitQueue, WouldBlock


class FutexWait(HeldByCall):
    """One thread that sleeps on a futex."""

    __slots__ = ("_waiting", "address", "bits", "queue", "woken")

    def __init__(self, waiting: dict[int, list[FutexWait]], address: int, bits: int) -> None:
        """`waiting` holds all sleeping threads of the process, by address."""
        self._waiting = waiting
        self.address = address
        self.bits = bits
        self.queue = WaitQueue()
        self.woken = False
        self._enter()

    def wake(self) -> None:
        """Wake the thread."""
        self._leave()
        self.woken = True
        self.queue.wake()

    def move(self, address: int) -> None:
        """Make the thread sleep on another address."""
        self._leave()
        self.address = address
        self._enter()

    def abandon(self) -> None:
        """A signal, a timeout or the thread's end finished the wait."""
        if not self.woken:
            self._leave()

    def _enter(self) -> None:
        self._waiting.setdefault(self.address, []).append(self)

    def _leave(self) -> None:
        queue = self._waiting[self.address]
        queue.remove(self)
        if not queue:
            del self._waiting[self.address]


def wait(thread: Thread, address: int, bits: int, now: int, deadline: int | None) -> None:
    """Wait to be woken. The caller compares the word before the first attempt. Raises `WouldBlock`
    until the thread is woken, and ETIMEDOUT."""
    waiting = thread.call.progress
    if isinstance(waiting, FutexWait) and waiting.woken:
        return
    if deadline is not None and now >= deadline:
        raise KernelError(Errno.ETIMEDOUT)
    if not isinstance(waiting, FutexWait):
        waiting = thread.call.progress = FutexWait(thread.process.futexes, address, bits)
    raise WouldBlock((waiting.queue,), deadline)


def wake(process: Process, address: int, count: int, bits: int) -> int:
    """Wake up to `count` threads that wait for any of `bits`. Returns how many."""
    woken = 0
    for waiting in list(process.futexes.get(address, ())):
        if woken >= count:
            break
        if waiting.bits & bits:
            waiting.wake()
            woken += 1
    return woken


def requeue(process: Process, address: int, count: int, to: int, moved_max: int) -> tuple[int, int]:
    """Wake some threads, and move others to the address `to`. Returns how many of each."""
    woken = wake(process, address, count, -1)
    moving = process.futexes.get(address, [])[:moved_max]
    for waiting in moving:
        waiting.move(to)
    return woken, len(moving)
