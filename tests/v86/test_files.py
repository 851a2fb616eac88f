"""Files in a v86 machine, through the API."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.v86.built import needs_v86
from wasmsand import Sandbox
from wasmsand.sdk.errors import IsDirectoryError, NotFoundError

pytestmark = needs_v86


def test_large_binary_files_come_back_unchanged(machine: Sandbox) -> None:
    data = os.urandom(3_000_001)
    machine.files.write("/tmp/large", data)
    assert machine.files.read("/tmp/large") == data
    assert machine.commands.run("wc -c < /tmp/large").stdout == "3000001\n"


def test_files_belong_to_the_user_and_keep_their_mode(machine: Sandbox) -> None:
    machine.files.write("/srv/deep/er/file", "x", mode=0o640)
    machine.files.write("/srv/deep/er/file", "y")
    listed = machine.commands.run("stat -c '%U %a %s' /srv/deep /srv/deep/er/file").stdout
    assert listed.splitlines()[1] == "user 640 1"
    assert listed.splitlines()[0].startswith("user 755")


def test_writing_follows_links(machine: Sandbox) -> None:
    machine.files.write("/tmp/real", "old")
    machine.files.symlink("real", "/tmp/link")
    machine.files.write("/tmp/link", "new")
    assert machine.files.read_text("/tmp/real") == "new"
    assert machine.files.stat("/tmp/link", follow=False).type == "symlink"


def test_directories_are_listed_renamed_copied_and_removed(machine: Sandbox) -> None:
    machine.files.write("/tmp/tree/a/one", "1")
    machine.files.write("/tmp/tree/two", "22")
    found = [(info.path, info.type, info.size) for info in machine.files.list("/tmp/tree")]
    assert found == [("/tmp/tree/a", "dir", 0), ("/tmp/tree/two", "file", 2)]
    machine.files.copy("/tmp/tree", "/tmp/copied/tree")
    assert machine.files.read_text("/tmp/copied/tree/a/one") == "1"
    machine.files.rename("/tmp/tree", "/tmp/moved")
    machine.files.rm("/tmp/moved", recursive=True)
    assert not machine.files.exists("/tmp/moved")


def test_errors_are_those_of_a_local_sandbox(machine: Sandbox) -> None:
    with pytest.raises(NotFoundError, match="ENOENT: no such file or directory: /nowhere"):
        machine.files.read("/nowhere")
    with pytest.raises(IsDirectoryError, match="EISDIR: is a directory: /tmp"):
        machine.files.write("/tmp", "x")


def test_trees_are_uploaded_and_downloaded(machine: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "from/sub").mkdir(parents=True)
    (tmp_path / "from/sub/file").write_bytes(b"\0\xff")
    machine.files.upload(tmp_path / "from", "/home/user/up")
    assert machine.commands.run("od -An -tx1 up/sub/file").stdout == " 00 ff\n"
    machine.files.download("/home/user/up", tmp_path / "to")
    assert (tmp_path / "to/sub/file").read_bytes() == b"\0\xff"
