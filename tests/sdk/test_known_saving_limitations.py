"""What cannot be saved yet; docs/limitations.md has the same IDs."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand import Mount, Sandbox, StateError


@pytest.mark.xfail(
    reason="L130: changes in an overlay cannot be saved", raises=StateError, strict=True
)
def test_changes_in_an_overlay_are_saved(tmp_path: Path) -> None:
    with Sandbox(mounts={"/mnt": Mount(tmp_path, mode="overlay")}) as sandbox:
        sandbox.save(io.BytesIO())  # without changes, it can
        sandbox.files.write("/mnt/f", "changed")
        sandbox.save(io.BytesIO())


@pytest.mark.xfail(reason="L131: inode numbers are not saved", raises=AssertionError, strict=True)
def test_inode_numbers_are_the_same_after_loading() -> None:
    stream = io.BytesIO()
    with Sandbox() as sandbox:
        sandbox.commands.run("echo > first; echo > second; rm first")
        number = sandbox.commands.run("stat -c %i second").stdout
        sandbox.save(stream)
    stream.seek(0)
    with Sandbox.load(stream) as copy:
        assert copy.commands.run("stat -c %i second").stdout == number


@pytest.mark.xfail(
    reason="L132: files are loaded only in this process", raises=TypeError, strict=True
)
def test_a_sandbox_is_loaded_in_another_process() -> None:
    saved = io.BytesIO()
    with Sandbox() as sandbox:
        sandbox.save(saved)
    saved.seek(0)
    with Sandbox.load(saved, isolation="process") as loaded:  # type: ignore[call-arg]
        assert loaded.commands.run("echo alive").stdout == "alive\n"


@pytest.mark.xfail(reason="L137: a server has no store", raises=AssertionError, strict=True)
def test_a_server_keeps_its_sandboxes() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "wasmsand", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--store" in told.stdout
