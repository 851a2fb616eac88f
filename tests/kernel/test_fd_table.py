"""File descriptor tables: numbers, sharing, close-on-exec, limits."""

from __future__ import annotations

import pytest

from tests.kernel.system import System, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.flags import O_CREAT, O_RDONLY, O_RDWR
from wasmsand.kernel.process.process import Process

pytestmark = pytest.mark.needs_sources


class Probe(OpenFile):
    """A description that counts its releases."""

    def __init__(self) -> None:
        super().__init__(O_RDWR)
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


@pytest.fixture
def table() -> FdTable:
    return FdTable(8)


def test_the_lowest_free_number_is_taken(table: FdTable) -> None:
    assert [table.install(Probe()) for _ in range(5)] == [0, 1, 2, 3, 4]
    table.close(3)
    table.close(1)
    assert [table.install(Probe()) for _ in range(3)] == [1, 3, 5]


def test_a_minimum_is_respected_and_leaves_lower_numbers_free(table: FdTable) -> None:
    assert table.install(Probe(), minimum=4) == 4
    assert table.install(Probe(), minimum=4) == 5
    assert table.install(Probe()) == 0


def test_a_replaced_number_is_skipped_by_the_next_install(table: FdTable) -> None:
    table.replace(0, Probe())
    table.replace(1, Probe())
    assert table.install(Probe()) == 2


def test_a_closed_number_is_ebadf(table: FdTable) -> None:
    table.close(table.install(Probe()))
    assert errno_of(lambda: table.get(0)) is Errno.EBADF
    assert errno_of(lambda: table.close(0)) is Errno.EBADF
    assert errno_of(lambda: table.close_on_exec(0)) is Errno.EBADF
    assert errno_of(lambda: table.set_close_on_exec(0, True)) is Errno.EBADF


def test_the_limit_is_emfile_and_leaves_nothing_behind(table: FdTable) -> None:
    for _ in range(8):
        table.install(Probe())
    refused = Probe()
    assert errno_of(lambda: table.install(refused)) is Errno.EMFILE
    assert (refused.releases, len(table)) == (1, 8)


def test_emfile_does_not_release_what_another_fd_holds(table: FdTable) -> None:
    shared = Probe()
    for _ in range(8):
        table.install(shared)
    assert errno_of(lambda: table.install(shared)) is Errno.EMFILE
    assert shared.releases == 0


def test_a_description_is_released_once_by_its_last_fd(table: FdTable) -> None:
    file = Probe()
    fds = [table.install(file) for _ in range(3)]
    child = table.copy()
    for fd in fds:
        table.close(fd)
    assert file.releases == 0
    child.close_all()
    assert file.releases == 1


def test_replacing_an_fd_by_itself_keeps_it_open(table: FdTable) -> None:
    file = Probe()
    fd = table.install(file)
    table.replace(fd, file)
    assert (table.get(fd), file.releases, file.references) == (file, 0, 1)


def test_replace_closes_what_was_there_and_its_close_on_exec_flag(table: FdTable) -> None:
    old, new = Probe(), Probe()
    fd = table.install(old, close_on_exec=True)
    table.replace(fd, new)
    assert old.releases == 1
    assert not table.close_on_exec(fd)


@pytest.mark.parametrize("fd", [8, 9, 1 << 31, 0xFFFF_FFFF])
def test_replace_beyond_the_limit_is_ebadf(table: FdTable, fd: int) -> None:
    assert errno_of(lambda: table.replace(fd, Probe())) is Errno.EBADF


def test_exec_closes_the_marked_fds_only(table: FdTable) -> None:
    kept, marked, unmarked = Probe(), Probe(), Probe()
    table.install(kept)
    table.install(marked, close_on_exec=True)
    table.install(unmarked, close_on_exec=True)
    table.set_close_on_exec(2, False)
    table.close_for_exec()
    assert list(table) == [0, 2]
    assert (kept.releases, marked.releases, unmarked.releases) == (0, 1, 0)


def test_a_forked_table_has_its_own_numbers_and_flags(table: FdTable) -> None:
    table.install(Probe())
    child = table.copy()
    child.set_close_on_exec(0, True)
    child.install(Probe())
    assert not table.close_on_exec(0)
    assert (list(table), list(child)) == ([0], [0, 1])


def test_lowering_the_limit_keeps_open_fds_and_refuses_new_ones(table: FdTable) -> None:
    fds = [table.install(Probe()) for _ in range(5)]
    table.limit = 2
    assert [table.get(fd) is not None for fd in fds] == [True] * 5
    assert errno_of(lambda: table.install(Probe())) is Errno.EMFILE


def test_dup_shares_the_offset_and_a_second_open_does_not(system: System, process: Process) -> None:
    system.make_file(b"/tmp/f", b"0123456789")
    file = system.open(process, b"/tmp/f", O_RDONLY)
    again = system.open(process, b"/tmp/f", O_RDONLY)
    process.fds.install(file)
    process.fds.install(file)
    assert process.fds.get(0).read(4) == b"0123"
    assert process.fds.get(1).read(4) == b"4567"
    assert again.read(4) == b"0123"


def test_fork_shares_the_offset(system: System, process: Process) -> None:
    process.fds.install(system.open(process, b"/tmp/f", O_RDWR | O_CREAT))
    child = system.fork(process)
    process.fds.get(0).write(b"parent ")
    child.fds.get(0).write(b"child")
    process.fds.get(0).seek(0, 0)
    assert child.fds.get(0).read(100) == b"parent child"


def test_a_file_unlinked_while_open_can_be_used_until_the_last_close(
    system: System, process: Process
) -> None:
    used = system.kernel.root.statfs().blocks_free
    system.make_file(b"/tmp/f", b"content" * 10_000)
    process.fds.install(system.open(process, b"/tmp/f", O_RDONLY))
    child = system.fork(process)
    system.kernel.namespace.unlink(process.identity.credentials(), process.cwd, b"/tmp/f")
    system.kernel.exit(process, 0)
    assert child.fds.get(0).read(7) == b"content"
    child.fds.close(0)
    assert system.kernel.root.statfs().blocks_free == used
