"""File descriptors: open, close, dup, pipe, fcntl, getdents.

Owns the calls that create, duplicate and describe fds.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.linux.calls_lock import record_lock
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.linux.structs import pack_dirents
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.opening import open_memory, open_path
from wasmsand.kernel.files.pipe import PipeEnd, make_pipe
from wasmsand.kernel.files.regular import DirectoryFile
from wasmsand.kernel.flags import (
    F_DUPFD,
    F_DUPFD_CLOEXEC,
    F_GETFD,
    F_GETFL,
    F_GETLK64,
    F_GETOWN,
    F_GETPIPE_SZ,
    F_SETFD,
    F_SETFL,
    F_SETLK64,
    F_SETLKW64,
    F_SETOWN,
    F_SETPIPE_SZ,
    FD_CLOEXEC,
    O_CLOEXEC,
    O_LARGEFILE,
    O_NONBLOCK,
    O_STATUS_SETTABLE,
    S_IFIFO,
)
from wasmsand.kernel.limits import DIRENT_BYTES_PER_HOLD, MEMFD_NAME_MAX

_O_DIRECT: Final = 0o40000
_DIRENT_MIN: Final = 24
_MFD_CLOEXEC: Final = 1
_MFD_ALLOW_SEALING: Final = 2
_MFD_NOEXEC_SEAL: Final = 8
_MFD_EXEC: Final = 16
_CLOSE_RANGE_UNSHARE: Final = 2
_CLOSE_RANGE_CLOEXEC: Final = 4


def openat(context: CallContext, directory: int, path: int, flags: int, mode: int) -> int:
    """openat(2)."""
    name = context.memory.read_path(path)
    process = context.process
    process.fds.require_room()  # before a file is created or truncated
    base = process.cwd if name.startswith(b"/") else context.directory(directory)
    file = open_path(
        context.kernel, context.thread, base, name, flags & ~O_LARGEFILE, mode & 0o7777
    )
    return process.fds.install(file, close_on_exec=bool(flags & O_CLOEXEC))


def memfd_create(context: CallContext, name: int, flags: int) -> int:
    """memfd_create(2). The sealing flag is accepted, but seals cannot be set."""
    if flags & ~(_MFD_CLOEXEC | _MFD_ALLOW_SEALING | _MFD_NOEXEC_SEAL | _MFD_EXEC):
        raise KernelError(Errno.EINVAL)
    context.memory.read_string(name, MEMFD_NAME_MAX, Errno.EINVAL)
    context.process.fds.require_room()
    file = open_memory(context.kernel)
    return context.process.fds.install(file, close_on_exec=bool(flags & _MFD_CLOEXEC))


def close(context: CallContext, fd: int) -> int:
    """close(2)."""
    context.process.fds.close(fd)
    return 0


def close_range(context: CallContext, first: int, last: int, flags: int) -> int:
    """close_range(2)."""
    if first > last or flags & ~(_CLOSE_RANGE_CLOEXEC | _CLOSE_RANGE_UNSHARE):
        raise KernelError(Errno.EINVAL)
    fds = context.process.fds
    for fd in list(fds):
        if first <= fd <= last:
            if flags & _CLOSE_RANGE_CLOEXEC:
                fds.set_close_on_exec(fd, True)
            else:
                fds.close(fd)
    return 0


def dup(context: CallContext, fd: int) -> int:
    """dup(2)."""
    return context.process.fds.install(context.file_or_path(fd))


def dup3(context: CallContext, old: int, new: int, flags: int) -> int:
    """dup3(2)."""
    if flags & ~O_CLOEXEC or old == new:
        raise KernelError(Errno.EINVAL)
    file = context.file_or_path(old)
    context.process.fds.replace(new, file, close_on_exec=bool(flags & O_CLOEXEC))
    return new


def pipe2(context: CallContext, address: int, flags: int) -> int:
    """pipe2(2)."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK | _O_DIRECT):
        raise KernelError(Errno.EINVAL)
    context.memory.require(address, 8)
    kernel, process = context.kernel, context.process
    stat = kernel.anonymous.new(S_IFIFO | 0o600, process.identity.euid, process.identity.egid)
    reader, writer = make_pipe(kernel.pipes, flags & O_NONBLOCK, stat)
    on_exec = bool(flags & O_CLOEXEC)
    try:
        read_fd = process.fds.install(reader, close_on_exec=on_exec)
    except KernelError:
        writer.dispose()
        raise
    try:
        write_fd = process.fds.install(writer, close_on_exec=on_exec)
    except KernelError:
        process.fds.close(read_fd)
        raise
    context.memory.write_u32(address, read_fd)
    context.memory.write_u32(address + 4, write_fd)
    return 0


def fcntl(context: CallContext, fd: int, command: int, argument: int) -> int:
    """fcntl64(2)."""
    fds = context.process.fds
    file = fds.get(fd)
    if command in (F_DUPFD, F_DUPFD_CLOEXEC):
        if argument >= fds.limit:
            raise KernelError(Errno.EINVAL)
        return fds.install(file, close_on_exec=command == F_DUPFD_CLOEXEC, minimum=argument)
    if command == F_GETFD:
        return FD_CLOEXEC if fds.close_on_exec(fd) else 0
    if command == F_SETFD:
        fds.set_close_on_exec(fd, bool(argument & FD_CLOEXEC))
        return 0
    if command == F_GETFL:
        return file.flags | O_LARGEFILE
    file = context.file(fd)
    if command == F_SETFL:
        file.flags = file.flags & ~O_STATUS_SETTABLE | argument & O_STATUS_SETTABLE
        return 0
    if command in (F_GETPIPE_SZ, F_SETPIPE_SZ):
        if not isinstance(file, PipeEnd):
            raise KernelError(Errno.EBADF)
        if command == F_SETPIPE_SZ:
            file.pipe.resize(argument)
        return file.pipe.capacity
    if command in (F_GETLK64, F_SETLK64, F_SETLKW64):
        return record_lock(context, fd, command, argument)
    if command in (F_GETOWN, F_SETOWN):
        return 0
    raise KernelError(Errno.EINVAL, f"fcntl {command}")


def getdents64(context: CallContext, fd: int, address: int, size: int) -> int:
    """getdents64(2)."""
    file = context.file(fd)
    if not isinstance(file, DirectoryFile):
        raise KernelError(Errno.ENOTDIR)
    size = min(size, DIRENT_BYTES_PER_HOLD)
    context.memory.require(address, size)
    limit = max(1, size // _DIRENT_MIN)
    entries = file.entries(limit)
    if not entries:
        return 0
    at_end = len(entries) < limit and file.lists_fully
    records, cookie = pack_dirents(entries, size, at_end=at_end)
    if not records:
        raise KernelError(Errno.EINVAL)
    context.memory.write(address, records)
    file.position = cookie
    return len(records)
