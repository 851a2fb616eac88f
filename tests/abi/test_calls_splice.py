"""splice between pipes, files and devices."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import O_APPEND, O_CREAT, O_RDONLY, O_RDWR, O_WRONLY
from wasmsand.kernel.limits import PIPE_CAPACITY

SPLICE_F_NONBLOCK = 2


@pytest.mark.syscalls("splice")
def test_splice_moves_data_from_a_pipe_to_another(caller: Caller) -> None:
    source, sink = caller.pipe()
    source2, sink2 = caller.pipe()
    caller.write(sink, b"hello")
    assert caller.ok("splice", source, 0, sink2, 0, 3, 0) == 3
    assert caller.ok("splice", source, 0, sink2, 0, 100, 0) == 2
    assert caller.read(source2) == b"hello"


@pytest.mark.syscalls("splice")
def test_splice_moves_a_file_through_a_pipe_to_another_file(caller: Caller) -> None:
    caller.make_file(b"in", b"0123456789")
    source, sink = caller.pipe()
    in_fd, out_fd = caller.open(b"in", O_RDONLY), caller.open(b"out", O_RDWR | O_CREAT)
    assert caller.ok("splice", in_fd, 0, sink, 0, 4, 0) == 4
    at = caller.pack("Q", 8)
    assert caller.ok("splice", in_fd, at, sink, 0, 100, 0) == 2
    assert caller.unpack("Q", at) == (10,)
    assert caller.ok("splice", source, 0, out_fd, 0, 100, 0) == 6
    at = caller.pack("Q", 2)
    caller.write(sink, b"XY")
    assert caller.ok("splice", source, 0, out_fd, at, 100, 0) == 2
    assert caller.unpack("Q", at) == (4,)
    assert caller.content(b"out") == b"01XY89"


@pytest.mark.syscalls("splice")
def test_splice_drains_a_pipe_until_its_writers_have_closed_it(caller: Caller) -> None:
    source, sink = caller.pipe()
    null = caller.open(b"/dev/null", O_WRONLY)
    caller.write(sink, bytes(PIPE_CAPACITY))
    caller.ok("close", sink)
    assert caller.ok("splice", source, 0, null, 0, 1 << 30, 0) == PIPE_CAPACITY
    assert caller.ok("splice", source, 0, null, 0, 1 << 30, 0) == 0


@pytest.mark.syscalls("splice")
def test_data_that_the_target_does_not_take_stays_in_the_pipe(caller: Caller) -> None:
    source, sink = caller.pipe()
    caller.write(sink, b"kept")
    full = caller.open(b"/dev/full", O_WRONLY)
    assert caller.errno("splice", source, 0, full, 0, 4, 0) is Errno.ENOSPC
    assert caller.read(source) == b"kept"


@pytest.mark.syscalls("splice")
def test_splice_waits_for_data_and_for_room(caller: Caller) -> None:
    source, sink = caller.pipe()
    source2, sink2 = caller.pipe()
    arguments = (source, 0, sink2, 0, 10)
    assert caller.errno("splice", *arguments, SPLICE_F_NONBLOCK) is Errno.EAGAIN
    other = caller.fork()
    waiting = caller.begin("splice", *arguments, 0)
    assert waiting.is_blocked()
    other.write(sink, b"now")
    assert waiting.result() == 3
    other.write(sink2, bytes(PIPE_CAPACITY - 3))
    other.write(sink, b"more")
    waiting = caller.begin("splice", *arguments, 0)
    assert waiting.is_blocked()
    other.read(source2, PIPE_CAPACITY - 3)
    assert waiting.result() == 4


@pytest.mark.syscalls("splice")
def test_a_target_without_readers_is_epipe_and_loses_nothing(caller: Caller) -> None:
    caller.handle(13)
    source, sink = caller.pipe()
    source2, sink2 = caller.pipe()
    caller.write(sink, b"kept")
    caller.ok("close", source2)
    assert caller.errno("splice", source, 0, sink2, 0, 10, 0) is Errno.EPIPE
    assert caller.take_signal()[0] == 13
    assert caller.read(source) == b"kept"


@pytest.mark.syscalls("splice")
def test_invalid_splices_are_refused(caller: Caller) -> None:
    caller.make_file(b"f", b"data")
    fd, end = caller.open(b"f", O_RDWR), caller.open(b"f", O_RDWR | O_APPEND)
    source, sink = caller.pipe()
    caller.write(sink, b"x")
    at = caller.pack("Q", 1 << 63)
    assert caller.errno("splice", fd, 0, fd, 0, 1, 0) is Errno.EINVAL
    assert caller.errno("splice", source, 0, sink, 0, 1, 0) is Errno.EINVAL
    assert caller.errno("splice", source, 0, end, 0, 1, 0) is Errno.EINVAL
    assert caller.errno("splice", source, 0, fd, 0, 1, 16) is Errno.EINVAL
    assert caller.errno("splice", source, at, fd, 0, 1, 0) is Errno.ESPIPE
    assert caller.errno("splice", fd, at, sink, 0, 1, 0) is Errno.EINVAL
    assert caller.errno("splice", source, 0, fd, -1, 1, 0) is Errno.EFAULT
    assert caller.errno("splice", sink, 0, fd, 0, 1, 0) is Errno.EBADF
    assert caller.errno("splice", 99, 0, fd, 0, 1, 0) is Errno.EBADF
    assert caller.ok("splice", source, 0, fd, 0, 0, 0) == 0
    assert caller.read(source) == b"x"
