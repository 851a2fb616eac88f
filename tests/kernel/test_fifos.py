"""FIFOs: opening one end waits for the other."""

from __future__ import annotations

import pytest

from tests.kernel.system import System, Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.pipe import PipeEnd
from wasmsand.kernel.flags import (
    O_ACCMODE,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    POLLHUP,
    S_IFIFO,
)
from wasmsand.kernel.process.process import Process

PATH = b"/tmp/fifo"


@pytest.fixture(autouse=True)
def _fifo(system: System, process: Process) -> None:
    system.kernel.namespace.mknod(
        process.identity.credentials(), process.cwd, PATH, S_IFIFO | 0o644
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [(O_RDONLY, O_WRONLY), (O_WRONLY, O_RDONLY)],
    ids=["the reader first", "the writer first"],
)
def test_an_open_waits_for_the_other_end(
    system: System, process: Process, first: int, second: int
) -> None:
    other = system.fork(process)
    woken = Woken(blocks(lambda: system.open(process, PATH, first)))
    ends = {second: system.open(other, PATH, second)}
    assert woken
    ends[first] = system.open(process, PATH, first)
    ends[O_WRONLY].write(b"hello")
    assert ends[O_RDONLY].read(10) == b"hello"


def test_an_open_ends_even_when_its_partner_came_and_went(system: System, process: Process) -> None:
    other = system.fork(process)
    blocks(lambda: system.open(process, PATH, O_RDONLY))
    system.open(other, PATH, O_WRONLY).release()
    assert system.open(process, PATH, O_RDONLY).read(10) == b""


def test_nonblocking_reader_opens_at_once_and_reads_eof(system: System, process: Process) -> None:
    reader = system.open(process, PATH, O_RDONLY | O_NONBLOCK)
    assert reader.read(1) == b""
    assert not reader.poll() & POLLHUP


def test_nonblocking_writer_without_reader_is_enxio(system: System, process: Process) -> None:
    assert errno_of(lambda: system.open(process, PATH, O_WRONLY | O_NONBLOCK)) is Errno.ENXIO
    system.open(process, PATH, O_RDONLY | O_NONBLOCK)
    assert system.open(process, PATH, O_WRONLY | O_NONBLOCK).write(b"x") == 1


def test_opening_for_both_never_waits(system: System, process: Process) -> None:
    both = system.open(process, PATH, O_RDWR)
    both.write(b"self")
    assert both.read(10) == b"self"


def test_an_invalid_access_mode_is_refused(system: System, process: Process) -> None:
    assert errno_of(lambda: system.open(process, PATH, O_ACCMODE)) is Errno.EINVAL
    assert not system.kernel.fifos


def test_an_abandoned_open_leaves_no_reader_behind(system: System, process: Process) -> None:
    blocks(lambda: system.open(process, PATH, O_RDONLY))
    process.first_thread.call.clear()
    assert not system.kernel.fifos
    assert errno_of(lambda: system.open(process, PATH, O_WRONLY | O_NONBLOCK)) is Errno.ENXIO


def test_death_while_waiting_leaves_no_reader_behind(system: System, process: Process) -> None:
    child = system.fork(process)
    blocks(lambda: system.open(child, PATH, O_RDONLY))
    system.kernel.exit(child, 9)
    assert not system.kernel.fifos


def test_all_opens_of_one_fifo_share_one_pipe_until_the_last_close(
    system: System, process: Process
) -> None:
    first = system.open(process, PATH, O_RDWR)
    second = system.open(process, PATH, O_RDWR)
    assert isinstance(first, PipeEnd)
    assert isinstance(second, PipeEnd)
    assert first.pipe is second.pipe
    first.write(b"kept while open")
    first.release()
    assert second.read(4) == b"kept"
    second.release()
    assert not system.kernel.fifos
    assert system.open(process, PATH, O_RDONLY | O_NONBLOCK).read(10) == b""


def test_an_unlinked_fifo_still_joins_those_who_have_it_open(
    system: System, process: Process
) -> None:
    first = system.open(process, PATH, O_RDWR)
    second = system.open(process, PATH, O_RDWR)
    system.kernel.namespace.unlink(process.identity.credentials(), process.cwd, PATH)
    first.write(b"x")
    assert second.read(1) == b"x"
