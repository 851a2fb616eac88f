"""poll over several files."""

from __future__ import annotations

from tests.kernel.system import System, Woken, blocks, pipe
from wasmsand.kernel.files.polling import poll
from wasmsand.kernel.flags import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT
from wasmsand.kernel.process.process import Process


def test_only_wanted_bits_are_reported(system: System, process: Process) -> None:
    null = system.open(process, b"/dev/null", O_RDWR)
    files = [(null, POLLIN), (null, POLLOUT), (null, POLLIN | POLLOUT), (null, 0)]
    assert poll(files, now=0, deadline=0) == [POLLIN, POLLOUT, POLLIN | POLLOUT, 0]


def test_errors_and_hang_ups_are_reported_unasked() -> None:
    reader, writer = pipe()
    other_reader, other_writer = pipe()
    writer.release()
    other_reader.release()
    assert poll([(reader, 0), (other_writer, 0)], now=0, deadline=None) == [POLLHUP, POLLERR]


def test_a_closed_fd_is_ready_with_nval() -> None:
    reader, _ = pipe()
    assert poll([(None, POLLIN), (reader, POLLIN)], now=0, deadline=None) == [POLLNVAL, 0]


def test_nothing_ready_waits_for_any_of_the_files_until_the_deadline() -> None:
    (first, _), (second, writer) = (
        pipe(),
        pipe(),
    )
    wanted = [(first, POLLIN), (second, POLLIN)]
    block = blocks(lambda: poll(wanted, now=5, deadline=10))
    assert block.deadline == 10
    woken = Woken(block)
    writer.write(b"x")
    assert woken
    assert poll(wanted, now=6, deadline=10) == [0, POLLIN]


def test_the_deadline_ends_the_wait_with_nothing() -> None:
    reader, _ = pipe()
    assert poll([(reader, POLLIN)], now=10, deadline=10) == [0]
    assert poll([], now=10, deadline=10) == []


def test_no_files_and_no_deadline_wait_for_a_signal() -> None:
    block = blocks(lambda: poll([], now=0, deadline=None))
    assert (block.queues, block.deadline) == ((), None)
