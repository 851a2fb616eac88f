"""`--allow-net` and `--deny-net` of the command line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.cli.command import wasmsand
from tests.http.server import serving

FETCH = 'exec 3<>"/dev/tcp/{}/{}" && cat <&3'


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server on loopback that greets every client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello\n")

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def test_nothing_is_reachable_without_the_flag(port: int) -> None:
    result = wasmsand("run", FETCH.format("localhost.test", port))
    assert result.returncode != 0
    assert b"the sandbox has no network (option network)" in result.stderr


def _name_of_loopback() -> str:
    """A name that leads to 127.0.0.1 on this machine; inside a sandbox, `localhost` does not."""
    for name in (socket.gethostname(), "localhost.localdomain", "a.localhost"):
        try:
            if socket.gethostbyname(name) == "127.0.0.1":
                return name
        except OSError:
            pass
    pytest.skip("no name but localhost leads to 127.0.0.1 on this machine")


@pytest.mark.parametrize("words", [("run",), ("run", "--connect", "{url}")], ids=["here", "server"])
def test_a_name_and_its_private_address_are_allowed(words: tuple[str, ...], port: int) -> None:
    name = _name_of_loopback()
    allow = ("--allow-net", f"{name}:{port}", "--allow-net", f"127.0.0.1:{port}")
    script = FETCH.format(name, port)
    with serving(*allow) as server:
        command = [word.format(url=server.url) for word in words]
        result = wasmsand(*command, *allow, script)
        assert (result.stdout, result.returncode) == (b"hello\n", 0), result.stderr
        unnamed = wasmsand(*command, *allow[:2], script)
        assert unnamed.stdout == b""
        assert b"leads to 127.0.0.1, a loopback address, which no rule names" in unnamed.stderr
        denied = wasmsand(*command, *allow, "--deny-net", "127.0.0.0/8", script)
        assert denied.stdout == b""
        assert b"is denied by '127.0.0.0/8'" in denied.stderr


@pytest.mark.parametrize("command", ["run", "python", "mcp", "serve"])
@pytest.mark.parametrize("flag", ["--allow-net", "--deny-net"])
def test_a_malformed_rule_shows_the_right_form(command: str, flag: str) -> None:
    rest = {"run": ["true"], "python": ["-c", "pass"]}.get(command, [])
    result = wasmsand(command, flag, "https://example.com/", *rest)
    assert result.returncode != 0
    assert b"leave out the scheme: 'example.com/'" in result.stderr
    assert b"[METHODS ]host[:port][/path]" in result.stderr
    assert result.stdout == b""
