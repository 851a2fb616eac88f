"""Recursive removals end, and remove nothing but what the path holds."""

from __future__ import annotations

import time

import pytest

from tests.limits.host_files.turns import LONGEST_HOLD, Host
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, TreeFs
from wasmsand.machine import export_tar

pytestmark = pytest.mark.no_userland


def test_a_removal_ends_although_a_guest_goes_on_making_files(host: Host) -> None:
    host.fill("/tmp/d", 10)
    made = 0

    def make() -> None:
        nonlocal made
        host.fill("/tmp/d", HOST_ENTRIES_PER_HOLD + 5, f"again{made}-")
        made += 1

    host.turns.between = make
    with pytest.raises(KernelError, match="ENOTEMPTY"):
        host.files.remove("/tmp/d", recursive=True)
    host.turns.between = None
    assert made < 100
    host.files.remove("/tmp/d", recursive=True)
    assert not host.files.exists("/tmp/d")


def test_a_removal_does_not_follow_a_directory_that_is_moved_away(host: Host) -> None:
    """The directory is entered, then moved out of the tree: its files stay."""
    host.fill("/tmp/d", 1)
    host.fill("/tmp/d/sub", 2 * HOST_ENTRIES_PER_HOLD)
    moved = False

    def move() -> None:
        nonlocal moved
        few = len(host.files.list("/tmp/d/sub")) if host.files.exists("/tmp/d/sub") else 0
        if not moved and 0 < few < 2 * HOST_ENTRIES_PER_HOLD:
            host.rename("/tmp/d/sub", "/home/user/kept")
            moved = True

    host.turns.between = move
    host.files.remove("/tmp/d", recursive=True)
    host.turns.between = None
    assert moved
    assert not host.files.exists("/tmp/d")
    assert len(host.files.list("/home/user/kept")) >= HOST_ENTRIES_PER_HOLD


def test_a_removal_does_not_follow_a_link_that_takes_a_directorys_place(host: Host) -> None:
    host.fill("/tmp/d", 1)
    host.fill("/tmp/d/sub", 2 * HOST_ENTRIES_PER_HOLD)
    host.fill("/home/user/mine", 3)
    swapped = False

    def swap() -> None:
        nonlocal swapped
        if not swapped and host.files.exists("/tmp/d/sub"):
            host.rename("/tmp/d/sub", "/tmp/elsewhere")
            host.files.symlink("/home/user/mine", "/tmp/d/sub")
            swapped = True

    host.turns.between = swap
    host.files.remove("/tmp/d", recursive=True)
    assert swapped
    assert len(host.files.list("/home/user/mine")) == 3


def test_nothing_is_removed_copied_or_exported_through_a_mount(host: Host) -> None:
    host.fill("/tmp/d", 2)
    host.files.mkdir("/tmp/d/mount")
    host.files.write("/tmp/d/z", b"z")
    other = TreeFs(ImageBuilder().build(), Limits())
    host.namespace.mount(host.node("/tmp/d/mount"), other)
    host.files.write("/tmp/d/mount/precious", b"mine")
    with pytest.raises(KernelError, match="EBUSY"):
        host.files.remove("/tmp/d", recursive=True)
    with pytest.raises(KernelError, match="EBUSY"):
        host.files.remove("/tmp/d/mount", recursive=True)
    with pytest.raises(KernelError, match="EBUSY"):
        host.files.remove("/", recursive=True)
    assert host.files.read("/tmp/d/mount/precious") == b"mine"
    assert host.files.exists("/etc/passwd")
    host.files.copy("/tmp/d", "/tmp/copy")
    assert [entry.name for entry in host.files.list("/tmp/copy")] == ["mount", "z"]
    assert host.files.list("/tmp/copy/mount") == []
    assert b"precious" not in b"".join(export_tar(host.machine, "/tmp"))


def test_a_tree_deeper_than_pythons_stack_is_removed(host: Host) -> None:
    node = host.node("/tmp")
    for _ in range(20_000):
        node = host.namespace.mkdir(ROOT, node, b"d", 0o755)
    started = time.monotonic()
    host.files.remove("/tmp/d", recursive=True)
    assert time.monotonic() - started < 30
    assert host.turns.longest < LONGEST_HOLD
    assert host.machine.kernel.root.space.used_inodes == 0
