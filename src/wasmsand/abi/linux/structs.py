"""C layouts of the 32-bit generic Linux ABI, as the guest's libc sees them.

Owns every `struct.Struct` that crosses the boundary, and packing kernel records into them. Rules:
little-endian, explicit padding; no access to guest memory here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.limits import NAME_MAX
from wasmsand.kernel.process.process import ResourceUsage
from wasmsand.kernel.process.signals import Signal, SignalInfo, TakenSignal
from wasmsand.kernel.vfs import DirEntry, Stat, StatFs
from wasmsand.kernel.vfs.model import device_major, device_minor

TIMESPEC: Final = Struct("<qq")
ITIMERSPEC: Final = Struct("<qqqq")
"""interval, value."""
TIMEVAL_PAIR: Final = Struct("<4i")
POLLFD: Final = Struct("<ihh")
SIGACTION: Final = Struct("<IIIQ")
"""handler, flags, restorer (unused), mask."""
RLIMIT: Final = Struct("<QQ")
WINSIZE: Final = Struct("<4H")
TMS: Final = Struct("<4i")
SIGNAL_MASK_ARGUMENT: Final = Struct("<II")
UTSNAME_FIELD: Final = 65

_STATX: Final = Struct("<II8xIIIH2xQQQ8x" + "qI4x" * 4 + "IIII112x")
_DIRENT_HEAD: Final = 19
_PACK_DIRENT: Final = {
    length: Struct(f"<QqHB{length - _DIRENT_HEAD}s").pack
    for length in range(24, _DIRENT_HEAD + NAME_MAX + 9, 8)
}
"""By record length. The name fills the rest of the record, padded with NULs."""
_STATFS: Final = Struct("<II5Q2iIII4I4x")
_RUSAGE: Final = Struct("<4i14i")
_SYSINFO: Final = Struct("<i9IHHIII8x")
_SIGINFO: Final = Struct("<iiiiIi104x")
_TAKEN_SIGNAL: Final = Struct("<IIIIQ")

RUSAGE_BYTES: Final = _RUSAGE.size
SIGINFO_BYTES: Final = _SIGINFO.size
STATX_BASIC_AND_BIRTH: Final = 0xFFF
_PAGE: Final = 4096


_last_statx: Final[list[tuple[Stat | None, bytes]]] = [(None, b"")]
"""The last answer of `pack_statx`, for sandboxes on all threads."""


def pack_statx(stat: Stat) -> bytes:
    """struct statx. Programs ask for the same file several times in a row (tar three times), so the
    last answer is kept."""
    last, packed = _last_statx[0]
    if stat == last:
        return packed
    dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atime, mtime, ctime, btime = stat
    major, minor = _device(dev)
    special_major, special_minor = _device(rdev)
    changed, changed_ns = ctime // SECOND, ctime % SECOND
    modified, modified_ns = changed, changed_ns
    if mtime != ctime:
        modified, modified_ns = mtime // SECOND, mtime % SECOND
    packed = _STATX.pack(
        STATX_BASIC_AND_BIRTH,
        blksize,
        nlink,
        uid,
        gid,
        mode,
        ino,
        size,
        blocks,
        atime // SECOND,
        atime % SECOND,
        btime // SECOND,
        btime % SECOND,
        changed,
        changed_ns,
        modified,
        modified_ns,
        special_major,
        special_minor,
        major,
        minor,
    )
    _last_statx[0] = (stat, packed)  # both in one step
    return packed


@lru_cache(maxsize=64)
def _device(number: int) -> tuple[int, int]:
    return device_major(number), device_minor(number)


LAST_ENTRY: Final = 0x7FFF_FFFF
"""The position of the last entry of a directory in struct linux_dirent64: the libc then knows that
the next call would find nothing."""


def pack_dirents(
    entries: Iterable[DirEntry], room: int, *, at_end: bool = False
) -> tuple[bytes, int]:
    """As many struct linux_dirent64 as fit, and the cookie of the last one. With `at_end`, nothing
    follows these entries."""
    records = []
    last = 0
    for name, ino, kind, cookie in entries:
        length = (_DIRENT_HEAD + len(name) + 8) & ~7  # with a NUL, rounded up to eight bytes
        room -= length
        if room < 0:
            break
        records.append(_PACK_DIRENT[length](ino, cookie, length, kind >> 12, name))
        last = cookie
    else:
        if at_end and records:
            records[-1] = _PACK_DIRENT[length](ino, LAST_ENTRY, length, kind >> 12, name)
    return b"".join(records), last


def pack_statfs(stat: StatFs) -> bytes:
    """struct statfs64."""
    return _STATFS.pack(
        stat.type,
        stat.block_size,
        stat.blocks,
        stat.blocks_free,
        stat.blocks_free,
        stat.files,
        stat.files_free,
        0,
        0,
        stat.name_max,
        stat.block_size,
        stat.flags,
        0,
        0,
        0,
        0,
    )


def pack_rusage(usage: ResourceUsage) -> bytes:
    """struct rusage with 32-bit times (the libc widens them)."""
    user, system = usage.user_ns // 1000, usage.system_ns // 1000
    return _RUSAGE.pack(
        user // 1_000_000,
        user % 1_000_000,
        system // 1_000_000,
        system % 1_000_000,
        min(usage.max_memory // 1024, 0x7FFF_FFFF),
        *([0] * 13),
    )


def pack_sysinfo(
    uptime_s: int, loads: tuple[float, float, float], total: int, free: int, processes: int
) -> bytes:
    """struct sysinfo, in pages; loads are fixed-point numbers."""
    fixed = [int(load * 65536) for load in loads]
    return _SYSINFO.pack(
        uptime_s, *fixed, total // _PAGE, free // _PAGE, 0, 0, 0, 0, processes, 0, 0, 0, _PAGE
    )


def pack_siginfo(info: SignalInfo) -> bytes:
    """siginfo_t (128 bytes)."""
    status = info.status if info.signo == Signal.SIGCHLD else 0
    return _SIGINFO.pack(info.signo, 0, info.code, info.pid, info.uid, status)


def pack_taken_signal(taken: TakenSignal) -> bytes:
    """The struct that signal_take writes for the libc."""
    head = _TAKEN_SIGNAL.pack(
        taken.info.signo, taken.action.handler, taken.action.flags, 0, taken.old_mask
    )
    return head + pack_siginfo(taken.info)


def nanoseconds(seconds: int, rest: int) -> int:
    """A timespec as nanoseconds."""
    return seconds * SECOND + rest
