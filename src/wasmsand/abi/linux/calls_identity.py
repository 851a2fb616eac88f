"""User and group ids.

Owns the calls that read and change a process's identity.
"""

from __future__ import annotations

from dataclasses import replace

from wasmsand.abi.linux.context import CallContext, optional_id, signed
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import GROUPS_MAX


def getuid(context: CallContext) -> int:
    """getuid(2)."""
    return signed(context.process.identity.uid)


def geteuid(context: CallContext) -> int:
    """geteuid(2)."""
    return signed(context.process.identity.euid)


def getgid(context: CallContext) -> int:
    """getgid(2)."""
    return signed(context.process.identity.gid)


def getegid(context: CallContext) -> int:
    """getegid(2)."""
    return signed(context.process.identity.egid)


def getresuid(context: CallContext, real: int, effective: int, saved: int) -> int:
    """getresuid(2)."""
    who = context.process.identity
    for address, value in ((real, who.uid), (effective, who.euid), (saved, who.suid)):
        context.memory.write_u32(address, value)
    return 0


def getresgid(context: CallContext, real: int, effective: int, saved: int) -> int:
    """getresgid(2)."""
    who = context.process.identity
    for address, value in ((real, who.gid), (effective, who.egid), (saved, who.sgid)):
        context.memory.write_u32(address, value)
    return 0


def _require_id(value: int) -> None:
    if optional_id(value) < 0:
        raise KernelError(Errno.EINVAL)


def setuid(context: CallContext, uid: int) -> int:
    """setuid(2)."""
    _require_id(uid)
    who = context.process.identity
    everything = uid if who.euid == 0 else -1
    context.process.identity = who.with_uids(everything, uid, everything)
    return 0


def setgid(context: CallContext, gid: int) -> int:
    """setgid(2)."""
    _require_id(gid)
    who = context.process.identity
    everything = gid if who.euid == 0 else -1
    context.process.identity = who.with_gids(everything, gid, everything)
    return 0


def setreuid(context: CallContext, real: int, effective: int) -> int:
    """setreuid(2)."""
    who = context.process.identity
    real, effective = optional_id(real), optional_id(effective)
    new = who.with_uids(real, effective, -1)
    if real >= 0 or (effective >= 0 and new.euid != who.uid):
        new = replace(new, suid=new.euid)
    context.process.identity = new
    return 0


def setregid(context: CallContext, real: int, effective: int) -> int:
    """setregid(2)."""
    who = context.process.identity
    real, effective = optional_id(real), optional_id(effective)
    new = who.with_gids(real, effective, -1)
    if real >= 0 or (effective >= 0 and new.egid != who.gid):
        new = replace(new, sgid=new.egid)
    context.process.identity = new
    return 0


def setresuid(context: CallContext, real: int, effective: int, saved: int) -> int:
    """setresuid(2)."""
    who = context.process.identity
    context.process.identity = who.with_uids(
        optional_id(real), optional_id(effective), optional_id(saved)
    )
    return 0


def setresgid(context: CallContext, real: int, effective: int, saved: int) -> int:
    """setresgid(2)."""
    who = context.process.identity
    context.process.identity = who.with_gids(
        optional_id(real), optional_id(effective), optional_id(saved)
    )
    return 0


def getgroups(context: CallContext, size: int, address: int) -> int:
    """getgroups(2)."""
    groups = sorted(context.process.identity.groups)
    if size:
        if signed(size) < len(groups):
            raise KernelError(Errno.EINVAL)
        context.memory.write(address, b"".join([gid.to_bytes(4, "little") for gid in groups]))
    return len(groups)


def setgroups(context: CallContext, size: int, address: int) -> int:
    """setgroups(2)."""
    who = context.process.identity
    if who.euid != 0:
        raise KernelError(Errno.EPERM)
    if size > GROUPS_MAX:
        raise KernelError(Errno.EINVAL)
    groups = frozenset(context.memory.read_u32(address + 4 * i) for i in range(size))
    context.process.identity = replace(who, groups=groups)
    return 0
