"""futex: sleeping until another thread wakes the sleeper.

Owns the queues of those who wait for an address. Rules: addresses are of one process (no memory is
shared between processes); the word is compared with what the caller saw under the sandbox's lock,
so no wake-up is lost; a waiter is in exactly one queue until it is woken or gives up.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.process import FutexWait, Process
from wasmsand.kernel.wait import WouldBlock


def wait(process: Process, address: int, bits: int, now: int, deadline: int | None) -> None:
    """Wait to be woken. The caller has compared the word if this is the first try; raises
    `WouldBlock` until a waker came, and ETIMEDOUT."""
    waiting = process.futex_wait
    if waiting is None:
        waiting = process.futex_wait = FutexWait(address, bits)
        process.futexes.setdefault(address, []).append(waiting)
    elif waiting.woken:
        process.futex_wait = None
        return
    if deadline is not None and now >= deadline:
        abandon(process)
        raise KernelError(Errno.ETIMEDOUT)
    raise WouldBlock((waiting.queue,), deadline)


def abandon(process: Process) -> None:
    """A wait ended by a signal, by its time limit or by death."""
    waiting = process.futex_wait
    process.futex_wait = None
    if waiting is not None and not waiting.woken:
        _remove(process, waiting)


def wake(process: Process, address: int, count: int, bits: int) -> int:
    """Wake up to `count` of those who wait for one of `bits`; how many."""
    woken = 0
    for waiting in list(process.futexes.get(address, ())):
        if woken >= count:
            break
        if waiting.bits & bits:
            _remove(process, waiting)
            waiting.woken = True
            waiting.queue.wake()
            woken += 1
    return woken


def requeue(process: Process, address: int, count: int, to: int, moved_max: int) -> tuple[int, int]:
    """Wake some, and let others wait for `to` instead; how many of each."""
    woken = wake(process, address, count, -1)
    moving = process.futexes.get(address, [])[:moved_max]
    for waiting in moving:
        _remove(process, waiting)
        waiting.address = to
        process.futexes.setdefault(to, []).append(waiting)
    return woken, len(moving)


def _remove(process: Process, waiting: FutexWait) -> None:
    queue = process.futexes[waiting.address]
    queue.remove(waiting)
    if not queue:
        del process.futexes[waiting.address]
