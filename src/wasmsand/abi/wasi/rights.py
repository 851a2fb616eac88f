"""Rights of descriptors.

Owns the bits of `rights`, and which of them apply to which type of file. Rules: a descriptor never
has a right that does not apply to its type; rights can only be removed. Rights only protect a
program from its own mistakes: the sandbox does not depend on them.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import DirectoryFile, RegularFile
from wasmsand.kernel.files.terminal import TerminalFile, TerminalMaster
from wasmsand.kernel.flags import O_ACCMODE, O_RDONLY, O_WRONLY, S_IFCHR, S_IFMT


class Right:
    """One bit each, with the names of the specification. Plain numbers, because an IntFlag makes
    every check many times slower."""

    FD_DATASYNC: Final = 1 << 0
    FD_READ: Final = 1 << 1
    FD_SEEK: Final = 1 << 2
    FD_FDSTAT_SET_FLAGS: Final = 1 << 3
    FD_SYNC: Final = 1 << 4
    FD_TELL: Final = 1 << 5
    FD_WRITE: Final = 1 << 6
    FD_ADVISE: Final = 1 << 7
    FD_ALLOCATE: Final = 1 << 8
    PATH_CREATE_DIRECTORY: Final = 1 << 9
    PATH_CREATE_FILE: Final = 1 << 10
    PATH_LINK_SOURCE: Final = 1 << 11
    PATH_LINK_TARGET: Final = 1 << 12
    PATH_OPEN: Final = 1 << 13
    FD_READDIR: Final = 1 << 14
    PATH_READLINK: Final = 1 << 15
    PATH_RENAME_SOURCE: Final = 1 << 16
    PATH_RENAME_TARGET: Final = 1 << 17
    PATH_FILESTAT_GET: Final = 1 << 18
    PATH_FILESTAT_SET_SIZE: Final = 1 << 19
    PATH_FILESTAT_SET_TIMES: Final = 1 << 20
    FD_FILESTAT_GET: Final = 1 << 21
    FD_FILESTAT_SET_SIZE: Final = 1 << 22
    FD_FILESTAT_SET_TIMES: Final = 1 << 23
    PATH_SYMLINK: Final = 1 << 24
    PATH_REMOVE_DIRECTORY: Final = 1 << 25
    PATH_UNLINK_FILE: Final = 1 << 26
    POLL_FD_READWRITE: Final = 1 << 27
    SOCK_SHUTDOWN: Final = 1 << 28
    SOCK_ACCEPT: Final = 1 << 29


ALL: Final = (1 << 30) - 1

READING: Final = Right.FD_READ | Right.FD_READDIR
"""Each of these opens a file for reading."""
WRITING: Final = Right.FD_WRITE | Right.FD_ALLOCATE | Right.FD_FILESTAT_SET_SIZE
"""Each of these opens a file for writing."""

_STREAM: Final = (
    Right.FD_READ
    | Right.FD_WRITE
    | Right.FD_FDSTAT_SET_FLAGS
    | Right.FD_FILESTAT_GET
    | Right.POLL_FD_READWRITE
)
"""Pipes and terminals. libcs recognise a terminal as a character device that cannot seek."""

_DEVICE: Final = _STREAM | (
    Right.FD_SEEK | Right.FD_TELL | Right.FD_SYNC | Right.FD_DATASYNC | Right.FD_FILESTAT_SET_TIMES
)

_REGULAR_FILE: Final = _DEVICE | (Right.FD_ADVISE | Right.FD_ALLOCATE | Right.FD_FILESTAT_SET_SIZE)

DIRECTORY: Final = (
    Right.FD_FDSTAT_SET_FLAGS
    | Right.FD_SYNC
    | Right.FD_DATASYNC
    | Right.FD_ADVISE
    | Right.PATH_CREATE_DIRECTORY
    | Right.PATH_CREATE_FILE
    | Right.PATH_LINK_SOURCE
    | Right.PATH_LINK_TARGET
    | Right.PATH_OPEN
    | Right.FD_READDIR
    | Right.PATH_READLINK
    | Right.PATH_RENAME_SOURCE
    | Right.PATH_RENAME_TARGET
    | Right.PATH_FILESTAT_GET
    | Right.PATH_FILESTAT_SET_SIZE
    | Right.PATH_FILESTAT_SET_TIMES
    | Right.FD_FILESTAT_GET
    | Right.FD_FILESTAT_SET_TIMES
    | Right.PATH_SYMLINK
    | Right.PATH_REMOVE_DIRECTORY
    | Right.PATH_UNLINK_FILE
    | Right.POLL_FD_READWRITE
)


def applicable(file: OpenFile) -> int:
    """The rights that apply to this type of file."""
    if isinstance(file, RegularFile):
        return _REGULAR_FILE
    if isinstance(file, DirectoryFile):
        return DIRECTORY
    if isinstance(file, TerminalFile | TerminalMaster):
        return _STREAM
    return _DEVICE if file.stat().mode & S_IFMT == S_IFCHR else _STREAM


def granted(file: OpenFile) -> int:
    """The rights of a file opened by another program: those that its access mode allows."""
    rights = applicable(file)
    mode = file.flags & O_ACCMODE
    if isinstance(file, DirectoryFile):
        return rights
    if mode == O_RDONLY:
        rights &= ~WRITING
    elif mode == O_WRONLY:
        rights &= ~READING
    return rights
