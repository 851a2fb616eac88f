"""The words of the file system: who asks, what a file looks like, mode and flag bits.

Owns the small immutable records that travel between the file system, the kernel and
the system-call layer. Rules: numbers are Linux's (asm-generic), paths and names are
bytes, times are nanoseconds since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# File types in a mode.
S_IFMT = 0o170000
S_IFSOCK = 0o140000
S_IFLNK = 0o120000
S_IFREG = 0o100000
S_IFBLK = 0o060000
S_IFDIR = 0o040000
S_IFCHR = 0o020000
S_IFIFO = 0o010000

S_ISUID = 0o4000
S_ISGID = 0o2000
S_ISVTX = 0o1000
S_IXGRP = 0o010
PERMISSION_BITS = 0o7777

# Flags of open.
O_RDONLY = 0
O_WRONLY = 1
O_RDWR = 2
O_ACCMODE = 3
O_CREAT = 0o100
O_EXCL = 0o200
O_NOCTTY = 0o400
O_TRUNC = 0o1000
O_APPEND = 0o2000
O_NONBLOCK = 0o4000
O_DIRECTORY = 0o200000
O_NOFOLLOW = 0o400000
O_NOATIME = 0o1000000
O_CLOEXEC = 0o2000000
O_PATH = 0o10000000
O_TMPFILE_BIT = 0o20000000
"""What O_TMPFILE adds to O_DIRECTORY."""

# Flags of renameat2.
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
RENAME_WHITEOUT = 4

# What access asks for.
F_OK = 0
X_OK = 1
W_OK = 2
R_OK = 4

# Flags of fallocate.
FALLOC_FL_KEEP_SIZE = 1
FALLOC_FL_PUNCH_HOLE = 2
FALLOC_FL_ZERO_RANGE = 16

# Flags of mount, as statfs reports them.
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8

BLOCK_SIZE = 4096
"""The unit of allocation, and what st_blksize says."""


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
