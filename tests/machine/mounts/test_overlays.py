"""Overlays: what a sandbox changes in a directory of the host, and what the caller does with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wasmsand import (
    Mount,
    MountConflictError,
    NoSpaceError,
    PermissionDeniedError,
    Sandbox,
)
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import SandboxOptions


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    (place / "src").mkdir(parents=True)
    (place / "src" / "main.py").write_text("one\ntwo\nthree\n")
    (place / "src" / "old.py").write_text("old\n")
    (place / "README").write_text("read me")
    (place / "data").write_bytes(b"\0\1\2")
    return place


@pytest.fixture
def sandbox(inside: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/mnt/repo": Mount(inside, mode="overlay")}, cwd="/mnt/repo") as made:
        yield made


def tree_of(place: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in sorted(place.rglob("*")):
        name = str(each.relative_to(place))
        if each.is_symlink():
            found[name] = os.readlink(each)
        elif each.is_dir():
            found[name] = None
        else:
            found[name] = each.read_bytes()
    return found


def run(sandbox: Sandbox, command: str) -> str:
    result = sandbox.commands.run(command)
    assert (result.stderr, result.exit_code) == ("", 0)
    return result.stdout


CHANGE = (
    "sed -i s/two/TWO/ src/main.py; rm src/old.py; mkdir new; echo x > new/file; chmod +x README; "
    "printf '\\0\\3' > data; ln -s src/main.py link"
)


def test_changes_stay_in_the_sandbox_and_are_listed(sandbox: Sandbox, inside: Path) -> None:
    before = tree_of(inside)
    run(sandbox, CHANGE)
    assert tree_of(inside) == before
    diff = sandbox.diff("/mnt/repo")
    assert diff.added == ("link", "new/", "new/file")
    assert diff.changed == ("README", "data", "src/main.py")
    assert diff.removed == ("src/old.py",)
    assert diff.conflicts == ()
    assert diff


def test_an_overlay_without_changes_has_no_difference(sandbox: Sandbox) -> None:
    run(sandbox, "cat src/* README > /dev/null; find . | wc -l; touch README; cp README r; rm r")
    assert not sandbox.diff()
    assert sandbox.diff().patch == ""


def test_a_patch_makes_a_copy_what_the_overlay_is(
    sandbox: Sandbox, inside: Path, tmp_path: Path
) -> None:
    run(
        sandbox,
        CHANGE.replace("printf '\\0\\3' > data;", "")
        + "; printf 'no newline' > 'odd name'; seq 1000 > numbers; echo more >> README; "
        "printf x > $'caf\\xc3\\xa9'; mv src/main.py src/moved.py",
    )
    patch = sandbox.diff().patch
    subprocess.run(["git", "init", "-q", "."], cwd=inside, check=True)
    subprocess.run(["git", "apply", "-"], cwd=inside, input=patch.encode(), check=True)
    (inside / ".git").rename(tmp_path / "git")
    for name, content in tree_of(inside).items():
        if isinstance(content, bytes):
            assert sandbox.files.read(f"/mnt/repo/{name}") == content
    assert set(tree_of(inside)) == set(
        run(sandbox, "find . -mindepth 1 -printf '%P\\n'").split("\n")[:-1]
    )
    assert os.access(inside / "README", os.X_OK)


def test_binary_files_are_only_named_in_a_patch(sandbox: Sandbox) -> None:
    run(sandbox, "printf '\\0\\3' > data")
    assert sandbox.diff().patch == (
        "diff --git a/data b/data\nBinary files a/data and b/data differ\n"
    )


def test_applied_changes_are_on_the_host_and_no_longer_differ(
    sandbox: Sandbox, inside: Path
) -> None:
    run(sandbox, CHANGE + "; mv src source; rmdir new 2> /dev/null || true")
    applied = sandbox.apply("/mnt/repo")
    assert "source/" in applied.added
    assert tree_of(inside) == {
        "README": b"read me",
        "data": b"\0\3",
        "link": "src/main.py",
        "new": None,
        "new/file": b"x\n",
        "source": None,
        "source/main.py": b"one\nTWO\nthree\n",
    }
    assert os.access(inside / "README", os.X_OK)
    assert not sandbox.diff()
    assert run(sandbox, "cat source/main.py") == "one\nTWO\nthree\n"


def test_a_file_becomes_a_directory_and_the_reverse(sandbox: Sandbox, inside: Path) -> None:
    run(sandbox, "rm README; mkdir README; echo a > README/a; rm -r src; echo b > src")
    sandbox.apply()
    assert tree_of(inside) == {
        "README": None, "README/a": b"a\n", "data": b"\0\1\2", "src": b"b\n",
    }  # fmt: skip


def test_what_the_host_changed_too_is_a_conflict_and_nothing_is_written(
    sandbox: Sandbox, inside: Path
) -> None:
    run(sandbox, "echo sandbox >> src/main.py; echo new > added; rm src/old.py; cat README")
    (inside / "src" / "main.py").write_text("of the host\n")
    (inside / "added").write_text("of the host too\n")
    run(sandbox, "ls -l src added > /dev/null")  # looking again does not make it the same
    assert sandbox.diff().conflicts == ("added", "src/main.py")
    before = tree_of(inside)
    with pytest.raises(MountConflictError) as caught:
        sandbox.apply()
    assert caught.value.conflicts == ("added", "src/main.py")
    assert tree_of(inside) == before
    sandbox.apply(force=True)
    assert (inside / "added").read_text() == "new\n"
    assert not (inside / "src" / "old.py").exists()


def test_a_file_that_only_the_host_changed_is_current_and_no_conflict(
    sandbox: Sandbox, inside: Path
) -> None:
    run(sandbox, "cat README; echo x > new")
    (inside / "README").write_text("newer")
    (inside / "src" / "more").write_text("more")
    assert run(sandbox, "cat README src/more") == "newermore"
    assert sandbox.diff(patch=False).changed == ()
    sandbox.apply()
    assert (inside / "README").read_text() == "newer"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "src/../../x", "."])
def test_links_that_lead_outside_are_not_applied(
    sandbox: Sandbox, inside: Path, target: str
) -> None:
    run(sandbox, f"echo x > new; ln -s {target} link")
    if target == ".":
        sandbox.apply()
        assert (inside / "link").is_symlink()
        return
    before = tree_of(inside)
    with pytest.raises(PermissionDeniedError, match="links outside"):
        sandbox.apply()
    assert tree_of(inside) == before


def test_changes_are_charged_and_given_back(inside: Path) -> None:
    (inside / "big").write_bytes(b"x" * 3_000_000)
    with Sandbox(fs_limit_bytes=4_000_000) as sandbox:
        before = sandbox.usage()
        sandbox.mount("/mnt/repo", inside, mode="overlay")
        run(sandbox, "cat /mnt/repo/big > /dev/null; cp -r /mnt/repo/src /mnt/repo/copy")
        assert sandbox.usage().fs_bytes - before.fs_bytes == 2 * 4096
        run(sandbox, "echo x >> /mnt/repo/big")
        result = sandbox.commands.run("cp /mnt/repo/big /mnt/repo/other")
        assert "No space left on device" in result.stderr
        with pytest.raises(NoSpaceError):
            sandbox.files.write("/mnt/repo/more", b"x" * 2_000_000)
        sandbox.unmount("/mnt/repo")
        after = sandbox.usage()
        assert (after.fs_bytes, after.inodes) == (before.fs_bytes, before.inodes + 1)


def test_git_works_in_an_overlay(inside: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=inside, check=True)
    before = tree_of(inside)
    with Sandbox(mounts={"/mnt/repo": Mount(inside, mode="overlay")}, cwd="/mnt/repo") as sandbox:
        assert run(sandbox, "git status --short") == ""
        run(sandbox, CHANGE + "; git config user.email e@example.org; git config user.name n")
        assert "?? new/" in run(sandbox, "git status --short")
        run(sandbox, "git add -A && git commit -qm second && git fsck --no-progress")
        assert run(sandbox, "git log --format=%s") == "second\nfirst\n"
        assert tree_of(inside) == before
        sandbox.apply()
    told = subprocess.run(
        ["git", "log", "--format=%s"], cwd=inside, check=True, capture_output=True, text=True
    )
    assert told.stdout == "second\nfirst\n"
    status = subprocess.run(["git", "status", "--short"], cwd=inside, capture_output=True)
    assert status.stdout == b""


def test_a_state_has_the_changes_and_twins_do_not_see_each_other(inside: Path) -> None:
    options = SandboxOptions(mounts={"/mnt/repo": Mount(inside, mode="overlay")})
    first = LocalBackend(options)
    first.remove("/mnt/repo/src/old.py")
    first.write_file("/mnt/repo/src/new.py", b"new")
    first.rename("/mnt/repo/src", "/mnt/repo/source")
    twin = LocalBackend(options, first.state())
    third = LocalBackend(options, first.state())
    try:
        for each in (first, twin, third):
            names = [info.name for info in each.list_directory("/mnt/repo/source")]
            assert names == ["main.py", "new.py"]
            assert each.read_file("/mnt/repo/source/main.py") == b"one\ntwo\nthree\n"
            assert each.mount_diff("/mnt/repo", patch=False).added == (
                "source/", "source/main.py", "source/new.py",
            )  # fmt: skip
        twin.write_file("/mnt/repo/source/main.py", b"of the twin")
        third.remove("/mnt/repo/source", recursive=True)
        assert first.read_file("/mnt/repo/source/main.py") == b"one\ntwo\nthree\n"
        assert twin.read_file("/mnt/repo/source/main.py") == b"of the twin"
        assert sorted(os.listdir(inside)) == ["README", "data", "src"]
    finally:
        for each in (first, twin, third):
            each.close()


def test_forks_and_snapshots_have_the_changes(sandbox: Sandbox, inside: Path) -> None:
    run(sandbox, "echo more >> README; mv src source")
    snapshot = sandbox.snapshot()
    twin = sandbox.fork()
    try:
        assert run(twin, "cat README source/old.py") == "read memore\nold\n"
        run(twin, "rm -r source")
        assert twin.diff().removed == ("src/", "src/main.py", "src/old.py")
    finally:
        twin.kill()
    run(sandbox, "rm -r /mnt/repo/*")
    sandbox.restore(snapshot)
    assert run(sandbox, "cat README source/old.py") == "read memore\nold\n"
    assert sandbox.diff().changed == ("README",)
    assert sorted(os.listdir(inside)) == ["README", "data", "src"]


def test_a_session_with_open_files_of_a_mount_is_forked(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run("f = open('/mnt/repo/src/main.py'); first = f.readline()")
        session.run("g = open('/mnt/repo/new', 'w+'); _ = g.write('new'); g.flush()")
        twin = sandbox.fork()
        try:
            copy = twin.sessions[0]
            assert copy.run("first + f.readline()").value == "one\ntwo\n"  # type: ignore[union-attr]
            assert copy.run("g.seek(0), g.read()").repr == "(0, 'new')"  # type: ignore[union-attr]
        finally:
            twin.kill()
        assert session.run("f.readline()").value == "two\n"
