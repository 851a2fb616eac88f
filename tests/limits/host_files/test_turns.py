"""Host operations let guests have the lock, and cope with what guests do in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from tests.limits.host_files.turns import LONGEST_HOLD, Host, Turns
from wasmsand import SandboxClosedError, SandboxOptions
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, IO_CHUNK, MIB, Limits
from wasmsand.kernel.vfs import ROOT
from wasmsand.machine import export_tar
from wasmsand.machine.lock import SandboxLock
from wasmsand.sdk.local import LocalBackend

pytestmark = pytest.mark.no_userland


MANY = 5_000


@pytest.mark.parametrize(
    "work",
    [
        lambda host: host.files.list("/tmp/d"),
        lambda host: host.files.tree("/tmp"),
        lambda host: host.files.copy("/tmp/d", "/tmp/e"),
        lambda host: host.files.remove("/tmp/d", recursive=True),
        lambda host: b"".join(export_tar(host.machine, "/tmp")),
    ],
    ids=["list", "tree", "copy", "remove", "export"],
)
def test_operations_on_many_files_let_others_have_the_lock(
    host: Host, work: Callable[[Host], object]
) -> None:
    host.fill("/tmp/d", MANY)
    host.turns.count, host.turns.longest = 0, 0.0
    work(host)
    assert host.turns.count >= MANY // HOST_ENTRIES_PER_HOLD
    assert host.turns.longest < LONGEST_HOLD


def test_large_files_are_read_and_written_without_the_lock(host: Host) -> None:
    data = bytes(range(256)) * (100 * MIB // 256)
    for _ in range(2):
        host.files.write("/tmp/f", data)
    host.link("/tmp/f", "/tmp/g")
    host.files.write("/tmp/f", data)
    assert host.files.read("/tmp/g") == data
    host.files.append("/tmp/f", bytes(100 * MIB))
    assert host.turns.longest < LONGEST_HOLD
    assert host.turns.count > 100 * MIB // IO_CHUNK


def test_reading_sees_one_moment_of_a_file(host: Host) -> None:
    host.files.write("/tmp/f", b"a" * 5 * MIB)
    node = host.node("/tmp/f")

    def overwrite() -> None:
        for offset in range(0, 5 * MIB, MIB):
            host.namespace.write(ROOT, node, offset, b"b" * MIB)

    host.turns.between = overwrite
    assert host.files.read("/tmp/f") == b"a" * 5 * MIB
    assert host.namespace.read(node, 0, MIB) == b"b" * MIB


def test_an_operation_ends_when_the_machine_is_closed() -> None:
    backend = LocalBackend(SandboxOptions())
    machine = backend._machine
    machine.lock = cast("SandboxLock", Turns())
    turns = cast("Turns", machine.lock)
    for number in range(10):
        machine.files.mkdir(f"/tmp/d/{number}")

    def close() -> None:
        machine.closed = True

    turns.between = close
    with pytest.raises(SandboxClosedError):
        backend.list_directory("/tmp", recursive=True)
    with pytest.raises(KernelError, match="ENOENT"):  # a later operation may begin
        machine.files.list("/nowhere")


def test_entries_that_vanish_are_left_out(host: Host) -> None:
    for directory in ("a", "b", "c"):
        host.fill(f"/tmp/d{directory}", 3)

    def vanish() -> None:
        for name in ("db", "dc"):
            if host.files.exists(f"/tmp/{name}"):
                host.files.remove(f"/tmp/{name}", recursive=True)
                break

    for work in (
        lambda: host.files.tree("/tmp"),
        lambda: b"".join(export_tar(host.machine, "/tmp")),
        lambda: host.files.copy("/tmp", "/home/copy"),
    ):
        for directory in ("b", "c"):
            host.fill(f"/tmp/d{directory}", 3)
        host.turns.between = vanish
        work()
        host.turns.between = None
    assert host.files.exists("/home/copy/da/f2")


def test_a_walk_through_directories_that_keep_moving_ends(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wasmsand.machine.host_access.IMAGE_ENTRIES_MAX", 0)
    host = Host(Limits(max_inodes=100))
    host.files.mkdir("/tmp/d/a0")
    turn = 0

    def rename() -> None:
        """Move directories that the walk has seen to names that it has not."""
        nonlocal turn
        for name in [entry.name for entry in host.files.list("/tmp/d")]:
            turn += 1
            host.files.mkdir(f"/tmp/d/{name}/a{turn}")
            host.rename(f"/tmp/d/{name}/a{turn}", f"/tmp/d/z{turn}")
            host.rename(f"/tmp/d/{name}", f"/tmp/d/z{turn}/x")
            break

    host.turns.between = rename
    with pytest.raises(KernelError) as caught:
        for _ in range(10_000):
            host.files.tree("/tmp/d")
    assert caught.value.errno in (Errno.EBUSY, Errno.ENOSPC, Errno.ENAMETOOLONG)
