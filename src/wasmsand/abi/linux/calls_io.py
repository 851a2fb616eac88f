"""Moving bytes: read, write and their relatives; seek, truncate, sync, sendfile.

Owns the I/O calls. Rules: the guest's buffer is checked before data is taken from a
file; the host holds at most IO_CHUNK bytes at once, and a longer transfer is done in
pieces, because on Linux only streams move less than was asked for; a blocking stream
write goes on over several tries and remembers how far it came; EPIPE comes with
SIGPIPE.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from wasmsand.abi.linux.context import CallContext, signed64
from wasmsand.abi.linux.file_size import require_file_size, within_file_size
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.files.terminal import TerminalFile
from wasmsand.kernel.flags import O_APPEND
from wasmsand.kernel.limits import FILE_SIZE_MAX, IO_CHUNK, IO_MAX, IOV_MAX
from wasmsand.kernel.process.delivery import SI_KERNEL, post
from wasmsand.kernel.process.groups import (
    require_foreground_to_change,
    require_foreground_to_read,
)
from wasmsand.kernel.process.rlimits import INFINITY
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.wait import WouldBlock

_FALLOC_FL_KEEP_SIZE: Final = 1
_OFFSET_MAX: Final = (1 << 63) - 1

_TWO_VECTORS: Final = Struct("<4I")


def _read_file(context: CallContext, file: OpenFile, count: int) -> bytes:
    file.require_readable()
    if isinstance(file, TerminalFile):
        return _read_terminal(context, file, count)
    return file.read(count)


def _read_terminal(context: CallContext, file: TerminalFile, count: int) -> bytes:
    require_foreground_to_read(context.kernel, context.process, file.terminal)
    try:
        return file.read(count)
    except WouldBlock as block:
        timeout = file.read_timeout()
        if not timeout:
            raise
        process = context.process
        now = context.kernel.clock.monotonic()
        if process.call_deadline is None:
            process.call_deadline = now + timeout
        if now >= process.call_deadline:
            return file.read_after_timeout(count)
        raise WouldBlock(block.queues, process.call_deadline) from None


def read(context: CallContext, fd: int, address: int, count: int) -> int:
    """read(2)."""
    file = context.process.fds.get(fd)
    if count > IO_CHUNK:
        return _read_pieces(
            context, [(address, count)], lambda size, done: _read_file(context, file, size)
        )
    memory = context.memory
    memory.require(address, count)
    data = _read_file(context, file, count)
    if data:
        memory.write(address, data)
    return len(data)


def _read_pieces(
    context: CallContext, vectors: list[tuple[int, int]], read_some: Callable[[int, int], bytes]
) -> int:
    """Fill the vectors until `read_some(size, done)` gives less than `size`."""
    total = min(sum(length for _, length in vectors), IO_MAX)
    done = 0
    while True:
        size = min(total - done, IO_CHUNK)
        try:
            parts = _parts(vectors, done, size)
            for start, length in parts:
                context.memory.require(start, length)
            data = read_some(size, done)
        except (KernelError, WouldBlock):
            if done:
                return done
            raise
        _scatter(context, parts, data)
        done += len(data)
        if len(data) < size or done >= total:
            return done


def write(context: CallContext, fd: int, address: int, count: int) -> int:
    """write(2)."""
    file = context.process.fds.get(fd)
    file.require_writable()
    if count > IO_CHUNK or context.process.call_done:
        return _write_all(context, file, [(address, min(count, IO_MAX))])
    written = write_some(context, file, context.memory.read(address, count))
    if written == count or not file.writes_all:
        return written
    return _write_all(context, file, [(address, count)], written)


def _write_all(
    context: CallContext, file: OpenFile, vectors: list[tuple[int, int]], done: int = 0
) -> int:
    """Write all after the first `done` bytes, over several tries if need be. An error after
    some bytes went out is reported by the next call, as Linux does."""
    process = context.process
    done = process.call_done or done
    total = sum(length for _, length in vectors)
    for start, length in vectors:
        context.memory.require(start, length)
    while True:
        data = _gather(context, vectors, done)
        try:
            written = write_some(context, file, data)
        except KernelError:
            if done:
                return done
            raise
        except WouldBlock:
            process.call_done = done
            raise
        done += written
        # A file that takes only a part has reached a limit; a stream may take more.
        if done >= total or (written < len(data) and not file.writes_all):
            return done


def write_some(context: CallContext, file: OpenFile, data: bytes) -> int:
    """One write to a file, within RLIMIT_FSIZE; EPIPE comes with SIGPIPE."""
    try:
        if type(file) is RegularFile:
            if context.process.rlimits.file_size != INFINITY:
                data = within_file_size(context, data, file.write_limit())
        elif isinstance(file, TerminalFile) and file.stops_background_writers:
            require_foreground_to_change(context.kernel, context.process, file.terminal)
        return file.write(data)
    except KernelError as error:
        if error.errno is Errno.EPIPE:
            post(context.kernel, context.process, SignalInfo(Signal.SIGPIPE, SI_KERNEL))
        raise


def _vectors(context: CallContext, address: int, count: int) -> list[tuple[int, int]]:
    if count > IOV_MAX:
        raise KernelError(Errno.EINVAL)
    raw = context.memory.read(address, 8 * count)
    words = memoryview(raw).cast("I") if count else memoryview(b"").cast("I")
    vectors = [(words[i], words[i + 1]) for i in range(0, 2 * count, 2)]
    if sum(length for _, length in vectors) > IO_MAX:
        raise KernelError(Errno.EINVAL)
    for start, length in vectors:
        context.memory.require(start, length)
    return vectors


def _parts(vectors: list[tuple[int, int]], skip: int, limit: int) -> list[tuple[int, int]]:
    """At most `limit` bytes of what the vectors name, after the first `skip`."""
    parts = []
    for start, length in vectors:
        if skip >= length:
            skip -= length
            continue
        taken = min(length - skip, limit)
        parts.append((start + skip, taken))
        skip = 0
        limit -= taken
        if not limit:
            break
    return parts


def _scatter(context: CallContext, parts: list[tuple[int, int]], data: bytes) -> None:
    position = 0
    for start, length in parts:
        if position >= len(data):
            break
        context.memory.write(start, data[position : position + length])
        position += length


def _gather(context: CallContext, vectors: list[tuple[int, int]], skip: int = 0) -> bytes:
    """Up to IO_CHUNK bytes of what the vectors name, after the first `skip`."""
    parts = [
        context.memory.read(start, length) for start, length in _parts(vectors, skip, IO_CHUNK)
    ]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def readv(context: CallContext, fd: int, address: int, count: int) -> int:
    """readv(2)."""
    file = context.file(fd)
    vectors = _vectors(context, address, count)
    return _read_pieces(context, vectors, lambda size, done: _read_file(context, file, size))


def writev(context: CallContext, fd: int, address: int, count: int) -> int:
    """writev(2)."""
    process = context.process
    file = process.fds.get(fd)
    file.require_writable()
    if count != 2 or process.call_done:
        return _write_all(context, file, _vectors(context, address, count))
    # How stdio writes: what it had buffered and what came now.
    memory = context.memory
    first, first_size, second, second_size = memory.unpack(_TWO_VECTORS, address)
    if first_size + second_size > IO_CHUNK:
        return _write_all(context, file, _vectors(context, address, count))
    data = memory.read(second, second_size)
    if first_size:
        data = memory.read(first, first_size) + data
    written = write_some(context, file, data)
    if written == len(data) or not file.writes_all:
        return written
    return _write_all(context, file, _vectors(context, address, count), written)


def _offset(low: int, high: int) -> int:
    offset = signed64(low, high)
    if offset < 0:
        raise KernelError(Errno.EINVAL)
    return offset


def pread(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pread64(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_readable()
    return _read_pieces(
        context, [(address, count)], lambda size, done: file.read_at(size, offset + done)
    )


def pwrite(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pwrite64(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_writable()
    return _write_all_at(context, file, [(address, min(count, IO_MAX))], offset)


def _write_all_at(
    context: CallContext, file: OpenFile, vectors: list[tuple[int, int]], offset: int
) -> int:
    done = 0
    total = sum(length for _, length in vectors)
    while True:
        data = _gather(context, vectors, done)
        try:
            allowed = data
            if isinstance(file, RegularFile):
                allowed = within_file_size(context, data, offset + done)
            written = file.write_at(allowed, offset + done)
        except KernelError:
            if done:
                return done
            raise
        done += written
        if done >= total or written < len(data):
            return done


def preadv(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """preadv(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_readable()
    return _read_pieces(
        context,
        _vectors(context, address, count),
        lambda size, done: file.read_at(size, offset + done),
    )


def pwritev(context: CallContext, fd: int, address: int, count: int, low: int, high: int) -> int:
    """pwritev(2)."""
    file = context.file(fd)
    offset = _offset(low, high)
    file.require_writable()
    return _write_all_at(context, file, _vectors(context, address, count), offset)


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
    """fsync(2), fdatasync(2), syncfs(2): memory is all there is, so it is in sync."""
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
    start = context.memory.read_u64(offset_address) if offset_address else source.position
    if start > _OFFSET_MAX:
        raise KernelError(Errno.EINVAL)
    data = source.read_at(min(count, IO_CHUNK), start)
    written = write_some(context, target, data) if data else 0
    if offset_address:
        context.memory.write_u64(offset_address, start + written)
    else:
        source.position = start + written
    return written


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
    start = context.memory.read_u64(in_address) if in_address else source.position
    to = context.memory.read_u64(out_address) if out_address else target.position
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
    if in_address:
        context.memory.write_u64(in_address, start + written)
    else:
        source.position = start + written
    if out_address:
        context.memory.write_u64(out_address, to + written)
    else:
        target.position = to + written
    return written


def fadvise(context: CallContext, fd: int) -> int:
    """fadvise64(2): advice about caching, of which there is none."""
    context.file(fd)
    return 0
