"""`--port`: servers of a command are reached from this machine."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.command import COMMAND, wasmsand
from tests.http.server import serving

LINE = "wasmsand: port 8000 of the sandbox is at "
SERVER = "echo hello > a; exec python3 -m http.server 8000 2>/dev/null"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
        return number


@contextmanager
def running(*words: str, stdin: bytes = b"") -> Iterator[str]:
    """A command that serves; yields its first line on standard error."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(stdin)
    process.stdin.flush()
    try:
        yield process.stderr.readline().decode()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as response:
        body: bytes = response.read()
        return body


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["run", SERVER], b""),
        (["shell"], SERVER.encode() + b"\n"),
        (["python", "-c", f"import os; os.system({SERVER!r})"], b""),
    ],
    ids=["run", "shell", "python"],
)
def test_a_server_is_reached_at_the_chosen_port(words: list[str], stdin: bytes) -> None:
    number = free_port()
    command, *rest = words
    with running(command, "--port", f"{number}:8000", *rest, stdin=stdin) as line:
        assert line == f"{LINE}http://127.0.0.1:{number}\n"
        assert fetch(f"http://127.0.0.1:{number}/a") == b"hello\n"


def test_a_server_is_reached_at_a_free_port() -> None:
    with running("run", "--port", "8000", SERVER) as line:
        assert line.startswith(f"{LINE}http://127.0.0.1:")
        assert fetch(line.removeprefix(LINE).strip() + "/a") == b"hello\n"


def test_a_port_in_use_is_an_error_before_the_command_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        result = wasmsand("run", "--port", f"{number}:8000", "echo started")
    assert (result.returncode, result.stdout) == (125, b"")
    assert f"--port {number}:8000: EADDRINUSE: port {number} of this machine".encode() in (
        result.stderr
    )


@pytest.mark.parametrize(
    "word", ["", ":", "8000:", ":8000", "0:8000", "8000:65536", "a:b", "1:2:3"]
)
def test_a_bad_port_is_an_error_that_shows_the_right_form(word: str) -> None:
    result = wasmsand("run", "--port", word, "true")
    assert result.returncode == 2
    assert b"is not HOST:GUEST or GUEST, with ports from 1 to 65535" in result.stderr


def test_the_port_of_a_servers_sandbox_is_one_of_the_server() -> None:
    with serving() as server:
        with running("run", "--connect", server.url, "--port", "8000", SERVER) as line:
            assert line.startswith(f"{LINE}{server.url}/v1/sandboxes/sbx-")
            assert fetch(line.removeprefix(LINE).strip() + "/a") == b"hello\n"
        number = free_port()
        words = ("--connect", server.url, "--port", f"{number}:8000", SERVER)
        with running("run", *words) as line:
            assert line == f"{LINE}http://127.0.0.1:{number}\n"
            assert fetch(f"http://127.0.0.1:{number}/a") == b"hello\n"
