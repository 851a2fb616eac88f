"""read, write and their relatives; seek, truncate, sync, sendfile."""

from __future__ import annotations

import pytest

from tests.abi.caller import Caller
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import (
    O_APPEND,
    O_CREAT,
    O_DIRECTORY,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    SEEK_CUR,
    SEEK_DATA,
    SEEK_END,
    SEEK_HOLE,
    SEEK_SET,
)
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.thread import ProcessState

MINUS_ONE = 0xFFFF_FFFF


def seek(caller: Caller, fd: int, offset: int, whence: int) -> int:
    address = caller.room(8)
    caller.ok("_llseek", fd, offset >> 32, offset, address, whence)
    position: int = caller.unpack("Q", address)[0]
    return position


def limit_file_size(caller: Caller, size: int) -> None:
    caller.ok("prlimit64", 0, 1, caller.pack("QQ", size, size), 0)


@pytest.mark.syscalls("read", "write")
def test_reads_stop_at_the_end_of_the_file(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert caller.write(fd, b"0123456789") == 10
    seek(caller, fd, 7, SEEK_SET)
    assert caller.read(fd, 100) == b"789"
    assert caller.read(fd, 100) == b""


@pytest.mark.syscalls("read_until")
def test_a_file_is_read_up_to_a_delimiter(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.write(fd, b"one,two,three")
    seek(caller, fd, 0, SEEK_SET)
    address = caller.room(100)
    found = []
    while size := caller.ok("read_until", fd, address, 100, ord(",")):
        found.append((bytes(caller.space[address : address + size]), seek(caller, fd, 0, SEEK_CUR)))
    assert found == [(b"one,", 4), (b"two,", 8), (b"three", 13)]


@pytest.mark.syscalls("read_until")
def test_a_read_up_to_a_delimiter_is_checked(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    caller.write(write_fd, b"precious\n")
    end, address = len(caller.space), caller.room(8)
    for bad, count in ((end - 4, 8), (end, 1), (MINUS_ONE, 1), (0x8000_0000, 100)):
        assert caller.errno("read_until", read_fd, bad, count, 10) is Errno.EFAULT
    for delimiter in (256, MINUS_ONE, 0x8000_000A):
        assert caller.errno("read_until", read_fd, address, 8, delimiter) is Errno.EINVAL
    assert caller.errno("read_until", write_fd, address, 8, 10) is Errno.EBADF
    assert caller.errno("read_until", 99, address, 8, 10) is Errno.EBADF
    directory = caller.open(b"/", O_RDONLY | O_DIRECTORY)
    assert caller.errno("read_until", directory, address, 8, 10) is Errno.EINVAL
    assert caller.ok("read_until", read_fd, address, 0, 10) == 0
    # A huge size is cut, not refused, if the buffer is as large as what is read at most.
    assert caller.ok("read_until", read_fd, end - 4096, MINUS_ONE, 10) == 9


@pytest.mark.syscalls("read", "write")
def test_bad_buffers_are_efault_and_lose_nothing(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    caller.write(write_fd, b"precious")
    end = len(caller.space)
    for address, count in ((end - 4, 8), (end, 1), (MINUS_ONE, 1), (0x8000_0000, 100)):
        assert caller.errno("read", read_fd, address, count) is Errno.EFAULT
        assert caller.errno("write", write_fd, address, count) is Errno.EFAULT
    assert caller.read(read_fd) == b"precious"
    assert caller.ok("write", write_fd, end - 8, 8) == 8


@pytest.mark.syscalls("read", "write")
def test_an_fd_works_only_in_the_direction_it_was_opened_for(caller: Caller) -> None:
    read_only, write_only = caller.open(b"f", O_RDONLY | O_CREAT), caller.open(b"f", O_WRONLY)
    assert caller.errno("write", read_only, caller.put(b"x"), 1) is Errno.EBADF
    assert caller.errno("read", write_only, caller.room(1), 1) is Errno.EBADF
    directory = caller.open(b".", O_RDONLY | O_DIRECTORY)
    assert caller.errno("read", directory, caller.room(1), 1) is Errno.EISDIR
    assert caller.errno("pread64", directory, caller.room(1), 1, 0, 0) is Errno.EISDIR
    assert caller.errno("write", directory, caller.room(1), 1) is Errno.EBADF


@pytest.mark.syscalls("read", "write")
def test_a_pipe_reader_waits_for_a_writer_in_another_process(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    child = caller.fork()
    buffer = caller.room(10)
    reading = caller.begin("read", read_fd, buffer, 10)
    assert reading.is_blocked()
    child.write(write_fd, b"hello")
    assert reading.result() == 5
    assert caller.get(buffer, 5) == b"hello"


@pytest.mark.syscalls("write")
def test_a_long_write_to_a_pipe_goes_on_until_all_is_read(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    child = caller.fork()
    sent = bytes(range(256)) * 800
    writing = caller.begin("write", write_fd, caller.put(sent), len(sent))
    assert writing.is_blocked()
    received = b""
    while len(received) < len(sent):
        received += child.read(read_fd, 10_000)
    assert received == sent
    assert writing.result() == len(sent)


def test_a_nonblocking_write_that_was_cut_short_is_not_remembered(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe(O_NONBLOCK)
    assert caller.ok("write", write_fd, caller.room(100_000), 100_000) == 65536
    assert len(caller.read(read_fd, 70_000)) == 65536
    assert caller.write(write_fd, b"fresh") == 5
    assert caller.read(read_fd) == b"fresh"


def test_a_signal_cuts_a_write_short_and_the_next_one_starts_afresh(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    child = caller.fork()
    caller.handle(Signal.SIGUSR1)
    writing = caller.begin("write", write_fd, caller.room(100_000), 100_000)
    assert writing.is_blocked()
    child.ok("kill", caller.process.pid, Signal.SIGUSR1)
    assert writing.result() == 65536
    caller.take_signal()
    child.read(read_fd, 70_000)
    assert caller.write(write_fd, b"fresh") == 5
    assert child.read(read_fd) == b"fresh"


@pytest.mark.syscalls("write")
def test_a_broken_pipe_is_epipe_and_sigpipe(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    caller.ok("close", read_fd)
    caller.handle(Signal.SIGPIPE)
    assert caller.errno("write", write_fd, caller.put(b"x"), 1) is Errno.EPIPE
    assert caller.signal_flag == 1
    assert caller.take_signal()[0] == Signal.SIGPIPE
    assert caller.ok("write", write_fd, 0, 0) == 0


@pytest.mark.syscalls("readv", "writev")
def test_vectors_scatter_and_gather(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    parts = caller.vectors((caller.put(b"ab"), 2), (0, 0), (caller.put(b"cde"), 3))
    assert caller.ok("writev", fd, parts, 3) == 5
    seek(caller, fd, 0, SEEK_SET)
    first, second = caller.room(4), caller.room(4)
    assert caller.ok("readv", fd, caller.vectors((first, 4), (second, 4)), 2) == 5
    assert (caller.get(first, 4), caller.get(second, 4)) == (b"abcd", b"e\0\0\0")


@pytest.mark.syscalls("readv", "writev")
def test_bad_vectors_are_refused(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert caller.errno("readv", fd, 0, 1025) is Errno.EINVAL
    assert caller.errno("writev", fd, 0, MINUS_ONE) is Errno.EINVAL
    assert caller.errno("writev", fd, len(caller.space) - 4, 1) is Errno.EFAULT
    bad = caller.vectors((caller.put(b"ok"), 2), (MINUS_ONE, 5))
    assert caller.errno("writev", fd, bad, 2) is Errno.EFAULT
    huge = caller.vectors((0, 0x7FFF_FFFF), (0, 0x7FFF_FFFF))
    assert caller.errno("readv", fd, huge, 2) is Errno.EINVAL
    assert caller.content(b"f") == b""


def test_a_vectored_write_to_a_pipe_is_one_stream(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    parts = caller.vectors(*((caller.put(bytes([i]) * 10), 10) for i in range(20)))
    assert caller.ok("writev", write_fd, parts, 20) == 200
    assert caller.read(read_fd) == b"".join(bytes([i]) * 10 for i in range(20))


@pytest.mark.syscalls("pread64", "pwrite64", "preadv", "pwritev")
def test_positioned_transfers_do_not_move_the_position(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.write(fd, b"0123456789")
    assert caller.ok("pwrite64", fd, caller.put(b"XY"), 2, 4, 0) == 2
    buffer = caller.room(4)
    assert caller.ok("pread64", fd, buffer, 4, 3, 0) == 4
    assert caller.get(buffer, 4) == b"3XY6"
    assert caller.ok("pwritev", fd, caller.vectors((caller.put(b"ab"), 2)), 1, 0, 0) == 2
    assert caller.ok("preadv", fd, caller.vectors((buffer, 3), (buffer + 3, 1)), 2, 0, 0) == 4
    assert caller.get(buffer, 4) == b"ab23"
    assert seek(caller, fd, 0, SEEK_CUR) == 10


@pytest.mark.parametrize("name", ["pread64", "pwrite64", "preadv", "pwritev"])
@pytest.mark.syscalls("pread64", "pwrite64", "preadv", "pwritev")
def test_invalid_positions_are_refused(caller: Caller, name: str) -> None:
    for covered in ("pread64", "pwrite64", "preadv", "pwritev"):
        caller.errno(covered, 99, 0, 0, 0, 0)
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    assert caller.errno(name, fd, 0, 0, 0, 0x8000_0000) is Errno.EINVAL
    assert caller.errno(name, 99, 0, 0, 0, 0) is Errno.EBADF
    read_fd, write_fd = caller.pipe()
    end = read_fd if name.startswith("pread") else write_fd
    assert caller.errno(name, end, 0, 0, 0, 0) is Errno.ESPIPE


def test_positioned_writes_of_an_append_file_append_as_on_linux(caller: Caller) -> None:
    caller.make_file(b"f", b"123")
    fd = caller.open(b"f", O_WRONLY | O_APPEND)
    caller.ok("pwrite64", fd, caller.put(b"4"), 1, 0, 0)
    assert caller.content(b"f") == b"1234"


@pytest.mark.syscalls("_llseek")
def test_seeking(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.write(fd, b"0123456789")
    assert seek(caller, fd, -3, SEEK_END) == 7
    assert seek(caller, fd, -2, SEEK_CUR) == 5
    assert seek(caller, fd, 1 << 33, SEEK_SET) == 1 << 33
    result = caller.room(8)
    assert caller.errno("_llseek", fd, MINUS_ONE, MINUS_ONE, result, SEEK_SET) is Errno.EINVAL
    assert caller.errno("_llseek", fd, 0, 0, result, 9) is Errno.EINVAL
    assert caller.errno("_llseek", fd, 0x7FFF_FFFF, 0, result, SEEK_SET) is Errno.EINVAL
    assert caller.errno("_llseek", fd, 0, 0, MINUS_ONE, SEEK_SET) is Errno.EFAULT
    assert seek(caller, fd, 0, SEEK_CUR) == 1 << 33
    read_fd, _ = caller.pipe()
    assert caller.errno("_llseek", read_fd, 0, 0, result, SEEK_SET) is Errno.ESPIPE


@pytest.mark.syscalls("_llseek")
def test_a_hole_reads_as_zeros_and_can_be_found(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.write(fd, b"head")
    seek(caller, fd, 1 << 20, SEEK_SET)
    caller.write(fd, b"tail")
    hole = seek(caller, fd, 0, SEEK_HOLE)
    assert 4 <= hole < 1 << 20
    assert seek(caller, fd, hole, SEEK_DATA) <= 1 << 20
    result = caller.room(8)
    assert caller.errno("_llseek", fd, 1, 0, result, SEEK_DATA) is Errno.ENXIO
    buffer = caller.room(8)
    caller.ok("pread64", fd, buffer, 8, 2, 0)
    assert caller.get(buffer, 8) == b"ad" + bytes(6)


@pytest.mark.syscalls("ftruncate64", "truncate64")
def test_truncation_shortens_and_lengthens(caller: Caller) -> None:
    caller.make_file(b"f", b"0123456789")
    fd = caller.open(b"f", O_RDWR)
    caller.ok("ftruncate64", fd, 4, 0)
    assert caller.content(b"f") == b"0123"
    caller.ok("truncate64", b"f", 6, 0)
    assert caller.content(b"f") == b"0123\0\0"
    assert caller.errno("ftruncate64", fd, 0, 0x8000_0000) is Errno.EINVAL
    assert caller.errno("ftruncate64", fd, 0, 0x7FFF_FFFF) is Errno.EFBIG
    assert caller.errno("ftruncate64", caller.open(b"f", O_RDONLY), 0, 0) is Errno.EINVAL
    assert caller.errno("ftruncate64", caller.pipe()[1], 0, 0) is Errno.EINVAL
    assert caller.errno("truncate64", b"missing", 0, 0) is Errno.ENOENT
    assert caller.errno("truncate64", b".", 0, 0) is Errno.EISDIR
    assert caller.errno("truncate64", b"/etc/passwd", 0, 0) is Errno.EACCES


@pytest.mark.syscalls("fallocate")
def test_fallocate(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    caller.ok("fallocate", fd, 0, 0, 0, 100, 0)
    assert caller.content(b"f") == bytes(100)
    caller.ok("fallocate", fd, 1, 0, 0, 10_000, 0)
    assert len(caller.content(b"f")) == 100
    assert caller.errno("fallocate", fd, 0, 0, 0, 0, 0) is Errno.EINVAL
    assert caller.errno("fallocate", fd, 0, 0, 0, 0, 0x8000_0000) is Errno.EINVAL
    assert caller.errno("fallocate", fd, 0x80, 0, 0, 1, 0) is Errno.EOPNOTSUPP
    assert caller.errno("fallocate", caller.open(b"f", O_RDONLY), 0, 0, 0, 1, 0) is Errno.EBADF
    assert caller.errno("fallocate", caller.pipe()[1], 0, 0, 0, 1, 0) is not Errno.EBADF


def test_the_file_size_limit_cuts_writes_and_then_signals(caller: Caller) -> None:
    caller.make_file(b"f", b"x" * 100)
    fd = caller.open(b"f", O_RDWR)
    caller.handle(Signal.SIGXFSZ)
    limit_file_size(caller, 10)
    caller.ok("ftruncate64", fd, 50, 0)
    assert caller.ok("pwrite64", fd, caller.room(10), 10, 5, 0) == 5
    assert caller.ok("pwrite64", fd, 0, 0, 20, 0) == 0
    assert caller.take_signal()[0] == 0
    for name, *arguments in (
        ("ftruncate64", fd, 200, 0),
        ("truncate64", b"f", 200, 0),
        ("pwrite64", fd, caller.room(10), 10, 10, 0),
        ("fallocate", fd, 0, 0, 0, 500, 0),
    ):
        assert caller.errno(name, *arguments) is Errno.EFBIG, name
        signo, mask = caller.take_signal()
        assert signo == Signal.SIGXFSZ, name
        caller.ok("signal_return", caller.pack("Q", mask))
    caller.ok("fallocate", fd, 1, 0, 0, 500, 0)


@pytest.mark.syscalls("fsync", "fdatasync", "sync", "syncfs", "fadvise64_64")
def test_everything_is_always_in_sync(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    for name in ("fsync", "fdatasync", "syncfs", "fadvise64_64"):
        caller.ok(name, fd)
        assert caller.errno(name, 99) is Errno.EBADF
    caller.ok("sync")
    assert caller.errno("fsync", caller.pipe()[0]) is Errno.EINVAL


@pytest.mark.syscalls("sendfile64")
def test_sendfile(caller: Caller) -> None:
    caller.make_file(b"in", b"0123456789")
    source, target = caller.open(b"in", O_RDONLY), caller.open(b"out", O_RDWR | O_CREAT)
    assert caller.ok("sendfile64", target, source, 0, 4) == 4
    offset = caller.pack("q", 7)
    assert caller.ok("sendfile64", target, source, offset, 100) == 3
    assert caller.unpack("q", offset) == (10,)
    assert seek(caller, source, 0, SEEK_CUR) == 4
    assert caller.content(b"out") == b"0123789"
    read_fd, write_fd = caller.pipe()
    assert caller.ok("sendfile64", write_fd, source, 0, 100) == 6
    assert caller.read(read_fd) == b"456789"
    assert caller.errno("sendfile64", target, read_fd, 0, 1) is Errno.EINVAL
    assert caller.errno("sendfile64", source, target, 0, 1) is Errno.EBADF
    assert caller.errno("sendfile64", target, source, caller.pack("q", -1), 1) is Errno.EINVAL


@pytest.mark.syscalls("copy_file_range")
def test_copy_file_range(caller: Caller) -> None:
    caller.make_file(b"in", b"0123456789")
    source, target = caller.open(b"in", O_RDWR), caller.open(b"out", O_RDWR | O_CREAT)
    assert caller.ok("copy_file_range", source, 0, target, 0, 5, 0) == 5
    here, there = caller.pack("q", 8), caller.pack("q", 2)
    assert caller.ok("copy_file_range", source, here, target, there, 100, 0) == 2
    assert (caller.unpack("q", here), caller.unpack("q", there)) == ((10,), (4,))
    assert caller.content(b"out") == b"01894"
    assert caller.ok("copy_file_range", source, here, target, there, 100, 0) == 0
    same = caller.pack("q", 2)
    assert caller.errno("copy_file_range", source, 0, source, same, 9, 0) is Errno.EINVAL
    assert caller.errno("copy_file_range", source, 0, target, 0, 1, 1) is Errno.EINVAL
    append = caller.open(b"out", O_WRONLY | O_APPEND)
    assert caller.errno("copy_file_range", source, 0, append, 0, 1, 0) is Errno.EBADF
    assert caller.errno("copy_file_range", source, 0, caller.pipe()[1], 0, 1, 0) is Errno.EINVAL


def test_an_interrupted_read_can_be_restarted_or_not(caller: Caller) -> None:
    read_fd, _ = caller.pipe()
    for flags, result in ((0x10000000, -512), (0, -Errno.EINTR)):
        caller.handle(Signal.SIGUSR1, flags=flags)
        reading = caller.begin("read", read_fd, caller.room(1), 1)
        assert reading.is_blocked()
        caller.fork().ok("kill", caller.process.pid, Signal.SIGUSR1)
        assert reading.result() == result
        _, mask = caller.take_signal()
        caller.ok("signal_return", caller.pack("Q", mask))


def test_a_stopped_reader_goes_on_reading_when_continued(caller: Caller) -> None:
    read_fd, write_fd = caller.pipe()
    child = caller.fork()
    reading = child.begin("read", read_fd, child.room(10), 10)
    assert reading.is_blocked()
    caller.ok("kill", child.process.pid, Signal.SIGSTOP)
    caller.write(write_fd, b"x")
    assert not reading.ended(0.05)
    assert child.process.state is ProcessState.STOPPED
    caller.ok("kill", child.process.pid, Signal.SIGCONT)
    assert reading.result() == 1


@pytest.mark.syscalls("preadv2", "pwritev2")
def test_vectors_with_flags_move_the_position_only_without_an_offset(caller: Caller) -> None:
    fd = caller.open(b"f", O_RDWR | O_CREAT)
    out = caller.vectors((caller.put(b"abc"), 3), (caller.put(b"def"), 3))
    assert caller.ok("pwritev2", fd, out, 2, 2, 0, 2) == 6
    assert caller.content(b"/tmp/f") == b"\0\0abcdef"
    assert caller.ok("pwritev2", fd, out, 1, 0xFFFF_FFFF, 0xFFFF_FFFF, 0) == 3
    assert caller.content(b"/tmp/f") == b"abcbcdef"
    place = caller.room(4)
    into = caller.vectors((place, 4))
    assert caller.ok("preadv2", fd, into, 1, 1, 0, 8) == 4
    assert caller.get(place, 4) == b"bcbc"
    assert caller.ok("preadv2", fd, into, 1, 0xFFFF_FFFF, 0xFFFF_FFFF, 0) == 4
    assert caller.get(place, 4) == b"bcde"
    assert caller.errno("preadv2", fd, into, 1, 0, 0, 0x80) is Errno.EOPNOTSUPP
    assert caller.errno("pwritev2", fd, out, 1, 0, 0, 0x10) is Errno.EOPNOTSUPP
