"""Hostile sessions and strangers: other clients are answered, and the server ends when told to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

from tests.mcp.serving import environment
from tests.mcp.test_http import HELLO, JSON, TOKEN, hello, post, tool_call
from tests.serving.floods import connect, flood, wait_until_closed
from tests.serving.held_server import MARK, Holding

ENDS_WITHIN = 40


@contextmanager
def hostile(*words: str, module: str = "wasmsand", **variables: str) -> Iterator[str]:
    """A server that must end within seconds of SIGTERM, whatever a test did to it."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, "mcp", "--http", "127.0.0.1:0", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[-1]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=ENDS_WITHIN)
        assert process.returncode in (0, 1)
    finally:
        process.kill()
        process.communicate()


def begin(url: str, **headers: str) -> dict[str, str]:
    """Begin a session; returns the headers of its requests."""
    status, answered, _ = hello(url, **headers)
    assert status == 200
    return {"Mcp-Session-Id": answered["Mcp-Session-Id"], **headers}


def raw_request(session: dict[str, str], body: bytes, method: str = "POST") -> bytes:
    headers = {**JSON, **session, "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{lines}\r\n".encode() + body


def cancelled(number: int) -> bytes:
    params = {"requestId": number}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(message).encode()


def works(url: str, session: dict[str, str], number: int = 100) -> None:
    status, _, body = post(url, tool_call(number, "echo well"), **session)
    assert (status, b"well" in body) == (200, True)


def test_a_sandbox_that_holds_its_lock_hurts_nobody_else(tmp_path: Path) -> None:
    holding = Holding(tmp_path)
    with (
        hostile(
            "--max-sessions", "8", module="tests.serving.held_server", **holding.environ
        ) as url,
        ExitStack() as held,
    ):
        bad, good = begin(url), begin(url)
        works(url, good)
        for number in range(3):
            connection = held.enter_context(connect(url))
            script = f"bash -c 'sleep 1000; : {MARK}'"
            connection.sendall(raw_request(bad, tool_call(number, script)))
        time.sleep(1)
        holding.begin()
        for number in range(3, 60):
            connection = held.enter_context(connect(url))
            connection.sendall(raw_request(bad, tool_call(number, "true")))
        for number in range(30):
            connection = held.enter_context(connect(url))
            connection.sendall(raw_request(bad, cancelled(number)))
        for number in range(3):
            works(url, good, 100 + number)
            works(url, begin(url), 200)
        # Ending it blocks nobody.
        assert post(url, b"", "DELETE", **bad)[0] == 200
        assert post(url, tool_call(1, "true"), **bad)[0] == 404
        works(url, good, 300)


def test_headers_that_never_end_keep_nobody_out() -> None:
    half = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
    with (
        hostile(WASMSAND_MCP_TOKEN=TOKEN) as url,
        flood(url, 1200, half) as connections,
    ):
        token = {"Authorization": f"Bearer {TOKEN}"}
        session = begin(url, **token)
        for number in range(3):
            works(url, session, number)
        wait_until_closed(connections, 60)
        works(url, session, 10)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
        b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    ],
)
def test_clients_without_a_token_are_cut_off_soon(url: str, data: bytes) -> None:
    with flood(url, 20, data) as connections:
        wait_until_closed(connections, 60)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with hostile(WASMSAND_MCP_TOKEN=TOKEN) as url:
        yield url


def test_a_server_ends_with_connections_of_every_kind() -> None:
    with hostile() as url, ExitStack() as held:
        session = begin(url)
        for number in range(5):  # commands that run
            connection = held.enter_context(connect(url))
            connection.sendall(raw_request(session, tool_call(number, "sleep 1000")))
        held.enter_context(flood(url, 2, raw_request(session, b"", "GET")))  # streams
        held.enter_context(flood(url, 50, b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"))
        body = json.dumps(HELLO).encode()
        held.enter_context(flood(url, 50, raw_request({}, body)[:-5]))
        time.sleep(1)


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"Host: 127.0.0.1:x\r\n",
        b"Host: 127.0.0.1:evil.example\r\n",
        b"Host: 127.0.0.1@evil.example\r\n",
        b"Host: evil.example\r\n",
        b"Host: 127.0.0.1\r\nHost: evil.example\r\n",
        b"Host: [::1\r\n",
    ],
)
def test_a_host_that_is_not_this_machine_is_refused(open_url: str, host: bytes) -> None:
    body = json.dumps(HELLO).encode()
    for version in (b"1.0", b"1.1"):
        with connect(open_url) as connection:
            headers = "".join(f"{name}: {value}\r\n" for name, value in JSON.items()).encode()
            connection.sendall(
                b"POST /mcp HTTP/%s\r\n%s%sConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                % (version, host, headers, len(body), body)
            )
            assert connection.recv(100)[:12] in (b"HTTP/1.1 421", b"HTTP/1.1 400")


@pytest.fixture(scope="module")
def open_url() -> Iterator[str]:
    with hostile() as url:
        yield url


def test_json_that_is_too_deep_is_refused(open_url: str) -> None:
    assert post(open_url, b"[" * 1_000_000)[0] == 400
    deep = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":' + b'{"a":' * 100_000
    assert post(open_url, deep)[0] == 400
    assert hello(open_url)[0] == 200
