"""Opening a path below a directory, so that nothing can lead outside of it.

Owns `open_beneath` and `exchange_names`. Rules: a path is a tuple of names; no name is empty, '.',
'..' or contains '/' or NUL. No symbolic link is followed, in no position, and no mount point of the
host is crossed.
Linux does all this in one step (openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
RESOLVE_NO_XDEV). Where that call is missing, each directory is opened by its name in the one above
it, with O_NOFOLLOW: a handle stays at its directory, whatever is renamed meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Sequence
from typing import Final

_OPENAT2: Final = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_RESOLVE: Final = _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_EXCHANGE: Final = 2
"""RENAME_EXCHANGE."""
_TRIES: Final = 64
"""openat2 fails with EAGAIN if a rename happens meanwhile."""

O_PATH: Final = getattr(os, "O_PATH", 0)
OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
HANDLE: Final = (O_PATH or os.O_RDONLY) | os.O_DIRECTORY
"""Flags for a directory whose names are used, but not listed."""


def valid_name(name: bytes) -> bool:
    """Whether `name` can be an entry of a directory."""
    return bool(name) and name not in (b".", b"..") and b"/" not in name and b"\0" not in name


def open_beneath(root: int, names: Sequence[bytes], flags: int) -> int:
    """Open the file with this path below the directory handle `root`. It exists: nothing is
    created. Raises `OSError`: ELOOP for a symbolic link, EXDEV for another file system."""
    if not all(map(valid_name, names)):
        raise OSError(errno.EINVAL, "not a path of names")
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    if flags & O_PATH:
        flags &= ~(os.O_NONBLOCK | os.O_NOCTTY)
    if not names:
        return os.open(b".", flags, dir_fd=root)
    if _has_openat2:
        path = b"/".join(names)
        if len(path) < 4096:
            return _openat2(root, path, flags)
    return open_by_steps(root, names, flags)


def open_by_steps(root: int, names: Sequence[bytes], flags: int) -> int:
    """The same without openat2."""
    device = os.fstat(root).st_dev
    at = root
    try:
        for name in names[:-1]:
            below = os.open(name, HANDLE | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
            if at != root:
                os.close(at)
            at = below
        found = os.open(names[-1], flags, dir_fd=at)
    except OSError as error:
        if error.errno == errno.ENOTDIR and _is_link(name, at):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise
    finally:
        if at != root:
            os.close(at)
    if os.fstat(found).st_dev != device:
        os.close(found)
        raise OSError(errno.EXDEV, "another file system is mounted there")
    return found


def exchange_names(source: int, old: bytes, target: int, new: bytes) -> None:
    """Exchange two names in directories, given by their handles. EINVAL where the host cannot."""
    if _libc is None or not hasattr(_libc, "renameat2"):
        raise OSError(errno.EINVAL, "cannot exchange names")
    if _libc.renameat2(source, old, target, new, ctypes.c_uint(_EXCHANGE)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _is_link(name: bytes, directory: int) -> bool:
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _openat2(root: int, path: bytes, flags: int) -> int:
    how = struct.pack("=QQQ", flags, 0, _RESOLVE)
    assert _libc is not None
    for _ in range(_TRIES):
        found: int = _libc.syscall(_OPENAT2, root, path, how, len(how))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number))


def _find_openat2() -> bool:
    """Whether this system has openat2, and lets us use it."""
    if _libc is None:
        return False
    root = os.open("/", HANDLE | os.O_CLOEXEC)
    try:
        how = struct.pack("=QQQ", HANDLE | os.O_CLOEXEC, 0, _RESOLVE)
        found = _libc.syscall(_OPENAT2, root, b".", how, len(how))
        if found < 0:
            return False
        os.close(found)
    finally:
        os.close(root)
    return True


_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
_has_openat2: Final = _find_openat2()
