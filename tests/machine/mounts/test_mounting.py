"""Mounting and unmounting; limits; what operations on trees, archives and images do at mounts."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from wasmsand import FileError, Mount, MountError, NoSpaceError, PermissionDeniedError, Sandbox
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs.outside import Move, Place
from wasmsand.machine.mounts import beneath
from wasmsand.machine.mounts.host_changes import WritableDirectory
from wasmsand.machine.mounts.quota import WriteQuota
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.mounts import MountMode
from wasmsand.sdk.options import SandboxOptions

MIB = 1 << 20


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    (place / "sub").mkdir(parents=True)
    (place / "file").write_text("content\n")
    (place / "sub" / "deep").write_text("deep\n")
    return place


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(cwd="/") as made:
        yield made


def said(sandbox: Sandbox, command: str) -> str:
    result = sandbox.commands.run(command)
    return result.stdout + result.stderr


def test_read_only_is_the_default_and_changes_fail(sandbox: Sandbox, inside: Path) -> None:
    info = sandbox.mount("/mnt/d", inside)
    assert (info.path, info.source, info.mode) == ("/mnt/d", str(inside), "read-only")
    commands = (
        "echo x > new", "echo x >> file", "rm file", "mkdir d", "mv file other", "chmod 1 file",
        "touch file", "ln file l", "ln -s a b", "rmdir sub", "truncate -s 0 file",
    )  # fmt: skip
    for command in commands:
        assert "Read-only file system" in said(sandbox, f"cd /mnt/d; {command}"), command
    with pytest.raises(PermissionDeniedError, match="EROFS"):
        sandbox.files.write("/mnt/d/new", "x")
    with pytest.raises(PermissionDeniedError, match="EROFS"):
        sandbox.files.rm("/mnt/d/file")
    assert "hostfs ro,nosuid,nodev" in said(sandbox, "cat /proc/mounts")


def test_read_write_changes_the_directory_itself(sandbox: Sandbox, inside: Path) -> None:
    sandbox.mount("/mnt/d", inside, read_only=False)
    told = said(
        sandbox,
        "cd /mnt/d; echo new > new; mv file moved; mv --exchange new moved; cat new moved; "
        "chmod 700 sub; touch -d @1000 new; ls sub",
    )
    assert told == "content\nnew\ndeep\n"
    assert sorted(os.listdir(inside)) == ["moved", "new", "sub"]
    assert (inside / "moved").read_text() == "new\n"
    assert os.stat(inside / "sub").st_mode & 0o777 == 0o700
    assert os.stat(inside / "new").st_mtime == 1000
    sandbox.files.write("/mnt/d/by/host", b"x" * 3 * MIB)
    assert (inside / "by" / "host").read_bytes() == b"x" * 3 * MIB
    sandbox.files.rm("/mnt/d/by", recursive=True)
    assert not (inside / "by").exists()


def test_what_the_host_does_is_seen_by_the_next_command(sandbox: Sandbox, inside: Path) -> None:
    sandbox.mount("/mnt/d", inside)
    with sandbox.shell() as shell:
        for number in range(20):
            (inside / "file").write_text(f"{number:03}\n")
            assert sandbox.commands.run("cat /mnt/d/file").stdout == f"{number:03}\n"
            (inside / "file").write_text(f"{number:03}b\n")
            assert shell.run("cat /mnt/d/file").stdout == f"{number:03}b\n"
            (inside / f"f{number}").touch()
            assert len(sandbox.files.list("/mnt/d")) == 3 + number


def test_a_quota_bounds_what_is_added(sandbox: Sandbox, inside: Path) -> None:
    sandbox.mount("/mnt/d", inside, read_only=False, limit_bytes=MIB, max_inodes=10)
    told = said(sandbox, "cd /mnt/d; head -c 3000000 /dev/zero > big; stat -c %s big")
    assert "No space left on device" in told
    assert f"\n{MIB}\n" in f"\n{told}"
    assert sandbox.mounts[0].written_bytes == MIB
    with pytest.raises(NoSpaceError, match="limit_bytes"):
        sandbox.files.write("/mnt/d/file", b"y" * MIB)
    # Overwriting needs no room; what is removed is given back, and no more than that.
    assert said(sandbox, "cd /mnt/d; printf CONTENT | dd of=file conv=notrunc status=none") == ""
    said(sandbox, "cd /mnt/d; rm big; rm sub/deep")
    assert sandbox.mounts[0].written_bytes == 0
    assert "No space left" in said(sandbox, "cd /mnt/d; truncate -s 1G file")
    told = said(sandbox, "cd /mnt/d; for i in $(seq 12); do touch n$i; done")
    assert told.count("No space left on device") == 2
    assert sandbox.mounts[0].written_inodes == 10


def test_trees_stop_at_mounts(sandbox: Sandbox, inside: Path) -> None:
    sandbox.files.write("/work/own", "x")
    sandbox.mount("/work/d", inside, read_only=False)
    with pytest.raises(FileError, match="EBUSY"):
        sandbox.files.rm("/work", recursive=True)
    assert sorted(os.listdir(inside)) == ["file", "sub"]
    sandbox.files.write("/work/own", "x")
    with tarfile.open(fileobj=io.BytesIO(b"".join(sandbox.files.export_tar("/work")))) as archive:
        assert [member.name for member in archive] == ["d", "own"]
    sandbox.files.copy("/work", "/copy")
    assert said(sandbox, "find /copy | sort") == "/copy\n/copy/d\n/copy/own\n"


def test_a_disk_image_does_not_contain_mounts(inside: Path) -> None:
    options = SandboxOptions(mounts={"/work/d": Mount(inside, mode="read-write")})
    backend, other = LocalBackend(options), LocalBackend(SandboxOptions())
    try:
        backend.write_file("/work/d/new", b"x")
        backend.write_file("/work/own", b"x")
        stream = io.BytesIO()
        backend.save_disk(stream)
        stream.seek(0)
        other.load_disk(stream)
        assert other.list_directory("/work/d") == []
        assert other.read_file("/work/own") == b"x"
    finally:
        backend.close()
        other.close()


def test_unmounting(sandbox: Sandbox, inside: Path) -> None:
    sandbox.mount("/mnt/d", inside)
    with sandbox.commands.start("cd /mnt/d; echo in; read x; cat file; ls") as user:
        assert next(iter(user)).text == "in\n"
        with pytest.raises(FileError, match=r"EBUSY.*force"):
            sandbox.unmount("/mnt/d")
        sandbox.unmount("/mnt/d", force=True)
        assert sandbox.mounts == []
        user.write_stdin("x\n")
        assert "content" not in user.wait().stdout
    assert said(sandbox, "ls /mnt/d") == ""
    with pytest.raises(FileError, match=r"EINVAL.*nothing is mounted"):
        sandbox.unmount("/mnt/d")
    sandbox.mount("/mnt/d", inside)
    assert said(sandbox, "cat /mnt/d/file") == "content\n"


def test_bad_mounts_are_refused(sandbox: Sandbox, inside: Path) -> None:
    with pytest.raises(MountError, match="No such file"):
        sandbox.mount("/mnt/d", inside / "missing")
    with pytest.raises(MountError, match="Not a directory"):
        sandbox.mount("/mnt/d", inside / "file")
    sandbox.mount("/mnt/d", inside)
    with pytest.raises(FileError, match="EBUSY"):
        sandbox.mount("/mnt/d/", inside)
    with pytest.raises(FileError, match="EROFS"):
        sandbox.mount("/mnt/d/new", inside)
    for path in ("/", "/proc", "/dev/shm", "//", "relative/path"):
        with pytest.raises(ValueError, match="path"):
            sandbox.mount(path, inside)
    with pytest.raises(ValueError, match="mode"):
        sandbox.mount("/mnt/e", inside, mode="writable")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="source"):
        sandbox.mount("/mnt/e")
    with pytest.raises(FileError, match=r"EINVAL.*overlay"):
        sandbox.diff("/mnt/d")
    with pytest.raises(ValueError, match="0 overlays"):
        sandbox.diff()
    with pytest.raises(MountError):
        Sandbox(mounts={"/mnt/d": inside / "missing"})


def test_a_mount_inside_a_mount(sandbox: Sandbox, inside: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o").write_text("other\n")
    sandbox.mount("/mnt/d", inside)
    sandbox.mount("/mnt/d/sub", other, mode="overlay")
    assert said(sandbox, "cat /mnt/d/sub/o; cd /mnt/d/sub; cat ../file; echo x > y; ls") == (
        "other\ncontent\no\ny\n"
    )
    with pytest.raises(FileError, match="EBUSY"):
        sandbox.unmount("/mnt/d")


def test_memory_mounts_have_a_limit_of_their_own(sandbox: Sandbox) -> None:
    sandbox.mount("/mnt/m", mode="memory", limit_bytes=MIB)
    before = sandbox.usage().fs_bytes
    assert "No space left" in said(sandbox, "head -c 2M /dev/zero > /mnt/m/x")
    assert sandbox.usage().fs_bytes == before
    assert said(sandbox, "stat -c %s /mnt/m/x") == f"{MIB}\n"


@pytest.mark.parametrize("mode", ["read-only", "overlay"])
def test_mounting_takes_the_same_time_for_any_size(
    sandbox: Sandbox, tmp_path: Path, mode: str
) -> None:
    big = tmp_path / "big"
    for directory in range(20):
        (big / str(directory)).mkdir(parents=True)
        for number in range(500):
            (big / str(directory) / str(number)).touch()
    began = time.monotonic()
    sandbox.mount("/mnt/big", big, mode=mode)  # type: ignore[arg-type]
    assert time.monotonic() - began < 1
    assert said(sandbox, "find /mnt/big -type f | wc -l") == "10000\n"


@pytest.mark.needs_sources
def test_what_is_kept_in_memory_is_bounded(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wasmsand.kernel.vfs import lazy_tree

    big = tmp_path / "big"
    for directory in range(20):
        (big / str(directory)).mkdir(parents=True)
        for number in range(50):
            (big / str(directory) / str(number)).write_bytes(b"x" * 1000)
    monkeypatch.setattr(lazy_tree, "MOUNT_NAMES_MAX", 200)
    monkeypatch.setattr(lazy_tree, "MOUNT_CACHE_BYTES", 20_000)
    sandbox.mount("/mnt/big", big, mode="overlay")
    backend = sandbox._attachment.backend
    assert isinstance(backend, LocalBackend)
    tree = backend._machine.mounts.entries["/mnt/big"].tree
    assert isinstance(tree, lazy_tree.LazyTree)
    with sandbox.shell() as shell:
        shell.run("cd /mnt/big/3; exec 5< 7; echo changed > 9")
        for _ in range(2):
            assert sandbox.commands.run("cat /mnt/big/*/* | wc -c").stdout == "999008\n"
        assert len(tree._lower) <= 200
        assert tree._window_bytes <= 20_000
        assert shell.run("cat <&5 | wc -c; cat 9; pwd -P").stdout == "1000\nchanged\n/mnt/big/3\n"
    assert sandbox.diff().changed == ("3/9",)


# Opening beneath a directory, with and without openat2.

OPENERS = [beneath.open_beneath, beneath.open_by_steps]


@pytest.mark.parametrize("opener", OPENERS)
def test_nothing_is_opened_outside_of_a_directory(
    inside: Path, tmp_path: Path, opener: object
) -> None:
    assert callable(opener)
    (tmp_path / "secret").write_text("secret")
    (inside / "link").symlink_to("sub")
    (inside / "out").symlink_to("..")
    root = os.open(inside, beneath.HANDLE)
    flags = os.O_RDONLY | os.O_NOFOLLOW
    try:
        fd = opener(root, (b"sub", b"deep"), flags)
        assert os.read(fd, 10) == b"deep\n"
        os.close(fd)
        for names in ((b"link", b"deep"), (b"out", b"secret"), (b"link",)):
            with pytest.raises(OSError, match="Too many levels"):
                opener(root, names, flags)
        for names in ((b"missing",), (b"sub", b"missing")):
            with pytest.raises(FileNotFoundError):
                opener(root, names, flags)
    finally:
        os.close(root)


@pytest.mark.parametrize("name", [b"..", b".", b"", b"a/b", b"a\0b", b"/"])
def test_names_that_are_no_names_are_refused(inside: Path, name: bytes) -> None:
    root = os.open(inside, beneath.HANDLE)
    try:
        with pytest.raises(OSError, match="not a path of names"):
            beneath.open_beneath(root, (name,), os.O_RDONLY)
    finally:
        os.close(root)


@pytest.mark.parametrize("name", [b"..", b".", b"", b"../x", b"a\0b", b"/tmp/x"])
def test_no_change_is_made_with_such_a_name(inside: Path, name: bytes) -> None:
    """Even if the kernel let one through."""
    directory = WritableDirectory(str(inside), 1000, 1000, WriteQuota(1000, 10))
    root = directory.root
    file = next(
        Place(root, b"file", facts, 0.0)
        for each, facts in directory.list(root, None, ()).entries.items()
        if each == b"file" and facts is not None
    )
    move = Move(file, root, b"file", root, name, None)
    acts: tuple[Callable[[], object], ...] = (
        partial(directory.create, root, name, 0o644),
        partial(directory.mkdir, root, name, 0o755),
        partial(directory.symlink, root, name, b"target"),
        partial(directory.link, file, root, name),
        partial(directory.rename, move),
    )
    for act in acts:
        with pytest.raises(KernelError, match="EINVAL"):
            act()
    assert sorted(os.listdir(inside)) == ["file", "sub"]
    assert directory.quota.used_inodes == 0
    directory.close()


def test_another_file_system_is_not_entered_by_steps() -> None:
    root = os.open("/", beneath.HANDLE)
    try:
        for opener in OPENERS:
            with pytest.raises(OSError, match=r"cross-device|file system"):
                opener(root, (b"proc", b"version"), os.O_RDONLY | os.O_NOFOLLOW)
    finally:
        os.close(root)


# Programs in a mount.

HELLO = """
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_filestat_get"
    (func $stat (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "found\\n")
  (data (i32.const 120) "file")
  (func (export "_start")
    (if (i32.eqz (call $stat (i32.const 3) (i32.const 0) (i32.const 120) (i32.const 4)
                             (i32.const 200)))
      (then
        (i32.store (i32.const 0) (i32.const 100))
        (i32.store (i32.const 4) (i32.const 6))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))))))
"""


@pytest.mark.parametrize("mode", ["read-only", "read-write", "overlay"])
def test_programs_and_scripts_run_from_a_mount(inside: Path, mode: MountMode) -> None:
    import wasmtime

    (inside / "program").write_bytes(bytes(wasmtime.wat2wasm(HELLO)))
    (inside / "script").write_text("#!/bin/sh\necho from a script in $PWD\n")
    (inside / "module.py").write_text("VALUE = 42\n")
    for name in ("program", "script"):
        (inside / name).chmod(0o755)
    with Sandbox(mounts={"/data": Mount(inside, mode=mode)}, cwd="/data") as sandbox:
        assert said(sandbox, "./program; ./program") == "found\nfound\n"
        assert said(sandbox, "cd sub; ../script") == "from a script in /data/sub\n"
        assert said(sandbox, "python3 -c 'import module; print(module.VALUE)'") == "42\n"
        assert said(sandbox, "chmod -x file; ./file").count("Permission denied") >= 1


def test_a_large_directory_is_brought_in_piece_by_piece(sandbox: Sandbox, tmp_path: Path) -> None:
    """Others, and operations of the host, use the directory meanwhile."""
    big = tmp_path / "big"
    big.mkdir()
    for number in range(5000):
        (big / f"f{number}").touch()
    sandbox.mount("/mnt/big", big, mode="overlay")
    command = "for i in 1 2 3; do ls /mnt/big | wc -l & done; touch /mnt/big/new; wait"
    with sandbox.commands.start(command) as listing:
        assert len(sandbox.files.list("/mnt/big")) in (5000, 5001)
        counts = listing.wait().stdout.split()
    assert len(counts) == 3
    assert set(counts) <= {"5000", "5001"}
    (big / "later").touch()
    os.unlink(big / "f7")
    assert (
        said(sandbox, "ls /mnt/big | wc -l; rm /mnt/big/f8; ls /mnt/big | wc -l") == "5001\n5000\n"
    )
