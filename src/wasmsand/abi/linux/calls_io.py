"""I/O: read, write and their variants; seek, truncate, sync, sendfile.

Owns the I/O calls. Rules: transfers between files and memory are in `abi.transfers`; the most
frequent forms of read and write have a fast path here.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from wasmsand.abi.file_size import require_file_size, within_file_size
from wasmsand.abi.linux.context import CallContext, signed64
from wasmsand.abi.transfers import (
    read_file,
    read_pieces,
    vectors_at,
    write_all,
    write_all_at,
    write_some,
)
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.flags import O_APPEND
from wasmsand.kernel.limits import FILE_SIZE_MAX, IO_CHUNK, IO_MAX
from wasmsand.kernel.process.rlimits import INFINITY

_FALLOC_FL_KEEP_SIZE: Final = 1
# RWF_HIPRI, RWF_DSYNC, RWF_SYNC; for reading also RWF_NOWAIT.
_RWF_WRITING: Final = 0x1 | 0x2 | 0x4
_RWF_READING: Final = _RWF_WRITING | 0x8
_OFFSET_MAX: Final = (1 << 63) - 1
_LINE_MAX: Final = 4096
"""How far `read_until` looks for the delimiter."""

_TWO_VECTORS: Final = Struct("<4I")


def read(context: CallContext, fd: int, address: int, count: int) -> int:
    """read(2)."""
    file = context.process.fds.get(fd)
    if count > IO_CHUNK:
        return read_pieces(
            context, [(address, count)], lambda size, done: read_file(context, file, size)
        )
    memory = context.memory
    memory.require(address, count)
    data = read_file(context, file, count)
    if data:
        memory.write(address, data)
    return len(data)


def read_until(context: CallContext, fd: int, address: int, count: int, delimiter: int) -> int:
    """Like read(2), but what follows the first `delimiter` stays in the file: programs that share
    the file with others would have to read byte by byte. EINVAL for files other than pipes and
    regular ones; with a count of 0, a program finds out which it has."""
    file = context.process.fds.get(fd)
    if not 0 <= delimiter <= 0xFF:
        raise KernelError(Errno.EINVAL)
    count = min(count, _LINE_MAX)
    memory = context.memory
    memory.require(address, count)
    file.require_readable()
    data = file.read_until(count, delimiter)
    if data:
        memory.write(address, data)
    return len(data)


def write(context: CallContext, fd: int, address: int, count: int) -> int:
    """write(2)."""
    file = context.process.fds.get(fd)
    file.require_writable()
    if count > IO_CHUNK or context.thread.call.done:
        return write_all(context, file, [(address, min(count, IO_MAX))])
    written = write_some(context, file, context.memory.read(address, count))
    if written == count or not file.writes_all:
        return written
    return write_all(context, file, [(address, count)], written)


def readv(context: CallContext, fd: int, address: int, count: int) -> int:
    """readv(2)."""
    file = context.file(fd)
    vectors = vectors_at(context, address, count)
    return read_pieces(context, vectors, lambda size, done: read_file(context, file, size))


def writev(context: CallContext, fd: int, address: int, count: int) -> int:
    """writev(2)."""
    process = context.process
    file = process.fds.get(fd)
    file.require_writable()
    if count != 2 or context.thread.call.done:
        return write_all(context, file, vectors_at(context, address, count))
    # stdio writes two vectors: its buffer, and the new data.
    memory = context.memory
    first, first_size, second, second_size = memory.unpack(_TWO_VECTORS, address)
    if first_size + second_size > IO_CHUNK:
        return write_all(context, file, vectors_at(context, address, count))
    data = memory.read(second, second_size)
    if first_size:
        data = memory.read(first, first_size) + data
    written = write_some(context, file, data)
    if written == len(data) or not file.writes_all:
        return written
    return write_all(context, file, vectors_at(context, address, count), written)


def _offset(low: int, high: int) -> int:
    offset = signed64(low, high)
    if offset < 0:
        raise KernelError(Errno.EINVAL)
    return offset


def pread(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pread64(2)."""
    file = context.file(fd)
    offset = _offset(low, high) if high else low
    file.require_readable()
    if count > IO_CHUNK:
        return read_pieces(
            context, [(address, count)], lambda size, done: file.read_at(size, offset + done)
        )
    memory = context.memory
    memory.require(address, count)
    data = file.read_at(count, offset)
    if data:
        memory.write(address, data)
    return len(data)


def pwrite(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pwrite64(2)."""
    file = context.file(fd)
    offset = _offset(low, high) if high else low
    file.require_writable()
    unlimited = context.process.rlimits.file_size == INFINITY
    if unlimited and count <= IO_CHUNK and type(file) is RegularFile:
        return file.write_at(context.memory.read(address, count), offset)
    return write_all_at(context, file, [(address, min(count, IO_MAX))], offset)


def preadv(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """preadv(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_readable()
    return read_pieces(
        context,
        vectors_at(context, address, count),
        lambda size, done: file.read_at(size, offset + done),
    )


def pwritev(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pwritev(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_writable()
    return write_all_at(context, file, vectors_at(context, address, count), offset)


def preadv2(
    context: CallContext, fd: int, address: int, count: int, low: int, high: int, flags: int
) -> int:
    """preadv2(2). Files are in memory, so the flags have no effect."""
    if flags & ~_RWF_READING:
        raise KernelError(Errno.EOPNOTSUPP)
    if signed64(low, high) == -1:
        return readv(context, fd, address, count)
    return preadv(context, fd, address, count, low, high)


def pwritev2(
    context: CallContext, fd: int, address: int, count: int, low: int, high: int, flags: int
) -> int:
    """pwritev2(2), without RWF_APPEND."""
    if flags & ~_RWF_WRITING:
        raise KernelError(Errno.EOPNOTSUPP)
    if signed64(low, high) == -1:
        return writev(context, fd, address, count)
    return pwritev(context, fd, address, count, low, high)


def llseek(context: CallContext, fd: int, high: int, low: int, result: int, whence: int) -> int:
    """_llseek(2)."""
    context.memory.require(result, 8)
    position = context.file(fd).seek(signed64(low, high), whence)
    context.memory.write_u64(result, position)
    return 0


def ftruncate(context: CallContext, fd: int, low: int, high: int) -> int:
    """ftruncate64(2)."""
    file = context.file(fd)
    length = _offset(low, high)
    try:
        file.require_writable()
    except KernelError:
        raise KernelError(Errno.EINVAL) from None
    if length > FILE_SIZE_MAX:
        raise KernelError(Errno.EFBIG)
    if file.node is not None:
        require_file_size(context, file.node, length)
    file.truncate(length)
    return 0


def fallocate(
    context: CallContext,
    fd: int,
    mode: int,
    low: int,
    high: int,
    length_low: int,
    length_high: int,
) -> int:
    """fallocate(2)."""
    file = context.file(fd)
    offset, length = _offset(low, high), signed64(length_low, length_high)
    file.require_writable()
    if length <= 0:
        raise KernelError(Errno.EINVAL)
    if not isinstance(file, RegularFile) or file.node is None:
        raise KernelError(Errno.ENODEV)
    if not mode & _FALLOC_FL_KEEP_SIZE:
        require_file_size(context, file.node, offset + length)
    context.kernel.namespace.fallocate(file.credentials, file.node, mode, offset, length)
    return 0


def fsync(context: CallContext, fd: int) -> int:
    """fsync(2), fdatasync(2), syncfs(2): files are in memory, so nothing is written back."""
    context.file(fd).sync()
    return 0


def sync(context: CallContext) -> int:
    """sync(2)."""
    return 0


def sendfile(context: CallContext, out_fd: int, in_fd: int, offset_address: int, count: int) -> int:
    """sendfile64(2)."""
    source, target = context.file(in_fd), context.file(out_fd)
    source.require_readable()
    target.require_writable()
    if not isinstance(source, RegularFile):
        raise KernelError(Errno.EINVAL)
    start = _position(context, source, offset_address)
    if start > _OFFSET_MAX:
        raise KernelError(Errno.EINVAL)
    data = source.read_at(min(count, IO_CHUNK), start)
    written = write_some(context, target, data) if data else 0
    _set_position(context, source, offset_address, start + written)
    return written


def _position(context: CallContext, file: RegularFile, address: int) -> int:
    """The start of a transfer: the offset at `address`; if that is NULL, the file's position."""
    return context.memory.read_u64(address) if address else file.position


def _set_position(context: CallContext, file: RegularFile, address: int, position: int) -> None:
    """Store the end of a transfer where `_position` read its start."""
    if address:
        context.memory.write_u64(address, position)
    else:
        file.position = position


def copy_file_range(
    context: CallContext,
    in_fd: int,
    in_address: int,
    out_fd: int,
    out_address: int,
    count: int,
    flags: int,
) -> int:
    """copy_file_range(2)."""
    source, target = context.file(in_fd), context.file(out_fd)
    source.require_readable()
    target.require_writable()
    if not isinstance(source, RegularFile) or not isinstance(target, RegularFile) or flags:
        raise KernelError(Errno.EINVAL)
    start = _position(context, source, in_address)
    to = _position(context, target, out_address)
    if start > FILE_SIZE_MAX or to > FILE_SIZE_MAX:
        raise KernelError(Errno.EINVAL)
    if target.flags & O_APPEND:
        raise KernelError(Errno.EBADF)
    count = max(0, min(count, source.stat().size - start))
    if source.node == target.node and start < to + count and to < start + count:
        raise KernelError(Errno.EINVAL)
    data = source.read_at(min(count, IO_CHUNK), start)
    data = within_file_size(context, data, to)
    written = target.write_at(data, to) if data else 0
    _set_position(context, source, in_address, start + written)
    _set_position(context, target, out_address, to + written)
    return written


def fadvise(context: CallContext, fd: int) -> int:
    """fadvise64(2): there is no cache to advise about."""
    context.file(fd)
    return 0
