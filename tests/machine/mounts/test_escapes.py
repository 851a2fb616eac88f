"""Escapes tried against mounts: what a guest does to read or change something outside of the
directory, or to make the host do it. docs/threat-model.md has the same table.

Each test has a directory `outside` with a secret beside the mounted one, and runs real programs.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from wasmsand import Mount, Sandbox

SECRET = "the host's secret"
MODES = ("read-only", "read-write", "overlay")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_text(SECRET)
    return place


@pytest.fixture
def inside(tmp_path: Path, outside: Path) -> Path:
    place = tmp_path / "inside"
    (place / "sub").mkdir(parents=True)
    (place / "file").write_text("content")
    (place / "sub" / "deep").write_text("deep")
    return place


@pytest.fixture(params=MODES)
def sandbox(request: pytest.FixtureRequest, inside: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode=request.param)}, cwd="/") as made:
        yield made


@pytest.fixture
def writable(inside: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode="read-write")}, cwd="/") as made:
        yield made


def said(sandbox: Sandbox, command: str) -> str:
    result = sandbox.commands.run(command)
    return result.stdout + result.stderr


def unchanged(outside: Path) -> bool:
    return sorted(os.listdir(outside)) == ["secret"] and (outside / "secret").read_text() == SECRET


# Symbolic links.


@pytest.mark.parametrize("target", ["absolute", "relative", "to the directory"])
def test_a_link_of_the_host_is_followed_in_the_guests_view_only(
    sandbox: Sandbox, inside: Path, outside: Path, target: str
) -> None:
    targets = {
        "absolute": outside / "secret",
        "relative": Path("..") / "outside" / "secret",
        "to the directory": outside,
    }
    (inside / "link").symlink_to(targets[target])
    for path in ("link", "link/secret", "sub/../link"):
        assert SECRET not in said(sandbox, f"cat /mnt/d/{path}; ls /mnt/d/{path}/")
    # Its text is shown as it is; it means something in the sandbox.
    assert said(sandbox, "readlink /mnt/d/link") == f"{targets[target]}\n"


def test_a_link_to_a_file_of_the_sandbox_leads_there(sandbox: Sandbox, inside: Path) -> None:
    (inside / "link").symlink_to("/etc/hostname")
    assert said(sandbox, "cat /mnt/d/link") == "sandbox\n"


def test_a_link_made_by_the_guest_leads_nowhere_outside(writable: Sandbox, outside: Path) -> None:
    assert SECRET not in said(
        writable,
        f"cd /mnt/d; ln -s {outside}/secret a; ln -s ../outside b; ln -s . c; "
        "cat a b/secret c/../outside/secret c/../../outside/secret; echo x > a; echo x > b/new",
    )
    assert unchanged(outside)


def test_a_directory_replaced_by_a_link_while_paths_are_resolved(
    sandbox: Sandbox, inside: Path, outside: Path
) -> None:
    """The host itself swaps a directory and a link, as fast as it can."""
    (inside / "sub" / "secret").write_text("harmless")
    (inside / "link").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(inside / "sub", inside / "kept")
            os.rename(inside / "link", inside / "sub")
            os.rename(inside / "sub", inside / "link")
            os.rename(inside / "kept", inside / "sub")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        found = said(
            sandbox,
            "for i in $(seq 60); do cat /mnt/d/sub/secret; echo x > /mnt/d/sub/secret; done",
        )
        for _ in range(60):
            try:
                found += sandbox.files.read("/mnt/d/sub/secret").decode()
            except Exception as error:
                found += str(error)
    finally:
        stop.set()
        swapping.join()
    assert SECRET not in found
    assert unchanged(outside)


# `..`, and the sandbox's own magic links.


def test_dots_stop_at_the_mount_point(sandbox: Sandbox, outside: Path) -> None:
    assert said(sandbox, "cd /mnt/d/sub; cd ../../..; pwd; ls -d ../etc") == "/\n../etc\n"
    assert SECRET not in said(
        sandbox, "cat /mnt/d/../outside/secret /mnt/d/sub/../../../outside/secret"
    )


def test_magic_links_of_proc_lead_to_the_mount_only(sandbox: Sandbox, outside: Path) -> None:
    found = said(
        sandbox,
        "exec 3< /mnt/d/file 4< /mnt/d; cat /proc/self/fd/3; readlink /proc/self/fd/3; "
        "cat /proc/self/fd/4/../outside/secret; cd /mnt/d; cat /proc/self/cwd/../outside/secret; "
        "ls /proc/self/root/ | head -1; cat /proc/self/mountinfo",
    )
    assert found.startswith("content")
    assert "/mnt/d/file" in found
    assert SECRET not in found
    assert str(outside.parent) not in found, "the guest learns the host's path"


# Hard links.


def test_hard_links_do_not_leave_the_mount(writable: Sandbox, inside: Path) -> None:
    found = said(
        writable,
        "ln /mnt/d/file /tmp/f; ln /etc/hostname /mnt/d/h; mv /mnt/d/sub /tmp/sub2 && ls /tmp/sub2",
    )
    assert found.count("Invalid cross-device link") == 2
    assert found.startswith("deep\n"), "mv copies"


def test_a_file_with_a_name_outside_is_not_written(
    writable: Sandbox, inside: Path, outside: Path
) -> None:
    os.link(outside / "secret", inside / "linked")
    found = said(
        writable,
        "cd /mnt/d; echo x > linked; echo x >> linked; truncate -s 1 linked; chmod 777 linked; "
        "cp file linked",
    )
    assert found.count("Operation not permitted") == 5
    assert (outside / "secret").read_text() == SECRET
    assert os.stat(outside / "secret").st_mode & 0o777 != 0o777
    # A name that the guest has made is another matter.
    assert said(writable, "cd /mnt/d; ln file second; echo new > second; cat file") == "new\n"


# Devices, FIFOs, sockets, set-id bits.


def test_special_files_of_the_host_are_never_opened(
    sandbox: Sandbox, inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(inside / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(inside)
        listening.bind("socket")
        listening.listen()
        listening.setblocking(False)
        if os.geteuid() == 0:
            os.mknod(inside / "zero", 0o666 | 0o020000, os.makedev(1, 5))
        found = said(
            sandbox,
            "cd /mnt/d; ls; head -c 4 zero; timeout 0.3 cat fifo; echo $?; cat socket; "
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'",
        )
        with pytest.raises(BlockingIOError):
            listening.accept()
    # Nobody has opened the host's FIFO: opening it to write fails.
    with pytest.raises(OSError, match="No such device or address"):
        os.open(inside / "fifo", os.O_WRONLY | os.O_NONBLOCK)
    assert "\n124\n" in found
    assert "ConnectionRefusedError" in found
    if os.geteuid() == 0:
        assert "'zero' for reading: Permission denied" in found


def test_special_files_cannot_be_made(writable: Sandbox, inside: Path) -> None:
    found = said(writable, "cd /mnt/d; mkfifo f; mknod n c 1 3; mknod m p")
    assert found.count("Operation not permitted") == 3
    assert sorted(os.listdir(inside)) == ["file", "sub"]


def test_set_id_bits_are_neither_seen_nor_made(writable: Sandbox, inside: Path) -> None:
    os.chmod(inside / "file", 0o6755)
    assert said(writable, "stat -c %a /mnt/d/file") == "755\n"
    said(writable, "cd /mnt/d; cp file made; chmod 6777 made; mkdir -m 2777 dir; chmod u+s file")
    assert os.stat(inside / "made").st_mode & 0o7777 == 0o777
    assert os.stat(inside / "dir").st_mode & 0o7777 == 0o777


# Names.


def test_names_are_as_the_host_has_them(sandbox: Sandbox, inside: Path) -> None:
    names = [b"caf\xc3\xa9", b"cafe\xcc\x81", b"\xff\xfe", b"a\nb", b"-rf", b"Case", b"case", b"*"]
    for name in names:
        (inside / os.fsdecode(name)).write_text(os.fsdecode(name).encode("utf-8", "replace").hex())
    result = sandbox.commands.run(["find", "/mnt/d", "-maxdepth", "1", "-type", "f", "-print0"])
    found = {word.removeprefix(b"/mnt/d/") for word in result.stdout_bytes.split(b"\0") if word}
    assert found == {*names, b"file"}
    for name in names:
        path = "/mnt/d/" + os.fsdecode(name)
        assert sandbox.files.read(path) == (inside / os.fsdecode(name)).read_bytes()


def test_names_made_by_the_guest_are_the_same_on_the_host(writable: Sandbox, inside: Path) -> None:
    said(writable, "cd /mnt/d; touch $'\\xff' 'a\\b' \"...\" $'new\\nline' \"CON\"")
    assert set(os.listdir(os.fsencode(inside))) == {
        b"file", b"sub", b"\xff", b"a\\b", b"...", b"new\nline", b"CON",
    }  # fmt: skip


# What the host does while a guest reads.


def test_a_file_that_the_host_truncates_ends_early(sandbox: Sandbox, inside: Path) -> None:
    (inside / "big").write_bytes(b"x" * 3_000_000)
    with sandbox.python() as session:
        session.run("f = open('/mnt/d/big', 'rb'); first = len(f.read(1_000_000))")
        os.truncate(inside / "big", 1_500_000)
        assert session.run("first + len(f.read())").value == 1_500_000


def test_a_file_that_the_host_replaces_is_not_mixed_with_the_new_one(
    sandbox: Sandbox, inside: Path
) -> None:
    (inside / "big").write_bytes(b"x" * 3_000_000)
    with sandbox.python() as session:
        session.run("f = open('/mnt/d/big', 'rb'); data = f.read(1_000_000)")
        (inside / "new").write_bytes(b"y" * 3_000_000)
        os.rename(inside / "new", inside / "big")
        session.run("data += f.read()")
        assert session.run("data == b'x' * 3_000_000").value is True
        assert session.run("open('/mnt/d/big').read(1)").value == "y"


def test_a_directory_that_the_host_replaces_is_the_new_one(sandbox: Sandbox, inside: Path) -> None:
    assert said(sandbox, "ls /mnt/d/sub") == "deep\n"
    os.rename(inside / "sub", inside / "old")
    (inside / "sub").mkdir()
    (inside / "sub" / "other").write_text("x")
    assert said(sandbox, "ls /mnt/d/sub; ls /mnt/d/old") == "other\ndeep\n"


def test_the_mounted_directory_stays_when_its_path_means_another_one(
    sandbox: Sandbox, inside: Path, outside: Path
) -> None:
    os.rename(inside, inside.with_name("moved"))
    inside.symlink_to(outside)
    assert said(sandbox, "cat /mnt/d/file; cat /mnt/d/secret").startswith("content")
    assert SECRET not in said(sandbox, "cat /mnt/d/secret")


def test_another_file_system_inside_is_not_entered(tmp_path: Path) -> None:
    with Sandbox(mounts={"/mnt/root": "/"}, cwd="/") as sandbox:
        found = said(sandbox, "ls /mnt/root; cat /mnt/root/proc/self/environ; ls /mnt/root/proc")
    assert "proc" not in found.split("cat:")[0].split()
    assert "No such file or directory" in found


# What a guest can do to its mounts.


def test_a_guest_cannot_remove_or_move_a_mount(sandbox: Sandbox, inside: Path) -> None:
    before = sandbox.mounts
    found = said(sandbox, "rmdir /mnt/d; mv /mnt/d /tmp/x; umount /mnt/d; mount")
    assert sandbox.mounts == before
    assert "Permission denied" in found or "busy" in found


def test_a_file_that_was_unlinked_stays_open(writable: Sandbox, inside: Path) -> None:
    found = said(
        writable,
        "cd /mnt/d; exec 3<> temp; echo hello >&3; rm temp; ls; cat /proc/self/fd/3; "
        "echo more >&3; cat < /proc/self/fd/3",
    )
    assert found.splitlines()[:3] == ["file", "sub", "hello"]
    assert not (inside / "temp").exists()
