"""Pipes: order, end of file, broken pipes, atomic writes, capacity, poll bits."""

from __future__ import annotations

import random

import pytest

from tests.kernel.system import Woken, blocks, errno_of, pipe
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.pipe import PipeAccount
from wasmsand.kernel.flags import (
    O_NONBLOCK,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
    S_IFIFO,
    S_IFMT,
)
from wasmsand.kernel.limits import FULL_PIPES_MAX

CAPACITY = 65536
ATOMIC = 4096
READABLE = POLLIN | POLLRDNORM
WRITABLE = POLLOUT | POLLWRNORM


def test_bytes_come_out_in_the_order_they_went_in() -> None:
    reader, writer = pipe()
    for part in (b"abc", b"", b"defg", b"h"):
        assert writer.write(part) == len(part)
    assert reader.read(2) == b"ab"
    assert reader.read(4) == b"cdef"
    assert reader.read(100) == b"gh"


def test_many_small_writes_are_read_as_one_stream() -> None:
    reader, writer = pipe()
    sent = b"".join(b"%d," % i for i in range(5000))
    for i in range(5000):
        writer.write(b"%d," % i)
    received = b""
    while len(received) < len(sent):
        received += reader.read(777)
    assert received == sent


def test_a_read_until_a_delimiter_leaves_what_follows_it() -> None:
    reader, writer = pipe()
    writer.write(b"one\ntwo\n\nlast")
    assert reader.read_until(100, 10) == b"one\n"
    assert reader.read_until(2, 10) == b"tw"
    assert reader.read_until(100, 10) == b"o\n"
    assert reader.read_until(100, 10) == b"\n"
    assert reader.read_until(100, 10) == b"last"
    woken = Woken(blocks(lambda: reader.read_until(100, 10)))
    writer.write(b"more")
    assert woken
    writer.dispose()
    assert reader.read_until(100, 10) == b"more"
    assert reader.read_until(100, 10) == b""


def test_reads_until_delimiters_agree_with_a_model() -> None:
    numbers = random.Random(1)
    reader, writer = pipe()
    waiting = b""
    for _ in range(3000):
        if numbers.random() < 0.4:
            size = numbers.choice((1, 3, 50, 3000, 5000))
            data = numbers.choices(b"\nabc", weights=(1, 20, 20, 20), k=size)
            if len(waiting) + size <= CAPACITY:
                assert writer.write(bytes(data)) == size
                waiting += bytes(data)
        elif waiting:
            count = numbers.choice((1, 2, 10, 100, 4096))
            line = waiting[: waiting.find(b"\n", 0, count) + 1 or count]
            assert reader.read_until(count, 10) == line
            waiting = waiting[len(line) :]
            if numbers.random() < 0.2 and waiting:
                assert reader.read(7) == waiting[:7]
                waiting = waiting[7:]


def test_read_of_an_empty_pipe_blocks_until_a_write() -> None:
    reader, writer = pipe()
    woken = Woken(blocks(lambda: reader.read(1)))
    writer.write(b"x")
    assert woken
    assert reader.read(1) == b"x"


def test_read_of_nothing_returns_at_once() -> None:
    reader, _ = pipe()
    assert reader.read(0) == b""


def test_read_returns_eof_after_last_writer_closes_and_data_is_used_up() -> None:
    reader, writer = pipe()
    writer.write(b"last")
    writer.release()
    assert reader.read(10) == b"last"
    assert reader.read(10) == b""


def test_closing_the_last_writer_wakes_a_blocked_reader() -> None:
    reader, writer = pipe()
    woken = Woken(blocks(lambda: reader.read(1)))
    writer.release()
    assert woken
    assert reader.read(1) == b""


def test_write_without_readers_is_a_broken_pipe() -> None:
    reader, writer = pipe()
    reader.release()
    assert errno_of(lambda: writer.write(b"x")) is Errno.EPIPE


def test_empty_write_without_readers_succeeds_as_on_linux() -> None:
    reader, writer = pipe()
    reader.release()
    assert writer.write(b"") == 0


def test_closing_the_last_reader_wakes_a_blocked_writer() -> None:
    reader, writer = pipe()
    writer.write(bytes(CAPACITY))
    woken = Woken(blocks(lambda: writer.write(b"x")))
    reader.release()
    assert woken
    assert errno_of(lambda: writer.write(b"x")) is Errno.EPIPE


def test_a_pipe_holds_64_kib() -> None:
    reader, writer = pipe(O_NONBLOCK)
    assert writer.write(bytes(CAPACITY + 100)) == CAPACITY
    assert errno_of(lambda: writer.write(b"x")) is Errno.EAGAIN
    assert len(reader.read(CAPACITY * 2)) == CAPACITY


@pytest.mark.parametrize("size", [1, 100, ATOMIC])
def test_a_small_write_is_done_whole_or_not_at_all(size: int) -> None:
    reader, writer = pipe()
    writer.write(bytes(CAPACITY - size + 1))
    blocks(lambda: writer.write(b"y" * size))
    reader.read(1)
    assert writer.write(b"y" * size) == size


def test_a_large_write_fills_what_room_there_is() -> None:
    _, writer = pipe()
    writer.write(bytes(CAPACITY - 10))
    assert writer.write(bytes(ATOMIC + 1)) == 10


def test_nonblocking_ends_say_eagain() -> None:
    reader, writer = pipe(O_NONBLOCK)
    assert errno_of(lambda: reader.read(1)) is Errno.EAGAIN
    writer.write(bytes(CAPACITY))
    assert errno_of(lambda: writer.write(b"x")) is Errno.EAGAIN


def test_poll_bits_follow_the_state() -> None:
    reader, writer = pipe()
    assert (reader.poll(), writer.poll()) == (0, WRITABLE)
    writer.write(b"x")
    assert reader.poll() == READABLE
    writer.write(bytes(CAPACITY - ATOMIC))
    assert writer.poll() == 0
    reader.read(ATOMIC)
    assert writer.poll() == WRITABLE
    writer.release()
    assert reader.poll() == READABLE | POLLHUP
    reader.read(CAPACITY)
    assert reader.poll() == POLLHUP


def test_poll_reports_an_error_to_a_writer_without_readers() -> None:
    reader, writer = pipe()
    reader.release()
    assert writer.poll() == WRITABLE | POLLERR


def test_pipes_cannot_seek_truncate_or_sync() -> None:
    reader, _ = pipe()
    assert errno_of(lambda: reader.seek(0, 0)) is Errno.ESPIPE
    assert errno_of(lambda: reader.read_at(1, 0)) is Errno.ESPIPE
    assert errno_of(lambda: reader.truncate(0)) is Errno.EINVAL
    assert errno_of(reader.sync) is Errno.EINVAL


def test_both_ends_are_the_same_fifo() -> None:
    reader, writer = pipe()
    assert reader.stat() == writer.stat()
    assert reader.stat().mode & S_IFMT == S_IFIFO


def test_reading_the_write_end_is_refused() -> None:
    reader, writer = pipe()
    with pytest.raises(KernelError, match="EBADF"):
        writer.require_readable()
    with pytest.raises(KernelError, match="EBADF"):
        reader.require_writable()


def test_two_byte_writes_do_not_cost_the_host_an_object_each() -> None:
    _, writer = pipe()
    for _ in range(CAPACITY // 2):
        writer.write(b"ab")
    assert writer.pipe.size == CAPACITY
    assert len(writer.pipe._chunks) <= 2 * CAPACITY // ATOMIC


def test_pipes_beyond_a_number_hold_one_page() -> None:
    account = PipeAccount()
    ends = [pipe(O_NONBLOCK, account) for _ in range(FULL_PIPES_MAX + 1)]
    assert ends[-2][1].write(bytes(CAPACITY)) == CAPACITY
    assert ends[-1][1].write(bytes(CAPACITY)) == ATOMIC
    for reader, writer in ends:
        reader.release()
        writer.release()
    assert account.in_use == 0
    assert pipe(0, account)[1].write(bytes(CAPACITY)) == CAPACITY


def test_reading_byte_by_byte_gets_every_byte() -> None:
    reader, writer = pipe()
    sent = bytes(range(256)) * 40
    writer.write(sent)
    writer.write(b"more")
    assert b"".join(reader.read(1) for _ in range(len(sent) + 4)) == sent + b"more"
