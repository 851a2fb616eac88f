"""Threads: creation, exit, tids, futexes.

Owns the calls of a thread's life, and `futex`. Rules: the futex word is read under the sandbox's
lock; the deadline of a wait is fixed at its first attempt.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process import futex as futexes

_CLONE_REQUIRED: Final = 0x10000 | 0x800 | 0x400 | 0x200 | 0x100
"""A thread shares memory, files, working directory and signal actions."""
_CLONE_PARENT_SETTID: Final = 0x100000
_CLONE_CHILD_CLEARTID: Final = 0x200000
_CLONE_CHILD_SETTID: Final = 0x1000000

_PRIVATE: Final = 128
_CLOCK_REALTIME: Final = 256
_WAIT, _WAKE, _REQUEUE, _CMP_REQUEUE, _WAIT_BITSET, _WAKE_BITSET = 0, 1, 3, 4, 9, 10
_ANY: Final = 0xFFFF_FFFF
_COUNT_MAX: Final = 0x7FFF_FFFF


def clone(context: CallContext, flags: int, stack: int, parent_tid: int, child_tid: int) -> int:
    """clone(2) of a thread, which starts at `__thread_start(stack)`."""
    if flags & _CLONE_REQUIRED != _CLONE_REQUIRED or not stack or stack % 16:
        raise KernelError(Errno.EINVAL)
    memory = context.memory
    memory.require(stack, 4)
    told = [parent_tid] if flags & _CLONE_PARENT_SETTID else []
    told += [child_tid] if flags & _CLONE_CHILD_SETTID else []
    for address in told:
        memory.require(address, 4)
    thread = context.start_thread(stack)
    if flags & _CLONE_CHILD_CLEARTID:
        thread.clear_tid = child_tid
    for address in told:
        memory.write_u32(address, thread.tid)
    return thread.tid


def exit_thread(context: CallContext, code: int) -> int:
    """exit(2) of the calling thread; the last thread ends the process."""
    return context.end_thread((code & 0xFF) << 8)


def gettid(context: CallContext) -> int:
    """gettid(2)."""
    return context.thread.tid


def set_tid_address(context: CallContext, address: int) -> int:
    """set_tid_address(2): the word to clear and wake when the thread ends."""
    context.thread.clear_tid = address
    return context.thread.tid


def futex(
    context: CallContext, address: int, operation: int, value: int, timeout: int, to: int, bits: int
) -> int:
    """futex_time64(2)."""
    if address % 4:
        raise KernelError(Errno.EINVAL)
    context.memory.require(address, 4)
    process = context.process
    match operation & ~(_PRIVATE | _CLOCK_REALTIME):
        case k if k == _WAIT:
            return _wait(context, address, value, _ANY, timeout, absolute=None)
        case k if k == _WAIT_BITSET:
            realtime = bool(operation & _CLOCK_REALTIME)
            return _wait(context, address, value, bits, timeout, absolute=realtime)
        case k if k == _WAKE:
            return futexes.wake(process, address, _count(value), _ANY)
        case k if k == _WAKE_BITSET:
            if not bits:
                raise KernelError(Errno.EINVAL)
            return futexes.wake(process, address, _count(value), bits)
        case k if k in (_REQUEUE, _CMP_REQUEUE):
            if k == _CMP_REQUEUE and context.memory.read_u32(address) != bits:
                raise KernelError(Errno.EAGAIN)
            context.memory.require(to, 4)
            woken, moved = futexes.requeue(process, address, _count(value), to, _count(timeout))
            return woken + moved if k == _CMP_REQUEUE else woken
        case _:
            raise KernelError(Errno.ENOSYS, f"futex operation {operation}")


def _count(value: int) -> int:
    return max(0, signed(value))


def _wait(
    context: CallContext,
    address: int,
    expected: int,
    bits: int,
    timeout: int,
    *,
    absolute: bool | None,
) -> int:
    """`absolute` says what the timeout is: True for a time of the real-time clock, False for a time
    of the monotonic clock, None for a duration."""
    thread, clock = context.thread, context.kernel.clock
    now = clock.monotonic()
    deadline = thread.call.deadline
    if thread.call.progress is None:  # the first attempt
        if not bits:
            raise KernelError(Errno.EINVAL)
        if timeout:
            deadline = context.timespec(timeout)
            if absolute is None:
                deadline += now
            elif absolute:
                deadline += now - clock.realtime()
        if context.memory.read_u32(address) != expected:
            raise KernelError(Errno.EAGAIN)
    futexes.wait(thread, address, bits, now, deadline)
    return 0
