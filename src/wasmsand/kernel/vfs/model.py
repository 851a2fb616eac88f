"""The words of the file system: who asks, and what a file looks like.

Owns the small immutable records that travel between the file system, the kernel and
the system-call layer. Rules: numbers are Linux's (asm-generic), paths and names are
bytes, times are nanoseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from wasmsand.kernel.flags import S_IFDIR, S_IFMT

BLOCK_SIZE = 4096
"""The unit of allocation."""

TRANSFER_SIZE = 65536
"""What st_blksize says of regular files: how much to read or write at once. A system call
costs far more than on Linux, and awk, cmp and diff read as much as they are told here."""


class Present(Enum):
    """The type of `NOW`."""

    NOW = "now"


NOW: Final = Present.NOW
"""A file's time that is to be set to the present: the very moment of the change (ctime)."""

FileTime = int | Present
"""What a file's time can be set to: nanoseconds, or NOW."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks. uid 0 passes every permission check except executing a file that
    nobody may execute."""

    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    def in_group(self, gid: int) -> bool:
        """Whether `gid` is the caller's group or one of its supplementary groups."""
        return gid == self.gid or gid in self.groups


ROOT = Credentials(0, 0, frozenset())


new_record: Final = tuple.__new__
"""Makes a named tuple from a tuple: `new_record(DirEntry, (...))`. It takes a third of the time
of calling the class, which matters for records that are made by the thousand."""


class Stat(NamedTuple):
    """What stat tells. A named tuple because one is made for every stat call."""

    dev: int
    ino: int
    mode: int
    nlink: int
    uid: int
    gid: int
    rdev: int
    size: int
    blksize: int
    blocks: int
    """In units of 512 bytes."""
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    btime_ns: int


class StatFs(NamedTuple):
    """What statfs tells."""

    type: int
    block_size: int
    blocks: int
    blocks_free: int
    files: int
    files_free: int
    name_max: int
    flags: int


class DirEntry(NamedTuple):
    """One entry of a directory. `cookie` continues a listing after this entry."""

    name: bytes
    ino: int
    type: int
    """The file type bits of the mode (S_IFDIR, S_IFREG ...); d_type is this >> 12."""
    cookie: int


def device_number(major: int, minor: int) -> int:
    """Pack a device number as Linux's user space does (makedev)."""
    return (major & 0xFFF) << 8 | (minor & 0xFF) | (minor & ~0xFF) << 12


def device_major(rdev: int) -> int:
    """The major part of a packed device number."""
    return rdev >> 8 & 0xFFF


def device_minor(rdev: int) -> int:
    """The minor part of a packed device number."""
    return (rdev & 0xFF) | (rdev >> 12 & ~0xFF)


def is_directory(mode: int) -> bool:
    """Whether a mode is that of a directory."""
    return mode & S_IFMT == S_IFDIR
