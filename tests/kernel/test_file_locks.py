"""Advisory locks: flock belongs to descriptions, record locks to processes."""

from __future__ import annotations

from functools import partial

import pytest

from tests.kernel.system import System, Woken, blocks, errno_of
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.locks import (
    END_OF_FILE,
    F_RDLCK,
    F_UNLCK,
    F_WRLCK,
    LOCK_EX,
    LOCK_NB,
    LOCK_SH,
    LOCK_UN,
    FileLocks,
)
from wasmsand.kernel.flags import O_CREAT, O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Node


@pytest.fixture
def locks(system: System) -> FileLocks:
    system.make_file(b"/tmp/f", b"0123456789")
    return system.kernel.locks


@pytest.fixture
def files(system: System, process: Process, locks: FileLocks) -> tuple[OpenFile, OpenFile]:
    """Two descriptions of one file."""
    return (system.open(process, b"/tmp/f", O_RDWR), system.open(process, b"/tmp/f", O_RDWR))


@pytest.fixture
def node(files: tuple[OpenFile, OpenFile]) -> Node:
    found = files[0].node
    assert found is not None
    return found


def test_an_exclusive_flock_keeps_others_out_until_it_is_released(
    locks: FileLocks, files: tuple[OpenFile, OpenFile], node: Node
) -> None:
    mine, other = files
    locks.flock(mine, node, LOCK_EX)
    assert errno_of(lambda: locks.flock(other, node, LOCK_SH | LOCK_NB)) is Errno.EAGAIN
    woken = Woken(blocks(lambda: locks.flock(other, node, LOCK_EX)))
    locks.flock(mine, node, LOCK_UN)
    assert woken
    locks.flock(other, node, LOCK_EX | LOCK_NB)


def test_shared_flocks_coexist_and_one_may_not_become_exclusive(
    locks: FileLocks, files: tuple[OpenFile, OpenFile], node: Node
) -> None:
    mine, other = files
    locks.flock(mine, node, LOCK_SH)
    locks.flock(other, node, LOCK_SH)
    assert errno_of(lambda: locks.flock(mine, node, LOCK_EX | LOCK_NB)) is Errno.EAGAIN
    # A failed conversion gives up the old lock, as on Linux.
    locks.flock(other, node, LOCK_EX | LOCK_NB)


def test_one_description_never_conflicts_with_itself(
    locks: FileLocks, files: tuple[OpenFile, OpenFile], node: Node
) -> None:
    for operation in (LOCK_EX, LOCK_EX, LOCK_SH, LOCK_EX):
        locks.flock(files[0], node, operation | LOCK_NB)


@pytest.mark.parametrize("operation", [0, 3, LOCK_EX | LOCK_UN, 16, 0xFFFF_FFFF])
def test_invalid_operations_are_einval(
    locks: FileLocks, files: tuple[OpenFile, OpenFile], node: Node, operation: int
) -> None:
    assert errno_of(lambda: locks.flock(files[0], node, operation)) is Errno.EINVAL
    assert not locks._inodes


def test_record_locks_conflict_between_processes_by_range(locks: FileLocks, node: Node) -> None:
    locks.set_record(10, node, F_WRLCK, 0, 5, wait=False)
    locks.set_record(11, node, F_WRLCK, 5, 10, wait=False)
    assert errno_of(lambda: locks.set_record(11, node, F_RDLCK, 4, 6, wait=False)) is Errno.EAGAIN
    locks.set_record(10, node, F_WRLCK, 0, 5, wait=False)
    found = locks.find_conflict(12, node, F_RDLCK, 3, 5)
    assert found is not None
    assert (found.pid, found.kind, found.start, found.end) == (10, F_WRLCK, 0, 5)


def test_read_locks_coexist(locks: FileLocks, node: Node) -> None:
    locks.set_record(10, node, F_RDLCK, 0, END_OF_FILE, wait=False)
    locks.set_record(11, node, F_RDLCK, 0, END_OF_FILE, wait=False)
    assert locks.find_conflict(12, node, F_RDLCK, 0, 1) is None
    assert locks.find_conflict(10, node, F_WRLCK, 0, 1) is not None


def test_unlocking_the_middle_splits_a_record_lock(locks: FileLocks, node: Node) -> None:
    locks.set_record(10, node, F_WRLCK, 0, 10, wait=False)
    locks.set_record(10, node, F_UNLCK, 4, 6, wait=False)
    conflicts = [locks.find_conflict(11, node, F_WRLCK, at, at + 1) for at in range(11)]
    assert [c is not None for c in conflicts] == [True] * 4 + [False] * 2 + [True] * 4 + [False]


def test_a_waiter_for_a_record_lock_is_woken_by_its_release(locks: FileLocks, node: Node) -> None:
    locks.set_record(10, node, F_WRLCK, 0, 10, wait=False)
    woken = Woken(blocks(lambda: locks.set_record(11, node, F_WRLCK, 0, 1, wait=True)))
    locks.drop_process(10, node)
    assert woken
    locks.set_record(11, node, F_WRLCK, 0, 1, wait=True)


def test_record_locks_of_one_file_are_bounded(locks: FileLocks, node: Node) -> None:
    for place in range(1024):
        locks.set_record(10, node, F_RDLCK, 2 * place, 2 * place + 1, wait=False)
    assert (
        errno_of(lambda: locks.set_record(10, node, F_RDLCK, 9000, 9001, wait=False))
        is Errno.ENOLCK
    )


@pytest.mark.needs_sources
def test_record_locks_of_a_sandbox_are_bounded(
    system: System, process: Process, locks: FileLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wasmsand.kernel.files.locks.RECORD_LOCKS_MAX", 160)
    nodes = []
    for number in range(17):
        file = system.open(process, b"/tmp/%d" % number, O_RDWR | O_CREAT)
        assert file.node is not None
        nodes.append(file.node)
    for node in nodes[:16]:
        for place in range(10):
            locks.set_record(10, node, F_RDLCK, 2 * place, 2 * place + 1, wait=False)
    refused = partial(locks.set_record, wait=False)
    assert errno_of(refused, 10, nodes[16], F_RDLCK, 0, 1) is Errno.ENOLCK
    locks.drop_process(10, nodes[0])
    locks.set_record(10, nodes[16], F_RDLCK, 0, 1, wait=False)


def test_nothing_is_kept_for_files_without_locks(
    locks: FileLocks, files: tuple[OpenFile, OpenFile], node: Node
) -> None:
    locks.flock(files[0], node, LOCK_EX)
    locks.set_record(10, node, F_WRLCK, 0, 10, wait=False)
    locks.flock(files[0], node, LOCK_UN)
    locks.set_record(10, node, F_UNLCK, 0, END_OF_FILE, wait=False)
    locks.set_record(10, node, F_UNLCK, 0, END_OF_FILE, wait=False)
    assert not locks._inodes
