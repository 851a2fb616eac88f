"""`files.write(mode=...)` and `files.write_many`, on every interface."""

from __future__ import annotations

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import FileError, NoSpaceError, Sandbox


def test_a_file_is_written_with_a_mode(sandbox: Sandbox) -> None:
    sandbox.files.write("bin/tool", "#!/bin/sh\necho ran\n", mode=0o755)
    assert sandbox.commands.run("bin/tool").stdout == "ran\n"
    sandbox.files.write("bin/tool", "#!/bin/sh\necho again\n")
    assert sandbox.commands.run("bin/tool").stdout == "again\n"
    sandbox.files.write("bin/tool", "x", mode=0o600)
    assert sandbox.files.stat("bin/tool").mode == 0o600


def test_a_wrong_mode_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ValueError, match=r"^mode must be from 0 to 0o7777"):
        sandbox.files.write("x", "", mode=0o10000)
    with pytest.raises(TypeError, match=r"^mode must be an int"):
        sandbox.files.write("x", "", mode="755")  # type: ignore[arg-type]
    assert not sandbox.files.exists("x")


def test_many_files_are_written(sandbox: Sandbox) -> None:
    sandbox.files.write("old.txt", "old", mode=0o600)
    sandbox.files.write_many({"a.txt": "ä\n", "deep/er/b.bin": b"\0\xff", "old.txt": "new"})
    assert sandbox.files.read_text("a.txt") == "ä\n"
    assert sandbox.files.read("/home/user/deep/er/b.bin") == b"\0\xff"
    assert sandbox.files.read("old.txt") == b"new"
    assert sandbox.files.stat("old.txt").mode == 0o600
    assert sandbox.commands.run("stat -c %U a.txt deep").stdout == "user\nuser\n"


def test_one_mode_for_all(sandbox: Sandbox) -> None:
    sandbox.files.write_many({"one": b"1", "two": "2"}, mode=0o755)
    assert [sandbox.files.stat(name).mode for name in ("one", "two")] == [0o755, 0o755]


def test_nothing_to_write_is_no_error(sandbox: Sandbox) -> None:
    sandbox.files.write_many({})


def test_if_one_fails_nothing_has_changed(sandbox: Sandbox) -> None:
    sandbox.files.write("kept", "before", mode=0o640)
    sandbox.files.mkdir("directory")
    with pytest.raises(FileError, match="EISDIR") as caught:
        sandbox.files.write_many(
            {"kept": "after", "new/deep/file": "x", "directory": "y", "never": "z"}, mode=0o755
        )
    assert caught.value.path == "/home/user/directory"
    assert sandbox.files.read("kept") == b"before"
    assert sandbox.files.stat("kept").mode == 0o640
    assert [entry.name for entry in sandbox.files.list()] == ["directory", "kept"]


def test_a_path_below_a_file_is_an_error(sandbox: Sandbox) -> None:
    with pytest.raises(FileError, match="ENOTDIR"):
        sandbox.files.write_many({"a": "1", "a/b": "2"})
    assert sandbox.files.list() == []


def test_if_they_do_not_fit_nothing_has_changed(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(fs_limit_bytes=1 << 20) as sandbox:
        sandbox.files.write("old", b"o" * 300_000)
        with pytest.raises(NoSpaceError):
            sandbox.files.write_many({"old": b"n" * 500_000, "second": b"s" * 600_000})
        with pytest.raises(NoSpaceError):
            sandbox.files.write_many({"first": b"f" * 500_000, "second": b"s" * 400_000})
        assert sandbox.files.read("old") == b"o" * 300_000
        assert [entry.name for entry in sandbox.files.list()] == ["old"]


def test_a_link_is_followed(sandbox: Sandbox) -> None:
    sandbox.files.write("target", "before")
    sandbox.files.symlink("target", "link")
    with pytest.raises(FileError):
        sandbox.files.write_many({"link": "after", "/proc/x": ""})
    assert sandbox.files.read("target") == b"before"
    sandbox.files.write_many({"link": "after"})
    assert sandbox.files.read("target") == b"after"
    assert sandbox.files.readlink("link") == "target"


@pytest.mark.parametrize("files", ["text", 5, [("a", "b")], {"a": 1}, {1: "a"}])
def test_wrong_arguments_are_refused(sandbox: Sandbox, files: object) -> None:
    with pytest.raises(TypeError):
        sandbox.files.write_many(files)  # type: ignore[arg-type]
