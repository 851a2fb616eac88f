"""I/O: fd_read, fd_write and their variants, fd_seek, fd_tell, fd_readdir.

Rules: transfers between files and memory are in `abi.transfers`; the address of the result is
checked before any data is transferred.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wasmsand.abi.transfers import (
    read_file,
    read_pieces,
    vectors_at,
    write_all,
    write_all_at,
    write_some,
)
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.descriptors import Descriptor
from wasmsand.abi.wasi.rights import Right
from wasmsand.abi.wasi.structs import DIRENT_BYTES, pack_dirent
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.regular import DirectoryFile
from wasmsand.kernel.flags import SEEK_CUR, SEEK_END, SEEK_SET
from wasmsand.kernel.limits import DIRENT_BYTES_PER_HOLD, FILE_SIZE_MAX, IO_CHUNK
from wasmsand.kernel.wait import Yield

_READ: Final = Right.FD_READ
_WRITE: Final = Right.FD_WRITE
_SEEK: Final = Right.FD_SEEK
_TELL: Final = Right.FD_TELL
_READDIR: Final = Right.FD_READDIR
_VECTOR: Final = Struct("<II")
_WHENCE: Final = (SEEK_SET, SEEK_CUR, SEEK_END)
_WHENCE_UNSTABLE: Final = (SEEK_CUR, SEEK_END, SEEK_SET)


def fd_read(context: WasiContext, fd: int, vectors: int, count: int, result: int) -> int:
    """Read at the current position."""
    memory = context.memory
    memory.require(result, 4)
    descriptor = context.descriptors.get(fd)
    if not descriptor.base & _READ:
        descriptor.require(_READ, Errno.EISDIR)
    file = descriptor.file
    if count == 1:  # the usual case
        address, size = memory.unpack(_VECTOR, vectors)
        if size <= IO_CHUNK:
            memory.require(address, size)
            data = read_file(context, file, size)
            memory.write(address, data)
            memory.write_u32(result, len(data))
            return 0
    places = vectors_at(context, vectors, count)
    done = read_pieces(context, places, lambda size, done: read_file(context, file, size))
    memory.write_u32(result, done)
    return 0


def fd_write(context: WasiContext, fd: int, vectors: int, count: int, result: int) -> int:
    """Write at the current position."""
    memory = context.memory
    memory.require(result, 4)
    descriptor = context.descriptors.get(fd)
    if not descriptor.base & _WRITE:
        descriptor.require(_WRITE, Errno.EISDIR)
    file = descriptor.file
    file.require_writable()
    done = 0
    if count == 1 and not context.thread.call.done:  # the usual case
        address, size = memory.unpack(_VECTOR, vectors)
        if size <= IO_CHUNK:
            done = write_some(context, file, memory.read(address, size))
            if done == size or not file.writes_all:
                memory.write_u32(result, done)
                return 0
    done = write_all(context, file, vectors_at(context, vectors, count), done)
    memory.write_u32(result, done)
    return 0


def _positioned(context: WasiContext, fd: int, right: int) -> Descriptor:
    """A descriptor for reading or writing at an offset."""
    descriptor = context.descriptor(fd, right, Errno.EISDIR)
    descriptor.require(_SEEK, Errno.ESPIPE)
    return descriptor


def _offset(offset: int) -> int:
    if offset > FILE_SIZE_MAX:
        raise KernelError(Errno.EINVAL)
    return offset


def fd_pread(
    context: WasiContext, fd: int, vectors: int, count: int, offset: int, result: int
) -> int:
    """Read at an offset, without moving the position."""
    context.memory.require(result, 4)
    file = _positioned(context, fd, _READ).file
    start = _offset(offset)
    places = vectors_at(context, vectors, count)
    done = read_pieces(context, places, lambda size, done: file.read_at(size, start + done))
    context.memory.write_u32(result, done)
    return 0


def fd_pwrite(
    context: WasiContext, fd: int, vectors: int, count: int, offset: int, result: int
) -> int:
    """Write at an offset, without moving the position."""
    context.memory.require(result, 4)
    file = _positioned(context, fd, _WRITE).file
    file.require_writable()
    places = vectors_at(context, vectors, count)
    context.memory.write_u32(result, write_all_at(context, file, places, _offset(offset)))
    return 0


def _seek(context: WasiContext, fd: int, offset: int, whence: int, result: int) -> int:
    context.memory.require(result, 8)
    offset -= (offset >> 63) << 64
    asks_only = whence == SEEK_CUR and not offset
    descriptor = context.descriptors.get(fd)
    if not (asks_only and descriptor.base & _TELL):
        inapplicable = Errno.EISDIR if descriptor.start is not None else Errno.ESPIPE
        descriptor.require(_SEEK, inapplicable)
    context.memory.write_u64(result, descriptor.file.seek(offset, whence))
    return 0


def fd_seek(context: WasiContext, fd: int, offset: int, whence: int, result: int) -> int:
    """Set the position."""
    if whence >= len(_WHENCE):
        raise KernelError(Errno.EINVAL)
    return _seek(context, fd, offset, _WHENCE[whence], result)


def fd_seek_unstable(context: WasiContext, fd: int, offset: int, whence: int, result: int) -> int:
    """Set the position; wasi_unstable numbers the origins differently."""
    if whence >= len(_WHENCE_UNSTABLE):
        raise KernelError(Errno.EINVAL)
    return _seek(context, fd, offset, _WHENCE_UNSTABLE[whence], result)


def fd_tell(context: WasiContext, fd: int, result: int) -> int:
    """The position."""
    return _seek(context, fd, 0, SEEK_CUR, result)


def fd_readdir(
    context: WasiContext, fd: int, buffer: int, size: int, cookie: int, result: int
) -> int:
    """The entries after a cookie, as many as fit; the last one may be cut off. A buffer that is not
    full means that there are no more entries."""
    memory = context.memory
    memory.require(result, 4)
    memory.require(buffer, size)
    file = context.descriptor(fd, _READDIR, Errno.ENOTDIR).file
    assert isinstance(file, DirectoryFile)  # only directories have the right
    call = context.thread.call
    done = call.done
    if isinstance(call.progress, int):  # the cookie of the last entry written
        cookie = call.progress
    room = min(size - done, DIRENT_BYTES_PER_HOLD)
    ends_here = done + room == size
    wanted = 1 + room // DIRENT_BYTES
    entries = file.entries_after(cookie, wanted)
    are_last = len(entries) < wanted
    records = bytearray()
    for entry in entries:
        if len(records) >= room:
            are_last = False
            break
        record = pack_dirent(entry)
        if len(records) + len(record) > room and not ends_here:
            are_last = False  # an entry is cut off only at the end of the buffer
            break
        records += record
        cookie = entry.cookie
    memory.write(buffer + done, records[:room])
    done += min(len(records), room)
    if not are_last and done < size:
        call.done, call.progress = done, cookie
        raise Yield
    memory.write_u32(result, done)
    return 0
