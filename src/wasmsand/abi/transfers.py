"""Data transfer between open files and guest memory, for both ABIs.

Owns reading into and writing from guest buffers. Rules: the guest's buffer is checked before data
is taken from a file. One hold of the sandbox's lock transfers at most IO_CHUNK bytes; a longer
transfer continues after a `Yield`, because on Linux only streams transfer less than requested. A
call that is retried stores its progress (`CallState.done`). EPIPE comes with SIGPIPE.
"""

from __future__ import annotations

from collections.abc import Callable

from wasmsand.abi.context import ProcessContext
from wasmsand.abi.file_size import within_file_size
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import RegularFile
from wasmsand.kernel.files.terminal import TerminalFile
from wasmsand.kernel.limits import IO_CHUNK, IO_MAX, IOV_MAX, PIPE_CAPACITY
from wasmsand.kernel.process.delivery import SI_KERNEL, post_to_thread
from wasmsand.kernel.process.groups import (
    require_foreground_to_change,
    require_foreground_to_read,
)
from wasmsand.kernel.process.rlimits import INFINITY
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.wait import OutsideWait, WouldBlock, Yield


def read_file(context: ProcessContext, file: OpenFile, count: int) -> bytes:
    """One read from a file, with the rules of terminals."""
    file.require_readable()
    if isinstance(file, TerminalFile):
        return _read_terminal(context, file, count)
    return file.read(count)


def _read_terminal(context: ProcessContext, file: TerminalFile, count: int) -> bytes:
    require_foreground_to_read(context.kernel, context.thread, file.terminal)
    try:
        return file.read(count)
    except WouldBlock as block:
        timeout = file.read_timeout()
        if not timeout:
            raise
        deadline = deadline_after(context, timeout)
        if deadline is None:
            return file.read_after_timeout(count)
        raise WouldBlock(block.queues, deadline) from None


def deadline_after(context: ProcessContext, timeout_ns: int) -> int | None:
    """The deadline of a call that waits for `timeout_ns` over all attempts; None if it has
    passed."""
    now = context.kernel.clock.monotonic()
    deadline = context.thread.call.deadline
    if deadline is None:
        deadline = now + timeout_ns
    return deadline if now < deadline else None


def read_pieces(
    context: ProcessContext, vectors: list[tuple[int, int]], read_some: Callable[[int, int], bytes]
) -> int:
    """Fill the vectors until `read_some(size, done)` returns fewer than `size` bytes."""
    total = min(sum(length for _, length in vectors), IO_MAX)
    call = context.thread.call
    done = call.done
    size = min(total - done, IO_CHUNK)
    try:
        parts = parts_of(vectors, done, size)
        for start, length in parts:
            context.memory.require(start, length)
        data = read_some(size, done)
    except OutsideWait:
        call.done = done
        raise
    except (KernelError, WouldBlock):
        if done:
            return done
        raise
    context.memory.scatter(parts, data)
    done += len(data)
    if len(data) < size or done >= total:
        return done
    call.done = done
    raise Yield


def write_all(
    context: ProcessContext, file: OpenFile, vectors: list[tuple[int, int]], done: int = 0
) -> int:
    """Write everything after the first `done` bytes, in several attempts if necessary. If an error
    occurs after some bytes were written, the next call reports it, as on Linux."""
    call = context.thread.call
    done = call.done or done
    total = sum(length for _, length in vectors)
    for start, length in vectors:
        context.memory.require(start, length)
    # A stream takes no more than its buffer holds.
    piece = PIPE_CAPACITY if file.writes_all else IO_CHUNK
    enough = done + IO_CHUNK
    while True:
        data = gather(context, vectors, done, piece)
        try:
            written = write_some(context, file, data)
        except KernelError:
            if done:
                return done
            raise
        except WouldBlock:
            call.done = done
            raise
        done += written
        # A file that takes only part of the data has reached a limit; a stream may take more.
        if done >= total or (written < len(data) and not file.writes_all):
            return done
        if done >= enough:
            call.done = done
            raise Yield


def write_some(context: ProcessContext, file: OpenFile, data: bytes) -> int:
    """One write to a file, within RLIMIT_FSIZE; EPIPE comes with SIGPIPE."""
    try:
        if type(file) is RegularFile:
            if context.process.rlimits.file_size != INFINITY:
                data = within_file_size(context, data, file.write_limit())
        elif isinstance(file, TerminalFile) and file.stops_background_writers:
            require_foreground_to_change(context.kernel, context.thread, file.terminal)
        return file.write(data)
    except KernelError as error:
        if error.errno is Errno.EPIPE:
            post_to_thread(context.kernel, context.thread, SignalInfo(Signal.SIGPIPE, SI_KERNEL))
        raise


def vectors_at(context: ProcessContext, address: int, count: int) -> list[tuple[int, int]]:
    """Read an array of (address, length) and check that all ranges are valid."""
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


def parts_of(vectors: list[tuple[int, int]], skip: int, limit: int) -> list[tuple[int, int]]:
    """At most `limit` bytes of the vectors, after the first `skip`."""
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


def scatter(context: ProcessContext, parts: list[tuple[int, int]], data: bytes) -> None:
    """Write `data` to these parts of memory, as far as it goes."""
    context.memory.scatter(parts, data)


def gather(
    context: ProcessContext,
    vectors: list[tuple[int, int]],
    skip: int = 0,
    limit: int = IO_CHUNK,
) -> bytes:
    """Read up to `limit` bytes of the vectors, after the first `skip`."""
    return context.memory.gather(parts_of(vectors, skip, limit))


def write_all_at(
    context: ProcessContext, file: OpenFile, vectors: list[tuple[int, int]], offset: int
) -> int:
    """Write all of the vectors at `offset`, without moving the position."""
    call = context.thread.call
    done = call.done
    total = sum(length for _, length in vectors)
    try:
        data = gather(context, vectors, done)
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
    call.done = done
    raise Yield
