"""What cannot be saved yet; docs/limitations.md has the same IDs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from wasmsand import Mount, PythonSession, Sandbox, Shell, StateError, StateFileError


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
    reason="L132: stores are opened only in this process", raises=TypeError, strict=True
)
def test_a_sandbox_of_a_store_is_opened_in_another_process(tmp_path: Path) -> None:
    with Sandbox.open("name", store=tmp_path, isolation="process") as opened:  # type: ignore[call-arg]
        assert opened.commands.run("echo alive").stdout == "alive\n"


def test_a_sandbox_is_loaded_in_another_process() -> None:
    saved = io.BytesIO()
    with Sandbox(memory_limit_bytes=1 << 30, env={"A": "b"}) as sandbox:
        sandbox.python().run("x = 5")
        sandbox.shell().run("cd /usr")
        sandbox.save(saved)
    saved.seek(0)
    with Sandbox.load(saved, isolation="process") as loaded:
        python, shell = loaded.sessions
        assert isinstance(python, PythonSession)
        assert isinstance(shell, Shell)
        assert python.run("x").value == 5
        assert shell.run("pwd; echo $A").stdout == "/usr\nb\n"
        assert loaded.options.memory_limit_bytes == 1 << 30
        twin = loaded.fork()
        assert twin.commands.run("echo $A").stdout == "b\n"
        twin.kill()


def test_a_damaged_file_is_refused_by_the_other_process() -> None:
    for content in (b"", b"nothing of ours" * 1000):
        with pytest.raises(StateFileError):
            Sandbox.load(io.BytesIO(content), isolation="process")
