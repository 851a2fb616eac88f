"""futex: sleeping until another thread wakes the sleeper.

Owns the queues of those who wait for an address. Rules: addresses are of one process (no memory is
shared between processes); the word is compared with what the caller saw under the sandbox's lock,
so no wake-up is lost; a waiter is in exactly one queue until it is woken or gives up.
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
        """`waiting` has all that sleep in the same process, by address."""
        self._waiting = waiting
        self.address = address
        self.bits = bits
        self.queue = WaitQueue()
        self.woken = False
        self._enter()

    def wake(self) -> None:
        """Let it go on."""
        self._leave()
        self.woken = True
        self.queue.wake()

    def move(self, address: int) -> None:
        """Let it sleep on another address."""
        self._leave()
        self.address = address
        self._enter()

    def abandon(self) -> None:
        """Its wait was ended by a signal, by its time limit or by death."""
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
    """Wait to be woken. The caller has compared the word if this is the first try; raises
    `WouldBlock` until a waker came, and ETIMEDOUT."""
    waiting = thread.call.progress
    if isinstance(waiting, FutexWait) and waiting.woken:
        return
    if deadline is not None and now >= deadline:
        raise KernelError(Errno.ETIMEDOUT)
    if not isinstance(waiting, FutexWait):
        waiting = thread.call.progress = FutexWait(thread.process.futexes, address, bits)
    raise WouldBlock((waiting.queue,), deadline)


def wake(process: Process, address: int, count: int, bits: int) -> int:
    """Wake up to `count` of those who wait for one of `bits`; how many."""
    woken = 0
    for waiting in list(process.futexes.get(address, ())):
        if woken >= count:
            break
        if waiting.bits & bits:
            waiting.wake()
            woken += 1
    return woken


def requeue(process: Process, address: int, count: int, to: int, moved_max: int) -> tuple[int, int]:
    """Wake some, and let others wait for `to` instead; how many of each."""
    woken = wake(process, address, count, -1)
    moving = process.futexes.get(address, [])[:moved_max]
    for waiting in moving:
        waiting.move(to)
    return woken, len(moving)
