"""Layouts of preview 1, and of its predecessor where that differs.

Owns every `struct.Struct` that crosses the boundary, and packing kernel records into them. Rules:
little-endian, explicit padding; no access to guest memory here. `wasi_unstable`, which programs
from 2019 import, has a different `filestat` and `subscription`.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from wasmsand.kernel.flags import (
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
)
from wasmsand.kernel.vfs import DirEntry, Stat

PRESTAT: Final = Struct("<B3xI")
FDSTAT: Final = Struct("<BxH4xQQ")
FILESTAT: Final = Struct("<QQB7xQQQQQ")
FILESTAT_UNSTABLE: Final = Struct("<QQB3xIQQQQ")
_DIRENT: Final = Struct("<QQIB3x")
DIRENT_BYTES: Final = _DIRENT.size

SUBSCRIPTION: Final = Struct("<QB7xI4xQQH6x")
"""userdata, type; for a clock: id, timeout, precision, flags; for a file: its fd first."""
SUBSCRIPTION_UNSTABLE: Final = Struct("<QB7xQI4xQQH6x")
"""The same, with an additional identifier for the clock where a file has its fd."""
EVENT: Final = Struct("<QHB5xQH6x")
"""userdata, error, type, bytes, flags."""

U64_MAX: Final = (1 << 64) - 1


class FileType(IntEnum):
    """What a descriptor refers to. Preview 1 has no type for pipes."""

    UNKNOWN = 0
    BLOCK_DEVICE = 1
    CHARACTER_DEVICE = 2
    DIRECTORY = 3
    REGULAR_FILE = 4
    SOCKET_DGRAM = 5
    SOCKET_STREAM = 6
    SYMBOLIC_LINK = 7


_FILE_TYPES: Final = {
    S_IFBLK: FileType.BLOCK_DEVICE,
    S_IFCHR: FileType.CHARACTER_DEVICE,
    S_IFDIR: FileType.DIRECTORY,
    S_IFREG: FileType.REGULAR_FILE,
    S_IFSOCK: FileType.SOCKET_STREAM,
    S_IFLNK: FileType.SYMBOLIC_LINK,
}


def file_type(mode: int) -> int:
    """The file type of a mode."""
    return _FILE_TYPES.get(mode & S_IFMT, FileType.UNKNOWN)


def _time(nanoseconds: int) -> int:
    return max(0, min(nanoseconds, U64_MAX))  # there are no times before 1970


def _filestat(layout: Struct, stat: Stat) -> bytes:
    return layout.pack(
        stat.dev,
        stat.ino,
        file_type(stat.mode),
        stat.nlink,
        stat.size,
        _time(stat.atime_ns),
        _time(stat.mtime_ns),
        _time(stat.ctime_ns),
    )


def pack_filestat(stat: Stat) -> bytes:
    """`filestat` of preview 1."""
    return _filestat(FILESTAT, stat)


def pack_filestat_unstable(stat: Stat) -> bytes:
    """`filestat` of wasi_unstable."""
    return _filestat(FILESTAT_UNSTABLE, stat)


def pack_dirent(entry: DirEntry) -> bytes:
    """`dirent`, followed by the name."""
    name = entry.name
    return _DIRENT.pack(entry.cookie, entry.ino, len(name), file_type(entry.type)) + name
