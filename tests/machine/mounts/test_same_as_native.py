"""The same random changes in a mount and on the host have the same outcomes and leave the same
tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand import Mount, Sandbox
from wasmsand.sdk.mounts import MountMode

SCRIPT = Path(__file__).with_name("random_changes.py")
CHANGES = 300


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    (place / "dir" / "sub").mkdir(parents=True)
    (place / "a").write_bytes(b"a" * 5000)
    (place / "dir" / "b").write_bytes(b"b" * 100)
    (place / "dir" / "sub" / "c").write_bytes(b"c")
    (place / "link").symlink_to("dir")
    return place


def native(place: Path, seed: int, changes: int = CHANGES) -> str:
    command = [sys.executable, str(SCRIPT), str(place), str(seed), str(changes)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("mode", ["read-write", "overlay", "memory"])
@pytest.mark.parametrize("seed", range(4))
def test_random_changes_are_the_same_as_on_the_host(
    inside: Path, tmp_path: Path, mode: MountMode, seed: int
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(inside, copy, symlinks=True)
    with Sandbox() as sandbox:
        sandbox.mount("/mnt/d", None if mode == "memory" else inside, mode=mode)
        if mode == "memory":
            sandbox.files.upload(inside, "/mnt/d")
        sandbox.files.write("changes.py", SCRIPT.read_bytes())
        result = sandbox.commands.run(["python3", "changes.py", "/mnt/d", str(seed), str(CHANGES)])
        assert (result.stderr, result.exit_code) == ("", 0)
        expected = native(copy, seed)
        assert result.stdout == expected
        if mode == "overlay":
            # The host has not changed; then it gets everything.
            assert (inside / "a").read_bytes() == b"a" * 5000
            _without_outside_links(sandbox)
            sandbox.apply()
            assert not sandbox.diff()
    tree = expected[expected.index("\n./") + 1 :] if "\n./" in expected else ""
    if mode == "read-write":
        assert native(inside, 0, 0).strip() == tree.strip()


def _without_outside_links(sandbox: Sandbox) -> None:
    """Links of the script have relative targets, which are inside wherever they are."""
    found = sandbox.commands.run("find /mnt/d -type l -lname '/*' -o -type l -lname '*..*'")
    assert found.stdout == ""


def test_mount_option_of_the_constructor_is_the_same(inside: Path) -> None:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode="overlay")}) as sandbox:
        assert sandbox.commands.run("cat /mnt/d/link/b | wc -c").stdout == "100\n"
