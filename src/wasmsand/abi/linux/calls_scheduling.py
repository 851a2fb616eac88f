"""Scheduling: priorities, policies, processors.

Owns the calls that ask for more or less processor time. Rules: nice values and affinity masks are
stored and reported but have no effect, because the host schedules. Privileged operations are EPERM,
as for an ordinary user.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.structs import TIMESPEC
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.thread import ALL_PROCESSORS, Thread
from wasmsand.kernel.process.thread_life import thread_of

_OTHER, _FIFO, _ROUND_ROBIN, _BATCH, _IDLE = 0, 1, 2, 3, 5
_REAL_TIME: Final = (_FIFO, _ROUND_ROBIN)
_POLICIES: Final = (_OTHER, _FIFO, _ROUND_ROBIN, _BATCH, _IDLE)
_RESET_ON_FORK: Final = 0x4000_0000
_SLICE_NS: Final = 100_000_000


def getpriority(context: CallContext, which: int, who: int) -> int:
    """getpriority(2): 20 minus the nice value, as the raw call returns it."""
    if which > 2:
        raise KernelError(Errno.EINVAL)
    target = context.process if which or not who else context.kernel.processes.get(signed(who))
    return 20 - target.nice


def setpriority(context: CallContext, which: int, who: int, value: int) -> int:
    """setpriority(2): stored and reported, without effect on scheduling."""
    if which > 2:
        raise KernelError(Errno.EINVAL)
    target = context.process if which or not who else context.kernel.processes.get(signed(who))
    nice = max(-20, min(19, signed(value)))
    if context.process.identity.euid not in (0, target.identity.uid, target.identity.euid):
        raise KernelError(Errno.EPERM)
    if nice < target.nice and context.process.identity.euid != 0:
        raise KernelError(Errno.EACCES)
    target.nice = nice
    return 0


def sched_getaffinity(context: CallContext, pid: int, size: int, address: int) -> int:
    """sched_getaffinity(2): the affinity mask of a thread."""
    if size < 4 or size % 4:
        raise KernelError(Errno.EINVAL)
    target = thread_of(context.kernel, signed(pid)) if pid else context.thread
    context.memory.write_u32(address, target.processors)
    return 4


def sched_yield(context: CallContext) -> int:
    """sched_yield(2): to other threads of the process; processes run concurrently."""
    context.yield_turn()
    return 0


def sched_setaffinity(context: CallContext, pid: int, size: int, address: int) -> int:
    """sched_setaffinity(2). EINVAL if the mask contains no existing processor."""
    target = thread_of(context.kernel, signed(pid)) if pid else context.thread
    wanted = int.from_bytes(context.memory.read(address, min(size, 128)), "little")
    owner = target.process.identity
    if context.process.identity.euid not in (0, owner.uid, owner.euid):
        raise KernelError(Errno.EPERM)
    if not wanted & ALL_PROCESSORS:
        raise KernelError(Errno.EINVAL)
    target.processors = wanted & ALL_PROCESSORS
    return 0


def _thread(context: CallContext, pid: int) -> Thread:
    if signed(pid) < 0:
        raise KernelError(Errno.EINVAL)
    return thread_of(context.kernel, pid) if pid else context.thread


def sched_getscheduler(context: CallContext, pid: int) -> int:
    """sched_getscheduler(2)."""
    _thread(context, pid)
    return _OTHER


def sched_setscheduler(context: CallContext, pid: int, policy: int, parameters: int) -> int:
    """sched_setscheduler(2)."""
    _thread(context, pid)
    priority = signed(context.memory.read_u32(parameters))
    policy &= ~_RESET_ON_FORK
    low, high = _range(policy)
    if not low <= priority <= high:
        raise KernelError(Errno.EINVAL)
    if policy in _REAL_TIME:
        raise KernelError(Errno.EPERM)
    return 0


def sched_getparam(context: CallContext, pid: int, parameters: int) -> int:
    """sched_getparam(2)."""
    _thread(context, pid)
    context.memory.write_u32(parameters, 0)
    return 0


def sched_setparam(context: CallContext, pid: int, parameters: int) -> int:
    """sched_setparam(2)."""
    return sched_setscheduler(context, pid, _OTHER, parameters)


def _range(policy: int) -> tuple[int, int]:
    if policy not in _POLICIES:
        raise KernelError(Errno.EINVAL)
    return (1, 99) if policy in _REAL_TIME else (0, 0)


def sched_get_priority_max(context: CallContext, policy: int) -> int:
    """sched_get_priority_max(2)."""
    return _range(policy)[1]


def sched_get_priority_min(context: CallContext, policy: int) -> int:
    """sched_get_priority_min(2)."""
    return _range(policy)[0]


def sched_rr_get_interval(context: CallContext, pid: int, address: int) -> int:
    """sched_rr_get_interval_time64(2)."""
    _thread(context, pid)
    context.memory.pack(TIMESPEC, address, 0, _SLICE_NS)
    return 0
