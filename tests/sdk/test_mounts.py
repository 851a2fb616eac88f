"""Mounts in every interface to a sandbox."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.backends import INTERFACES
from wasmsand import AsyncSandbox, Mount, MountDiff, Sandbox, UnsupportedError


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    place.mkdir()
    (place / "file").write_text("content\n")
    return place


def test_the_asynchronous_api_has_mounts(inside: Path) -> None:
    asyncio.run(asyncio.wait_for(_use_mounts(inside), 60))


async def _use_mounts(inside: Path) -> None:
    async with AsyncSandbox(mounts={"/mnt/d": Mount(inside, mode="overlay")}) as sandbox:
        await sandbox.mount("/mnt/e", inside)
        assert [mount.path for mount in sandbox.mounts] == ["/mnt/d", "/mnt/e"]
        await sandbox.commands.run("echo new > /mnt/d/new")
        diff = await sandbox.diff("/mnt/d")
        assert isinstance(diff, MountDiff)
        assert diff.added == ("new",)
        await sandbox.apply()
        assert (inside / "new").read_text() == "new\n"
        await sandbox.unmount("/mnt/e")
        assert len(sandbox.mounts) == 1


@pytest.mark.parametrize("name", ["http", "process"])
def test_a_server_and_a_separate_process_refuse_mounts(inside: Path, name: str) -> None:
    make = INTERFACES[name]
    with pytest.raises(UnsupportedError, match="a server never mounts directories"):
        make(mounts={"/mnt/d": inside})
    with make() as sandbox:
        with pytest.raises(UnsupportedError, match=r"files\.upload"):
            sandbox.mount("/mnt/d", inside)
        assert sandbox.mounts == []


@pytest.mark.parametrize("name", ["http", "process"])
@pytest.mark.xfail(strict=True, reason="L125", raises=UnsupportedError)
def test_mounts_in_other_interfaces(inside: Path, name: str) -> None:
    with INTERFACES[name](mounts={"/mnt/d": inside}) as sandbox:
        assert sandbox.commands.run("cat /mnt/d/file").stdout == "content\n"


def test_json_rpc_mounts_directories_at_creation(inside: Path) -> None:
    mount = {"source": str(inside), "mode": "read-only"}
    requests = [
        {"method": "create", "params": {"wasmDir": None, "mounts": {"/mnt/d": {"from": "x"}}}},
        {"method": "create", "params": {"wasmDir": None, "mounts": {"/mnt/d": mount}}},
        {"method": "run", "params": {"command": "cat /mnt/d/file; echo x > /mnt/d/file"}},
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, **request})
        for number, request in enumerate(requests)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "wasmsand", "rpc"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert "from is unknown" in answers[0]["error"]["message"]
    assert "Read-only file system" in answers[2]["result"]["stderr"]
    assert answers[2]["result"]["stdout"] == "content\n"


def test_the_command_line_mounts_directories(inside: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wasmsand", "run", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=inside)

    script = "cat /mnt/d/file; echo new > /mnt/d/new; ls /mnt/d"
    told = run("--mount", ".:/mnt/d", script)
    assert told.stdout == "content\nfile\n"
    assert "Read-only file system" in told.stderr
    assert run("--mount", ".:/mnt/d:overlay", script).stdout == "content\nfile\nnew\n"
    assert not (inside / "new").exists()
    assert run("--mount", f"{inside}:/mnt/d:rw", script).stdout == "content\nfile\nnew\n"
    assert (inside / "new").exists()
    for wrong in ("nowhere", ".:relative", ".:/", "missing:/mnt/d"):
        told = run("--mount", wrong, "true")
        assert told.returncode != 0
        assert "Traceback" not in told.stderr


@pytest.mark.xfail(strict=True, reason="L126")
def test_an_overlay_keeps_what_it_moved_when_the_host_removes_it(inside: Path) -> None:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode="overlay")}) as sandbox:
        sandbox.commands.run("mv /mnt/d/file /mnt/d/moved")
        (inside / "file").unlink()
        assert sandbox.commands.run("cat /mnt/d/moved").stdout == "content\n"


@pytest.mark.xfail(strict=True, reason="L127")
def test_a_read_write_mount_has_fifos(inside: Path) -> None:
    with Sandbox(mounts={"/mnt/d": Mount(inside, mode="read-write")}) as sandbox:
        assert sandbox.commands.run("mkfifo /mnt/d/fifo").exit_code == 0
