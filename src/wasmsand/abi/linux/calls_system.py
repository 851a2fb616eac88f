"""The system: uname, memory, limits, usage, random bytes.

Owns the calls about the system and its resources.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.context import CallContext, signed
from wasmsand.abi.linux.structs import RLIMIT, UTSNAME_FIELD, pack_rusage, pack_sysinfo
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import HOSTNAME_MAX, IO_CHUNK
from wasmsand.kernel.proc_source import OS_RELEASE, OS_VERSION
from wasmsand.kernel.process.process import ResourceUsage
from wasmsand.kernel.process.rlimits import NOFILE, Limit

_RUSAGE_SELF: Final = 0
_RUSAGE_CHILDREN: Final = -1
_RUSAGE_THREAD: Final = 1
_GETRANDOM_FLAGS: Final = 7


def uname(context: CallContext, address: int) -> int:
    """uname(2)."""
    fields = (b"Linux", context.kernel.hostname, OS_RELEASE, OS_VERSION, b"wasm32", b"(none)")
    context.memory.write(
        address, b"".join([f[: UTSNAME_FIELD - 1].ljust(UTSNAME_FIELD, b"\0") for f in fields])
    )
    return 0


def sethostname(context: CallContext, address: int, length: int) -> int:
    """sethostname(2)."""
    if context.process.identity.euid != 0:
        raise KernelError(Errno.EPERM)
    if length > HOSTNAME_MAX:
        raise KernelError(Errno.EINVAL)
    context.kernel.hostname = context.memory.read(address, length)
    return 0


def sysinfo(context: CallContext, address: int) -> int:
    """sysinfo(2)."""
    kernel = context.kernel
    total = kernel.limits.memory_limit_bytes
    context.memory.write(
        address,
        pack_sysinfo(
            kernel.clock.uptime() // SECOND,
            kernel.load_averages(),
            total,
            max(0, total - kernel.memory_used()),
            len(kernel.processes),
        ),
    )
    return 0


def getrandom(context: CallContext, address: int, count: int, flags: int) -> int:
    """getrandom(2)."""
    if flags & ~_GETRANDOM_FLAGS:
        raise KernelError(Errno.EINVAL)
    count = min(count, IO_CHUNK)
    context.memory.require(address, count)
    context.memory.write(address, context.kernel.random(count))
    return count


def prlimit64(context: CallContext, pid: int, resource: int, new: int, old: int) -> int:
    """prlimit64(2)."""
    caller = context.process
    target = caller if not pid else context.kernel.processes.get(signed(pid))
    if target is not caller and caller.identity.euid not in (0, target.identity.uid):
        raise KernelError(Errno.EPERM)
    previous = target.rlimits.get(resource)
    if new:
        soft, hard = context.memory.unpack(RLIMIT, new)
        if old:
            context.memory.require(old, RLIMIT.size)
        target.rlimits.set(resource, Limit(soft, hard), privileged=caller.identity.euid == 0)
        if resource == NOFILE:
            target.fds.limit = soft
    if old:
        context.memory.pack(RLIMIT, old, previous.soft, previous.hard)
    return 0


def getrusage(context: CallContext, who: int, address: int) -> int:
    """getrusage(2)."""
    process = context.process
    if signed(who) == _RUSAGE_CHILDREN:
        usage = process.children_usage
    elif who in (_RUSAGE_SELF, _RUSAGE_THREAD):
        usage = ResourceUsage()
        usage.user_ns = context.cpu_time_ns()
        usage.max_memory = max(process.usage.max_memory, process.memory_bytes)
    else:
        raise KernelError(Errno.EINVAL)
    context.memory.write(address, pack_rusage(usage))
    return 0


def getcpu(context: CallContext, cpu: int, node: int) -> int:
    """getcpu(2)."""
    for address in (cpu, node):
        if address:
            context.memory.write_u32(address, 0)
    return 0
