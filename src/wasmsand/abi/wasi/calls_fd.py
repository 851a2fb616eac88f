"""Descriptors and their files: flags, rights, metadata, allocation, closing.

Owns the fd_* functions that transfer no data.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.file_size import require_file_size
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.rights import Right
from wasmsand.abi.wasi.structs import (
    FDSTAT,
    file_type,
    pack_filestat,
    pack_filestat_unstable,
)
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.flags import O_APPEND, O_NONBLOCK
from wasmsand.kernel.limits import FILE_SIZE_MAX
from wasmsand.kernel.vfs import NOW, FileTime, Node, Stat

FLAG_APPEND: Final = 1
FLAG_DSYNC: Final = 2
FLAG_NONBLOCK: Final = 4
FLAG_RSYNC: Final = 8
FLAG_SYNC: Final = 16
SYNC_FLAGS: Final = FLAG_DSYNC | FLAG_RSYNC | FLAG_SYNC
ALL_FLAGS: Final = FLAG_APPEND | FLAG_NONBLOCK | SYNC_FLAGS
_ADVICES: Final = 6
_TIMES_ACCESS, _TIMES_ACCESS_NOW, _TIMES_MODIFIED, _TIMES_MODIFIED_NOW = 1, 2, 4, 8


def open_flags(flags: int) -> int:
    """The kernel's open flags for descriptor flags; EINVAL for unknown ones."""
    if flags & ~ALL_FLAGS:
        raise KernelError(Errno.EINVAL)
    return (O_APPEND if flags & FLAG_APPEND else 0) | (O_NONBLOCK if flags & FLAG_NONBLOCK else 0)


def fd_close(context: WasiContext, fd: int) -> int:
    """Close a descriptor."""
    context.descriptors.close(fd)
    return 0


def fd_renumber(context: WasiContext, fd: int, to: int) -> int:
    """Move a descriptor to the number of another, which is closed."""
    context.descriptors.renumber(fd, to)
    return 0


def fd_fdstat_get(context: WasiContext, fd: int, result: int) -> int:
    """File type, flags and rights."""
    descriptor = context.descriptors.get(fd)
    file = descriptor.file
    flags = descriptor.sync_flags
    if file.flags & O_APPEND:
        flags |= FLAG_APPEND
    if file.flags & O_NONBLOCK:
        flags |= FLAG_NONBLOCK
    kind = file_type(file.stat().mode)
    context.memory.pack(FDSTAT, result, kind, flags, descriptor.base, descriptor.inheriting)
    return 0


def fd_fdstat_set_flags(context: WasiContext, fd: int, flags: int) -> int:
    """Set the flags, which all descriptors of the same open file share."""
    descriptor = context.descriptor(fd, Right.FD_FDSTAT_SET_FLAGS, Errno.EINVAL)
    file = descriptor.file
    file.flags = file.flags & ~(O_APPEND | O_NONBLOCK) | open_flags(flags)
    descriptor.sync_flags = flags & SYNC_FLAGS
    return 0


def fd_fdstat_set_rights(context: WasiContext, fd: int, base: int, inheriting: int) -> int:
    """Give up rights."""
    context.descriptors.get(fd).restrict(base, inheriting)
    return 0


def fd_filestat_get(context: WasiContext, fd: int, result: int) -> int:
    """Metadata of an open file."""
    context.memory.write(result, pack_filestat(_stat(context, fd)))
    return 0


def fd_filestat_get_unstable(context: WasiContext, fd: int, result: int) -> int:
    """Metadata of an open file, in the layout of wasi_unstable."""
    context.memory.write(result, pack_filestat_unstable(_stat(context, fd)))
    return 0


def _stat(context: WasiContext, fd: int) -> Stat:
    return context.descriptor(fd, Right.FD_FILESTAT_GET, Errno.EINVAL).file.stat()


def fd_filestat_set_size(context: WasiContext, fd: int, size: int) -> int:
    """Set the size of a file."""
    descriptor = context.descriptor(fd, Right.FD_FILESTAT_SET_SIZE, Errno.EINVAL)
    file = descriptor.file
    file.require_writable()
    if size > FILE_SIZE_MAX:
        raise KernelError(Errno.EFBIG)
    assert file.node is not None  # only regular files have the right
    require_file_size(context, file.node, size)
    file.truncate(size)
    return 0


def fd_filestat_set_times(
    context: WasiContext, fd: int, access: int, modified: int, flags: int
) -> int:
    """Set the times of an open file."""
    descriptor = context.descriptor(fd, Right.FD_FILESTAT_SET_TIMES, Errno.EINVAL)
    assert descriptor.file.node is not None
    set_times(context, descriptor.file.node, access, modified, flags)
    return 0


def set_times(context: WasiContext, node: Node, access: int, modified: int, flags: int) -> None:
    """Set the times selected by the flags, each to the given time or to now."""
    chosen: list[FileTime | None] = []
    for given, present, value in (
        (_TIMES_ACCESS, _TIMES_ACCESS_NOW, access),
        (_TIMES_MODIFIED, _TIMES_MODIFIED_NOW, modified),
    ):
        if flags & given and flags & present:
            raise KernelError(Errno.EINVAL)
        chosen.append(value if flags & given else NOW if flags & present else None)
    known = _TIMES_ACCESS | _TIMES_ACCESS_NOW | _TIMES_MODIFIED | _TIMES_MODIFIED_NOW
    if flags & ~known:
        raise KernelError(Errno.EINVAL)
    context.kernel.namespace.utimens(context.credentials(), node, chosen[0], chosen[1])


def fd_advise(context: WasiContext, fd: int, offset: int, size: int, advice: int) -> int:
    """There is no cache to advise about."""
    context.descriptor(fd, Right.FD_ADVISE, Errno.ESPIPE)
    if advice >= _ADVICES:
        raise KernelError(Errno.EINVAL)
    return 0


def fd_allocate(context: WasiContext, fd: int, offset: int, size: int) -> int:
    """Reserve space for a range of a file."""
    descriptor = context.descriptors.get(fd)
    inapplicable = Errno.ENODEV if descriptor.start is None else Errno.EISDIR
    descriptor.require(Right.FD_ALLOCATE, inapplicable)
    file = descriptor.file
    assert isinstance(file, RegularFile)  # only regular files have the right
    assert file.node is not None
    file.require_writable()
    if offset + size > FILE_SIZE_MAX:
        raise KernelError(Errno.EFBIG)
    require_file_size(context, file.node, offset + size)
    context.kernel.namespace.fallocate(file.credentials, file.node, 0, offset, size)
    return 0


def fd_sync(context: WasiContext, fd: int) -> int:
    """Files are in memory, so nothing is written back."""
    context.descriptor(fd, Right.FD_SYNC, Errno.EINVAL)
    return 0


def fd_datasync(context: WasiContext, fd: int) -> int:
    """The same for the content alone."""
    context.descriptor(fd, Right.FD_DATASYNC, Errno.EINVAL)
    return 0
