"""File locks: flock, and fcntl's record locks.

Owns their decoding. Rules: a range is normalised to [start, end) before the kernel sees it.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wasmsand.abi.linux.context import CallContext
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.locks import END_OF_FILE, F_RDLCK, F_UNLCK, F_WRLCK
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.flags import F_GETLK64, F_SETLKW64, SEEK_CUR, SEEK_END, SEEK_SET
from wasmsand.kernel.vfs import Node

_FLOCK: Final = Struct("<hh4xqqi4x")


def flock(context: CallContext, fd: int, operation: int) -> int:
    """flock(2)."""
    file = context.file(fd)
    node = _node_of(file)
    locks = context.kernel.locks
    locks.flock(file, node, operation)
    file.on_last_close = lambda: locks.drop_description(file, node)
    return 0


def _node_of(file: OpenFile) -> Node:
    node = file.node
    if node is None:
        raise KernelError(Errno.EBADF)
    return node


def record_lock(context: CallContext, fd: int, command: int, address: int) -> int:
    """fcntl F_GETLK, F_SETLK, F_SETLKW."""
    file = context.file(fd)
    node = _node_of(file)
    kind, whence, offset, length, _ = context.memory.unpack(_FLOCK, address)
    start, end = _range(file, whence, offset, length)
    locks, pid = context.kernel.locks, context.process.pid
    if command == F_GETLK64:
        if kind not in (F_RDLCK, F_WRLCK):
            raise KernelError(Errno.EINVAL)
        found = locks.find_conflict(pid, node, kind, start, end)
        if found is None:
            context.memory.pack(_FLOCK, address, F_UNLCK, whence, offset, length, 0)
        else:
            size = 0 if found.end == END_OF_FILE else found.end - found.start
            context.memory.pack(_FLOCK, address, found.kind, SEEK_SET, found.start, size, found.pid)
        return 0
    if kind == F_RDLCK:
        file.require_readable()
    elif kind == F_WRLCK:
        file.require_writable()
    elif kind != F_UNLCK:
        raise KernelError(Errno.EINVAL)
    locks.set_record(pid, node, kind, start, end, wait=command == F_SETLKW64)

    def drop_on_close(closed: OpenFile) -> None:
        if closed.node is not None:
            locks.drop_process(pid, closed.node)

    context.process.fds.on_close = drop_on_close
    return 0


def _range(file: OpenFile, whence: int, offset: int, length: int) -> tuple[int, int]:
    if whence == SEEK_CUR:
        offset += file.position if isinstance(file, RegularFile) else 0
    elif whence == SEEK_END:
        offset += file.stat().size
    elif whence != SEEK_SET:
        raise KernelError(Errno.EINVAL)
    if length < 0:
        offset, length = offset + length, -length
    if offset < 0:
        raise KernelError(Errno.EINVAL)
    return offset, min(offset + length, END_OF_FILE) if length else END_OF_FILE
