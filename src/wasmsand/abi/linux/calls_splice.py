"""splice: data transfer from or to a pipe without passing through guest memory.

Owns splice(2). Rules: at least one side is a pipe. What the target does not take stays in the
source pipe. The other side may be a pipe, a regular file or a simple device; anything else is
EINVAL, and programs then use read and write.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.file_size import within_file_size
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.transfers import write_some
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.device import SimpleDevice
from wasmsand.kernel.files.pipe import PipeEnd
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.flags import O_APPEND
from wasmsand.kernel.limits import FILE_SIZE_MAX, IO_CHUNK
from wasmsand.kernel.wait import OutsideWait, WouldBlock

_SPLICE_F_NONBLOCK: Final = 2
_SPLICE_FLAGS: Final = 0b1111


def splice(
    context: CallContext,
    in_fd: int,
    in_address: int,
    out_fd: int,
    out_address: int,
    count: int,
    flags: int,
) -> int:
    """splice(2)."""
    if not count:
        return 0
    if flags & ~_SPLICE_FLAGS:
        raise KernelError(Errno.EINVAL)
    source, target = context.file(in_fd), context.file(out_fd)
    source.require_readable()
    target.require_writable()
    for file, address in ((source, in_address), (target, out_address)):
        if isinstance(file, PipeEnd) and address:
            raise KernelError(Errno.ESPIPE)
    count = min(count, IO_CHUNK)
    try:
        if isinstance(source, PipeEnd) and isinstance(target, PipeEnd):
            return _pipe_to_pipe(context, source, target, count)
        if isinstance(source, PipeEnd):
            return _pipe_to_file(context, source, target, out_address, count)
        if isinstance(target, PipeEnd):
            return _file_to_pipe(context, source, in_address, target, count)
    except WouldBlock as block:
        if flags & _SPLICE_F_NONBLOCK and not isinstance(block, OutsideWait):
            raise KernelError(Errno.EAGAIN) from None
        raise
    raise KernelError(Errno.EINVAL)


def _pipe_to_pipe(context: CallContext, source: PipeEnd, target: PipeEnd, count: int) -> int:
    if source.pipe is target.pipe:
        raise KernelError(Errno.EINVAL)
    room = target.pipe.room()
    if target.pipe.readers and not room:
        raise target.wait_or_fail(target.pipe.changed)
    data = source.read(min(count, room) or count)
    return _give(context, source, target, data)


def _pipe_to_file(
    context: CallContext, source: PipeEnd, target: OpenFile, address: int, count: int
) -> int:
    if not isinstance(target, RegularFile | SimpleDevice) or target.flags & O_APPEND:
        raise KernelError(Errno.EINVAL)
    if not address:
        return _give(context, source, target, source.read(count))
    offset = _offset(context, address)
    data = source.read(count)
    written = 0
    try:
        regular = isinstance(target, RegularFile)
        allowed = within_file_size(context, data, offset) if regular else data
        written = target.write_at(allowed, offset)
    finally:
        source.pipe.put_back(data[written:])
    context.memory.write_u64(address, offset + written)
    return written


def _give(context: CallContext, source: PipeEnd, target: OpenFile, data: bytes) -> int:
    """Write data taken from `source`; put the rest back."""
    if not data:
        return 0
    written = 0
    try:
        written = write_some(context, target, data)
    finally:
        source.pipe.put_back(data[written:])
    return written


def _file_to_pipe(
    context: CallContext, source: OpenFile, address: int, target: PipeEnd, count: int
) -> int:
    if not isinstance(source, RegularFile | SimpleDevice):
        raise KernelError(Errno.EINVAL)
    room = target.pipe.room()
    if target.pipe.readers and not room:
        raise target.wait_or_fail(target.pipe.changed)
    count = min(count, room) or count
    if not address:
        data = source.read(count)
        return write_some(context, target, data) if data else 0
    offset = _offset(context, address)
    data = source.read_at(count, offset)
    written = write_some(context, target, data) if data else 0
    context.memory.write_u64(address, offset + written)
    return written


def _offset(context: CallContext, address: int) -> int:
    offset = context.memory.read_u64(address)
    if offset > FILE_SIZE_MAX:
        raise KernelError(Errno.EINVAL)
    return offset
