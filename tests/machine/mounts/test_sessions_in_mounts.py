"""Sessions that use files of mounts, in copies of their sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from wasmsand import Mount, Sandbox, SandboxOptions, StateError

MODES = ["read-only", "read-write", "overlay", "memory"]


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    (place / "src").mkdir(parents=True)
    (place / "src" / "main.py").write_text("one\ntwo\nthree\n")
    return place


def sandbox_with(mode: Any, inside: Path) -> Sandbox:
    mount = Mount(None if mode == "memory" else inside, mode=mode)
    sandbox = Sandbox(mounts={"/mnt/repo": mount})
    if mode == "memory":
        sandbox.files.write("/mnt/repo/src/main.py", "one\ntwo\nthree\n")
    return sandbox


def twin_of(sandbox: Sandbox) -> tuple[Sandbox, Any]:
    twin = sandbox.fork()
    return twin, twin.sessions[0]


@pytest.mark.parametrize("mode", MODES)
def test_open_files_keep_their_positions(mode: str, inside: Path) -> None:
    with sandbox_with(mode, inside) as sandbox:
        session = sandbox.python()
        session.run("f = open('/mnt/repo/src/main.py'); first = f.readline()")
        twin, copy = twin_of(sandbox)
        with twin:
            assert copy.run("first + f.readline()").value == "one\ntwo\n"
        assert session.run("f.readline()").value == "two\n"


@pytest.mark.parametrize("mode", MODES)
def test_a_shell_stays_in_its_directory(mode: str, inside: Path) -> None:
    with sandbox_with(mode, inside) as sandbox:
        shell = sandbox.shell()
        shell.run("cd /mnt/repo/src")
        twin, copy = twin_of(sandbox)
        with twin:
            assert copy.run("pwd; head -1 main.py").stdout == "/mnt/repo/src\none\n"
        snapshot = sandbox.snapshot()
        shell.run("cd /")
        sandbox.restore(snapshot)
        assert shell.run("pwd; ls").stdout == "/mnt/repo/src\nmain.py\n"


@pytest.mark.parametrize(("mode", "is_shared"), [("read-write", True), ("overlay", False)])
def test_what_a_copy_writes_is_where_its_mount_keeps_it(
    mode: str, is_shared: bool, inside: Path
) -> None:
    with sandbox_with(mode, inside) as sandbox:
        session = sandbox.python()
        session.run("f = open('/mnt/repo/new', 'w+'); _ = f.write('1'); f.flush()")
        twin, copy = twin_of(sandbox)
        with twin:
            copy.run("_ = f.write('2'); f.flush()")
            assert copy.run("_ = f.seek(0); f.read()").value == "12"
        assert session.run("_ = f.seek(0); f.read()").value == ("12" if is_shared else "1")
        assert (inside / "new").exists() == is_shared


@pytest.mark.parametrize("mode", ["overlay", "memory"])
def test_a_removed_file_of_a_mount_is_named(mode: str, inside: Path) -> None:
    with sandbox_with(mode, inside) as sandbox:
        sandbox.python().run("import os; f = open('/mnt/repo/src/main.py'); os.unlink(f.name)")
        with pytest.raises(StateError, match=r"descriptor \d+ is a file of a mount, and was remov"):
            sandbox.fork()
        with sandbox.fork(running="drop") as twin:
            assert twin.sessions == []


def test_a_file_that_the_host_has_removed_is_named(inside: Path) -> None:
    with sandbox_with("read-only", inside) as sandbox:
        sandbox.python().run("f = open('/mnt/repo/src/main.py'); _ = f.readline()")
        os.unlink(inside / "src" / "main.py")
        with pytest.raises(StateError, match=r"the copy of python3 cannot run: .*ENOENT"):
            sandbox.fork()
        assert sandbox.commands.run("echo works").stdout == "works\n"


def test_a_file_that_became_something_else_is_refused(inside: Path) -> None:
    with sandbox_with("read-write", inside) as sandbox:
        sandbox.python().run("f = open('/mnt/repo/src/main.py'); _ = f.readline()")
        snapshot = sandbox.snapshot()
        os.unlink(inside / "src" / "main.py")
        os.mkdir(inside / "src" / "main.py")
        with pytest.raises(StateError, match="no longer a file"):
            Sandbox.from_snapshot(snapshot)


def test_a_link_in_place_of_the_file_leads_nowhere(inside: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with sandbox_with("read-write", inside) as sandbox:
        sandbox.python().run("f = open('/mnt/repo/src/main.py'); _ = f.readline()")
        snapshot = sandbox.snapshot()
        os.unlink(inside / "src" / "main.py")
        os.symlink(tmp_path / "secret", inside / "src" / "main.py")
        with pytest.raises(StateError, match="cannot run"):
            Sandbox.from_snapshot(snapshot)


def test_a_file_that_was_made_unreadable_is_refused(inside: Path) -> None:
    with sandbox_with("overlay", inside) as sandbox:
        sandbox.python().run("f = open('/mnt/repo/src/main.py'); _ = f.readline()")
        sandbox.commands.run("chmod 0 /mnt/repo/src/main.py")
        with pytest.raises(StateError, match="EACCES"):
            sandbox.fork()


@pytest.mark.parametrize("mode", ["read-only", "read-write", "overlay"])
def test_such_a_session_cannot_be_saved_but_left_out(
    mode: str, inside: Path, tmp_path: Path
) -> None:
    target = tmp_path / "m.wsand"
    with sandbox_with(mode, inside) as sandbox:
        sandbox.shell().run("cd /mnt/repo/src")
        with pytest.raises(StateError, match="bash uses /mnt/repo/src, which is in a mount"):
            sandbox.save(target)
        assert not target.exists()
        sandbox.save(target, running="drop")
    with Sandbox.load(target) as loaded:
        assert loaded.sessions == []


@pytest.mark.xfail(strict=True, reason="L128", raises=StateError)
def test_a_saved_session_goes_on_in_its_mount(inside: Path, tmp_path: Path) -> None:
    target = tmp_path / "m.wsand"
    with sandbox_with("read-only", inside) as sandbox:
        sandbox.shell().run("cd /mnt/repo/src")
        sandbox.save(target)
    options = SandboxOptions(mounts={"/mnt/repo": Mount(inside)})
    with Sandbox.load(target, options=options) as loaded:
        assert loaded.sessions[0].run("pwd").stdout == "/mnt/repo/src\n"


def test_a_kept_sandbox_is_written_without_such_a_session(inside: Path, tmp_path: Path) -> None:
    with Sandbox.open("kept", store=tmp_path / "store") as sandbox:
        sandbox.mount("/mnt/repo", inside)
        sandbox.shell().run("cd /mnt/repo/src; echo text > /tmp/a")
        sandbox.flush()
    with Sandbox.open("kept", store=tmp_path / "store") as again:
        assert again.sessions == []
        assert again.files.read_text("/tmp/a") == "text\n"
