"""System calls of the guest: Linux on i386.

Owns the numbers, flags and layouts that the host uses. Rules: every function makes one call, or a
fixed number of calls, through `Agent.call`, and raises its `KernelError` and `MachineLost`. What
the guest answers is checked before it is used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.v86.frames import PIECE, Room

if TYPE_CHECKING:
    from wasmsand.v86.agent import Agent

READ_MAX: Final = 4 * PIECE
WRITE_MAX: Final = 16 * PIECE
O_WRONLY, O_CREAT, O_EXCL, O_TRUNC = 0o1, 0o100, 0o200, 0o1000
O_APPEND, O_NONBLOCK, O_LARGEFILE, O_DIRECTORY = 0o2000, 0o4000, 0o100000, 0o200000
O_NOFOLLOW, O_CLOEXEC = 0o400000, 0o2000000
_O_USUAL: Final = O_NONBLOCK | O_LARGEFILE | O_CLOEXEC
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_STATX_BASIC: Final = 0x7FF
_STATX: Final = struct.Struct("<IIQIIIHxxQQQQ16x16x16xqI")
_DIRENT: Final = struct.Struct("<QqHB")
_PATH_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Status:
    """What statx(2) says of a file."""

    mode: int
    uid: int
    gid: int
    size: int
    blocks: int
    mtime_ns: int


def _path(path: bytes) -> bytes:
    if len(path) >= _PATH_MAX:
        raise KernelError(Errno.ENAMETOOLONG)
    return path + b"\0"


def open_file(agent: Agent, path: bytes, flags: int = 0, mode: int = 0) -> int:
    """open(2); never waits."""
    return agent.call(5, _path(path), flags | _O_USUAL, mode)[0]


def close(agent: Agent, fd: int) -> None:
    """close(2)."""
    agent.call(6, fd)


def read_at(agent: Agent, fd: int, count: int, offset: int) -> bytes:
    """pread64(2), at most `READ_MAX` bytes."""
    room = Room(min(count, READ_MAX))
    return agent.call(180, fd, room, room.size, offset & 0xFFFFFFFF, offset >> 32)[1]


def write_all(agent: Agent, fd: int, data: bytes) -> None:
    """write(2) until everything is written."""
    done = 0
    while done < len(data):
        piece = bytes(data[done : done + WRITE_MAX])
        written, _ = agent.call(4, fd, piece, len(piece))
        if written == 0:
            raise KernelError(Errno.EIO)
        done += written


def stat(agent: Agent, path: bytes, *, follow: bool = True) -> Status:
    """statx(2)."""
    flags = 0 if follow else _AT_SYMLINK_NOFOLLOW
    room = Room(256, is_counted=False)
    _, data = agent.call(383, _AT_FDCWD, _path(path), flags, _STATX_BASIC, room)
    if len(data) != 256:
        raise KernelError(Errno.EIO)
    fields = _STATX.unpack_from(data)
    _, _, _, _, uid, gid, mode, _, size, blocks, _, seconds, nanoseconds = fields
    return Status(mode, uid, gid, size, blocks, seconds * 1_000_000_000 + nanoseconds)


def entries(agent: Agent, fd: int) -> list[bytes]:
    """getdents64(2) until the end: the names in a directory."""
    names: list[bytes] = []
    while True:
        _, data = agent.call(220, fd, Room(READ_MAX), READ_MAX)
        if not data:
            return names
        at = 0
        while at + _DIRENT.size <= len(data):
            _, _, length, _ = _DIRENT.unpack_from(data, at)
            name = data[at + 19 : at + length].split(b"\0", 1)[0]
            if length < 20 or not name or b"/" in name:
                raise KernelError(Errno.EIO)
            if name not in (b".", b".."):
                names.append(name)
            at += length


def mkdir(agent: Agent, path: bytes, mode: int = 0o755) -> None:
    """mkdir(2)."""
    agent.call(39, _path(path), mode)


def rmdir(agent: Agent, path: bytes) -> None:
    """rmdir(2)."""
    agent.call(40, _path(path))


def unlink(agent: Agent, path: bytes) -> None:
    """unlink(2)."""
    agent.call(10, _path(path))


def rename(agent: Agent, source: bytes, target: bytes) -> None:
    """rename(2)."""
    agent.call(38, _path(source), _path(target))


def symlink(agent: Agent, target: bytes, path: bytes) -> None:
    """symlink(2)."""
    agent.call(83, _path(target), _path(path))


def read_link(agent: Agent, path: bytes) -> bytes:
    """readlink(2)."""
    return agent.call(85, _path(path), Room(_PATH_MAX), _PATH_MAX)[1]


def chmod(agent: Agent, path: bytes, mode: int) -> None:
    """chmod(2)."""
    agent.call(15, _path(path), mode)


def lchown(agent: Agent, path: bytes, uid: int, gid: int) -> None:
    """lchown32(2)."""
    agent.call(198, _path(path), uid, gid)


def fchmod(agent: Agent, fd: int, mode: int) -> None:
    """fchmod(2)."""
    agent.call(94, fd, mode)


def fchown(agent: Agent, fd: int, uid: int, gid: int) -> None:
    """fchown32(2)."""
    agent.call(207, fd, uid, gid)


def ftruncate(agent: Agent, fd: int, size: int) -> None:
    """ftruncate64(2)."""
    agent.call(194, fd, size & 0xFFFFFFFF, size >> 32)


def kill(agent: Agent, pid: int, number: int) -> None:
    """kill(2)."""
    agent.call(37, pid, number)


def space(agent: Agent, path: bytes) -> tuple[int, int, int, int, int]:
    """statfs64(2): block size, blocks, blocks that are free, inodes, inodes that are free."""
    _, data = agent.call(268, _path(path), 84, Room(84, is_counted=False))
    if len(data) != 84:
        raise KernelError(Errno.EIO)
    _, size, blocks, free, _, inodes, free_inodes = struct.unpack_from("<IIQQQQQ", data)
    return size, blocks, free, inodes, free_inodes


def set_clock(agent: Agent, nanoseconds: int) -> None:
    """clock_settime64(2) of CLOCK_REALTIME."""
    agent.call(404, 0, struct.pack("<qq", *divmod(nanoseconds, 1_000_000_000)))


def seed_random(agent: Agent, seed: bytes) -> None:
    """Give the kernel's random numbers a new seed: RNDADDENTROPY and RNDRESEEDCRNG."""
    fd = open_file(agent, b"/dev/urandom", O_WRONLY)
    try:
        agent.call(54, fd, 0x40085203, struct.pack("<ii", 8 * len(seed), len(seed)) + seed)
        agent.call(54, fd, 0x5207)
    finally:
        close(agent, fd)


def write_control(agent: Agent, path: bytes, text: bytes) -> None:
    """Write to a file of the kernel, such as a limit of a cgroup."""
    fd = open_file(agent, path, O_WRONLY)
    try:
        agent.call(4, fd, text, len(text))
    finally:
        close(agent, fd)


def read_control(agent: Agent, path: bytes) -> bytes:
    """Read a small file of the kernel."""
    fd = open_file(agent, path)
    try:
        return agent.call(3, fd, Room(PIECE), PIECE)[1]
    finally:
        close(agent, fd)
