"""Basic records of the file system: credentials, stat, directory entries.

Owns the small immutable records that the file system, the kernel and the system-call layer share.
Rules: numbers are Linux's (asm-generic), paths and names are bytes, times are nanoseconds since the
epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from wasmsand.kernel.flags import S_IFDIR, S_IFMT

BLOCK_SIZE: Final = 4096
"""The unit of allocation."""

TRANSFER_SIZE: Final = 65536
"""st_blksize of regular files: how much to read or write at once. A system call costs far more
than on Linux, and awk, cmp and diff use this size."""


class Present(Enum):
    """The type of `NOW`."""

    NOW = "now"


NOW: Final = Present.NOW
"""Set a file's time to the exact time of the change (its ctime)."""

FileTime = int | Present
"""What a file's time can be set to: nanoseconds, or NOW."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Whose permissions apply. uid 0 passes every permission check, except executing a file that
    has no execute bit."""

    uid: int
    gid: int
    groups: frozenset[int] = frozenset()

    def in_group(self, gid: int) -> bool:
        """Whether `gid` is the caller's group or one of its supplementary groups."""
        return gid == self.gid or gid in self.groups


ROOT = Credentials(0, 0, frozenset())


new_record: Final = tuple.__new__
"""Makes a named tuple from a tuple: `new_record(DirEntry, (...))`. This takes a third of the time
of calling the class, which matters for records made by the thousand."""


class Stat(NamedTuple):
    """The result of stat. A named tuple for speed."""

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
    """The result of statfs."""

    type: int
    block_size: int
    blocks: int
    blocks_free: int
    files: int
    files_free: int
    name_max: int
    flags: int


class DirEntry(NamedTuple):
    """One directory entry. `cookie` continues a listing after this entry."""

    name: bytes
    ino: int
    type: int
    """The file type bits of the mode (S_IFDIR, S_IFREG ...); d_type is this >> 12."""
    cookie: int


def device_number(major: int, minor: int) -> int:
    """Encode a device number as Linux's makedev does."""
    return (major & 0xFFF) << 8 | (minor & 0xFF) | (minor & ~0xFF) << 12


def device_major(rdev: int) -> int:
    """The major number of a device."""
    return rdev >> 8 & 0xFFF


def device_minor(rdev: int) -> int:
    """The minor number of a device."""
    return (rdev & 0xFF) | (rdev >> 12 & ~0xFF)


def is_directory(mode: int) -> bool:
    """Whether a mode has the directory type."""
    return mode & S_IFMT == S_IFDIR
