"""The API of a sandbox, over a fleet. All of `tests/sdk` runs over a fleet if
WASMSAND_FLEET_TESTS is set."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.documents import run_document
from tests.fleet.on_a_cluster.homes import host_of
from wasmsand import AsyncSandbox, PythonSession, Sandbox, SandboxClosedError, ServerError
from wasmsand.fleet import Fleet
from wasmsand.fleet.cluster import homes_of
from wasmsand.fleet.values import parse_address


@pytest.fixture
def sandbox(stored: Fleet) -> Sandbox:
    return Sandbox.connect(stored.url)


def test_commands_files_sessions_terminals_and_copies_work_over_a_fleet(
    stored: Fleet, sandbox: Sandbox
) -> None:
    with sandbox:
        assert sandbox.commands.run("echo $((6 * 7))").stdout == "42\n"
        sandbox.files.write("data", b"\x00\xff" * 1000)
        assert sandbox.files.read("data") == b"\x00\xff" * 1000
        command = sandbox.commands.start("read a; echo got $a")
        command.write_stdin("this\n")
        assert [piece.text for piece in command] == ["got this\n"]
        shell, session = sandbox.shell(), sandbox.python()
        shell.run("x=5")
        session.run("y = 6")
        with sandbox.pty(["cat"]) as terminal:
            terminal.write("typed\r")
            screen = b""
            while b"typed\r\ntyped" not in screen:
                screen += terminal.read()
        snapshot = sandbox.snapshot("here")
        with sandbox.fork() as twin:
            assert host_of(twin) == host_of(sandbox)
            assert twin.sessions[0].run("echo $x").stdout == "5\n"
            twin.commands.run("rm data")
        sandbox.commands.run("rm data")
        sandbox.restore(snapshot)
        assert sandbox.files.read("data")[:2] == b"\x00\xff"
        assert session.run("y").value == 6
        saved = io.BytesIO()
        sandbox.save(saved)
    with Sandbox.load(io.BytesIO(saved.getvalue()), url=stored.url) as loaded:
        python = loaded.sessions[1]
        assert isinstance(python, PythonSession)
        assert python.run("y").value == 6


def test_a_sandbox_is_listed_found_and_killed_by_its_id(stored: Fleet, sandbox: Sandbox) -> None:
    other = Sandbox.connect(stored.url, metadata={"whose": "theirs"})
    assert {each.id for each in Sandbox.list(stored.url)} == {sandbox.id, other.id}
    assert [each.id for each in Sandbox.list(stored.url, metadata={"whose": "theirs"})] == [
        other.id
    ]
    with Sandbox.connect(stored.url, id=other.id) as found:
        assert found.commands.run("echo here").stdout == "here\n"
    assert Sandbox.kill_by_id(stored.url, other.id)
    assert not Sandbox.kill_by_id(stored.url, other.id)
    with pytest.raises(SandboxClosedError):
        Sandbox.connect(stored.url, id=other.id)
    sandbox.kill()


def test_the_asynchronous_api_works_over_a_fleet(stored: Fleet) -> None:
    async def use() -> str:
        async with await AsyncSandbox.connect(stored.url) as sandbox:
            return (await sandbox.commands.run("echo hello")).stdout

    assert asyncio.run(use()) == "hello\n"


def test_the_command_line_shows_and_uses_a_fleet(stored: Fleet) -> None:
    def wasmsand(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "wasmsand", *words], capture_output=True, text=True, check=True
        ).stdout

    address = stored.url.removeprefix("fleet:")
    status = json.loads(wasmsand("fleet", "status", "--json", "--address", address))
    assert [each["name"] for each in status] == ["host-0", "host-1", "host-2"]
    assert {each["state"] for each in status} == {"serving"}
    assert len({each["node"] for each in status}) == 3
    assert wasmsand("run", "--connect", stored.url, "echo there") == "there\n"


@pytest.mark.usefixtures("stored")
def test_the_code_of_the_guide_runs() -> None:
    assert run_document(Path(__file__).resolve().parents[3] / "docs" / "guides" / "fleet.md") == 1


def test_a_stranger_who_reaches_a_host_cannot_use_it(stored: Fleet) -> None:
    """Only whoever joins the cluster learns the token; other users of the node cannot read it."""
    home = homes_of(parse_address(stored.url)).all()[0]
    url = home.place().url
    for token in (None, "a-guess-of-a-stranger"):
        with pytest.raises(ServerError) as caught:
            Sandbox.connect(url, token=token)
        assert caught.value.code == "unauthorized"
    pid = home.ask("server_pid", time.monotonic() + 60)
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    variables = Path(f"/proc/{pid}/environ").read_bytes().decode()
    token = home.place().token
    assert token not in " ".join(words) + variables
    file = Path(words[words.index("--tokens-file") + 1])
    assert token in file.read_text()
    assert file.parent.stat().st_mode & 0o077 == 0
