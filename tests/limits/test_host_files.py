"""What the host does with files that a guest has laid out against it: memory, disk and the time
that the sandbox's lock is held stay bounded, and nothing is lost or removed that was not meant.

Trees are made by the kernel directly, where a guest would only take longer; the guest's turns
between two steps of a host's operation are taken by `Turns`.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import cast

import pytest

from wasmsand import Sandbox, SandboxClosedError, SandboxOptions
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import O_CREAT, O_WRONLY
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, IO_CHUNK, MIB, Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Node, TreeFs, standard_tree
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE
from wasmsand.machine import Machine, MachineOptions, export_tar
from wasmsand.machine.lock import SandboxLock
from wasmsand.sdk.local import LocalBackend

pytestmark = pytest.mark.no_userland

HUGE = 1 << 40
LONGEST_HOLD = 2.0
"""Seconds; holds are of milliseconds, but the machine that tests run on may be busy."""


class Turns:
    """A sandbox's lock that knows how often and how long it was held, and lets `between` run
    when it is free, as a guest would."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self.between: Callable[[], None] | None = None
        self.count = 0
        self.longest = 0.0
        self._since = 0.0

    def acquire(self) -> bool:
        self._lock.acquire()
        self._since = time.thread_time()
        return True

    def release(self) -> None:
        self.longest = max(self.longest, time.thread_time() - self._since)
        self.count += 1
        self._lock.release()
        between, self.between = self.between, None
        if between is not None:
            between()
            self.between = between

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Host:
    """A machine without programs, and short ways to make files as a guest would."""

    def __init__(self, limits: Limits | None = None) -> None:
        builder = ImageBuilder()
        standard_tree(builder)
        self.machine = Machine(MachineOptions(limits=limits or Limits()), image=builder.build())
        self.turns = Turns()
        self.machine.lock = cast("SandboxLock", self.turns)
        self.files = self.machine.files
        self.namespace = self.machine.kernel.namespace

    def node(self, path: str) -> Node:
        return self.namespace.resolve(ROOT, self.namespace.root, path.encode(), follow=False)

    def truncate(self, path: str, size: int) -> None:
        self.namespace.resize(ROOT, self.node(path), size)

    def link(self, path: str, new: str) -> None:
        self.namespace.link(ROOT, self.node(path), self.namespace.root, new.encode())

    def rename(self, path: str, new: str) -> None:
        root = self.namespace.root
        self.namespace.rename(ROOT, root, path.encode(), root, new.encode())

    def fill(self, path: str, count: int, prefix: str = "f") -> None:
        """Empty files in a directory, which is made."""
        if not self.files.exists(path):
            self.namespace.mkdir(ROOT, self.namespace.root, path.encode(), 0o755)
        directory = self.node(path)
        for number in range(count):
            name = f"{prefix}{number}".encode()
            self.namespace.open_node(ROOT, directory, name, O_CREAT | O_WRONLY, 0o644)


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.machine.close()


class Peak:
    """The most memory that Python had at once, within a block."""

    def __enter__(self) -> Peak:
        tracemalloc.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
from tests.limits.test_host_files import HUGE, Host
host = Host()
files = host.files
files.write("/tmp/f", b"old")
host.truncate("/tmp/f", HUGE)
{work}
print(host.machine.kernel.root.space.used_blocks, files.stat("/tmp/f").size)
"""


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("files.write('/tmp/f', b'')", "0 0"),
        ("files.write('/tmp/f', b'new')", "1 3"),
        ("host.link('/tmp/f', '/tmp/g'); files.write('/tmp/f', b'new')", "1 3"),
        ("host.link('/tmp/f', '/tmp/g'); files.write('/tmp/g', b'')", "0 0"),
        ("files.append('/tmp/f', b'end')", f"2 {HUGE + 3}"),
        ("files.append('/tmp/f', bytes(3 << 20))", f"769 {HUGE + (3 << 20)}"),
        ("files.copy('/tmp/f', '/tmp/g')", f"2 {HUGE}"),
        ("files.copy('/tmp', '/home/g')", f"2 {HUGE}"),
        ("files.rename('/tmp/f', '/tmp/g'); files.copy('/tmp/g', '/tmp/f')", f"2 {HUGE}"),
        ("assert files.read('/tmp/f', HUGE - 5, 100) == bytes(5)", f"1 {HUGE}"),
        ("files.write('/tmp/f', b'new', mode=0o600)", "1 3"),
    ],
)
def test_what_holes_seem_to_hold_is_never_read(work: str, told: str, repository: Path) -> None:
    """In a process of its own that may have 1 GiB."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(work=work)],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (child.stdout, child.stderr[-2000:]) == (told + "\n", "")


def test_a_file_of_holes_is_read_in_parts_only(host: Host) -> None:
    host.files.write("/tmp/f", b"x")
    host.truncate("/tmp/f", HUGE)
    with pytest.raises(KernelError, match=r"^EFBIG: /tmp/f has .* holes; read it in parts"):
        host.files.read("/tmp/f")
    with pytest.raises(KernelError, match=r"^EFBIG: "):
        host.files.read("/tmp/f", 0, HUGE)
    with pytest.raises(KernelError, match=r"^EFBIG: "):
        b"".join(export_tar(host.machine, "/tmp"))


@pytest.mark.parametrize("links", [1, 2])
def test_a_write_that_does_not_fit_leaves_what_was_there(links: int) -> None:
    host = Host(Limits(fs_limit_bytes=10 * MIB))
    host.files.write("/tmp/f", b"old" * MIB)
    if links == 2:
        host.link("/tmp/f", "/tmp/g")
    with pytest.raises(KernelError, match=r"^ENOSPC: .*fs_limit_bytes"):
        host.files.write("/tmp/f", bytes(11 * MIB))
    for size in (MIB // 2, 9 * MIB):
        with pytest.raises(KernelError, match=r"^ENOSPC: .*fs_limit_bytes"):
            host.files.append("/tmp/f", bytes(size) * (1 if size > MIB else 20))
    assert host.files.read("/tmp/f") == b"old" * MIB
    host.files.write("/tmp/h", b"")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        for number in range(5):
            host.files.copy("/tmp/f", f"/tmp/copy{number}")
    host.files.write("/tmp/small", b"kept")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        host.files.copy("/tmp/f", "/tmp/small")
    assert host.files.read("/tmp/small") == b"kept"
    used = host.machine.kernel.root.space.used_blocks
    for entry in host.files.list("/tmp"):
        host.files.remove(f"/tmp/{entry.name}", recursive=True)
    assert host.machine.kernel.root.space.used_blocks < used
    assert host.machine.kernel.root.space.used_blocks == 0


def interleaved(host: Host, path: str, chunks: int) -> None:
    host.files.write(path, b"")
    node = host.node(path)
    for number in range(chunks):
        host.namespace.write(ROOT, node, number * 2 * CHUNK_SIZE, b"x")


def test_copying_an_interleaved_file_is_not_quadratic(host: Host) -> None:
    interleaved(host, "/tmp/f", 30_000)
    started = time.monotonic()
    host.files.copy("/tmp/f", "/tmp/g")
    assert time.monotonic() - started < 2
    assert host.turns.longest < LONGEST_HOLD
    used = host.machine.kernel.root.space.used_blocks
    assert used == 60_000
    host.namespace.write(ROOT, host.node("/tmp/g"), 0, b"y")
    assert (host.files.read("/tmp/f", 0, 1), host.files.read("/tmp/g", 0, 1)) == (b"x", b"y")
    assert host.machine.kernel.root.space.used_blocks == used


def test_a_copy_is_charged_as_if_it_had_bytes_of_its_own() -> None:
    host = Host(Limits(fs_limit_bytes=10 * MIB))
    host.files.write("/tmp/f", bytes(4 * MIB))
    host.files.copy("/tmp/f", "/tmp/g")
    with pytest.raises(KernelError, match=r"^ENOSPC: "):
        host.files.copy("/tmp/f", "/tmp/h")
    node = host.node("/tmp/g")
    for offset in range(0, 4 * MIB, CHUNK_SIZE):
        assert host.namespace.write(ROOT, node, offset, b"y") == 1


# The lock.


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
    with pytest.raises(KernelError, match="ENOENT"):  # one that begins afterwards is let in
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


# Removing.


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


def test_a_walk_that_is_led_in_circles_ends(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.machine.host_access.IMAGE_ENTRIES_MAX", 0)
    host = Host(Limits(max_inodes=100))
    host.files.mkdir("/tmp/d/a0")
    turn = 0

    def rename() -> None:
        """What was seen comes back under a later name."""
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


# Names.


def test_a_listing_of_long_paths_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.machine.files.HOST_LISTING_BYTES", 1 * MIB)
    path = "/tmp"
    for _ in range(10):
        path += "/" + "n" * 200
        host.files.mkdir(path)
    host.fill(path, 1_000)
    with Peak() as peak, pytest.raises(KernelError, match=r"EFBIG: .*list its directories"):
        host.files.tree("/tmp")
    assert peak.bytes < 8 * MIB
    with pytest.raises(KernelError, match="EFBIG"):
        host.files.list(path)
    host.files.symlink(path, "/tmp/short")
    assert len(host.files.list("/tmp/short")) == 1_000


def test_many_directories_that_are_missing_are_made_in_linear_time(host: Host) -> None:
    path = "/tmp" + "/d" * 2_000
    host.files.mkdir(path)
    host.files.write(path + "/f", b"x")
    assert host.files.read(path + "/f") == b"x"
    assert host.turns.longest < LONGEST_HOLD


@pytest.mark.parametrize("size", [0, 3])
def test_a_write_through_a_path_of_forty_links(host: Host, size: int) -> None:
    host.files.mkdir("/tmp/" + "/".join(["d" * 60] * 60))
    host.files.symlink("/".join(["d" * 60] * 60), "/tmp/l0")
    for number in range(1, 40):
        host.files.symlink(f"/tmp/l{number - 1}", f"/tmp/l{number}")
    host.files.write("/tmp/l39/f", bytes(size))
    assert host.files.read("/tmp/l0/f") == bytes(size)
    with pytest.raises(KernelError, match="ELOOP"):
        host.files.symlink("/tmp/l39", "/tmp/l40")
        host.files.write("/tmp/l40/f", b"x")


def test_a_sandbox_of_this_host_is_not_hurt_by_a_write_to_holes() -> None:
    """The row as it was reported, by the public API."""
    with Sandbox() as sandbox:
        machine = cast("LocalBackend", sandbox._attachment.backend)._machine
        sandbox.files.write("f", b"x")
        node = machine.kernel.namespace.resolve(
            ROOT, machine.kernel.namespace.root, b"/home/user/f"
        )
        machine.kernel.namespace.resize(ROOT, node, 1 << 31)
        with Peak() as peak:
            sandbox.files.write("f", "")
        assert peak.bytes < MIB
        assert sandbox.files.stat("f").size == 0
