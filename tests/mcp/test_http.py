"""Many clients over streamable HTTP: a sandbox each, for as long as its session."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.serving import COMMAND, call, environment, http_server, run

TOKEN = "0123456789abcdef"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


def post(url: str, body: bytes, method: str = "POST", **headers: str) -> tuple[int, Any, bytes]:
    """Send a plain request; returns status, headers and body."""
    request = urllib.request.Request(url, body, {**JSON, **headers}, method=method)
    try:
        response: HTTPResponse | urllib.error.HTTPError = urllib.request.urlopen(
            request, timeout=30
        )
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status or 0, response.headers, response.read()


def hello(url: str, **headers: str) -> tuple[int, Any, bytes]:
    return post(url, json.dumps(HELLO).encode(), **headers)


def tool_call(number: int, command: str) -> bytes:
    params = {
        "name": "sandbox_run",
        "arguments": {"command": command},
        "_meta": {"progressToken": number},
    }
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    ).encode()


def test_each_session_has_a_sandbox_of_its_own() -> None:
    async def test() -> None:
        with http_server() as url:
            async with Client(url) as one, Client(url, mode="legacy") as two:
                await call(one, "sandbox_run", command="echo one > who")
                await call(two, "sandbox_run", command="echo two > who")
                assert (await call(one, "sandbox_run", command="cat who"))["stdout"] == "one\n"
                assert (await call(two, "sandbox_run", command="cat who"))["stdout"] == "two\n"

    run(test)


def test_progress_comes_over_http() -> None:
    async def test() -> None:
        heard: list[str | None] = []

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)

        with http_server() as url:
            async with Client(url) as client:
                script = {"command": "echo first; sleep 4"}
                await client.call_tool("sandbox_run", script, progress_callback=listen)
        assert "first" in heard

    run(test)


def test_a_connection_that_breaks_does_not_end_the_command() -> None:
    with http_server() as url:
        _, headers, _ = hello(url)
        session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        script = "sleep 4; echo on > g"
        connection.request("POST", "/mcp", tool_call(2, script), {**JSON, **session})
        # The first progress has arrived: the command runs.
        assert connection.getresponse().readline().startswith(b"event")
        connection.close()
        # Progress is sent while nobody listens. The next call waits for its turn.
        assert b'"stdout":"on' in post(url, tool_call(3, "cat g"), **session)[2]


def test_a_session_that_the_client_ends_is_gone() -> None:
    with http_server() as url:
        _, headers, _ = hello(url)
        session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        status, _, body = post(url, tool_call(2, "echo hi"), **session)
        assert status == 200
        assert b'"exit_code":0' in body
        assert post(url, b"", "DELETE", **session)[0] == 200
        assert post(url, tool_call(3, "echo hi"), **session)[0] == 404


def test_a_session_that_nobody_uses_is_ended() -> None:
    with http_server("--idle-timeout", "1") as url:
        _, headers, _ = hello(url)
        session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        # A call in progress counts as use, however long it takes.
        assert b"awake" in post(url, tool_call(2, "sleep 2; echo awake"), **session)[2]
        deadline = time.monotonic() + 20
        while True:
            time.sleep(2)
            status, _, _ = post(url, tool_call(3, ":"), **session)
            if status == 404:
                break
            assert time.monotonic() < deadline


def test_no_more_sessions_than_allowed() -> None:
    with http_server("--max-sessions", "2") as url:
        first = hello(url)
        assert [first[0], hello(url)[0], hello(url)[0]] == [200, 200, 503]
        assert post(url, b"", "DELETE", **{"Mcp-Session-Id": first[1]["Mcp-Session-Id"]})[0] == 200
        assert hello(url)[0] == 200


def test_a_token_guards_the_server() -> None:
    async def test() -> None:
        with http_server(WASMSAND_MCP_TOKEN=TOKEN) as url:
            assert hello(url)[0] == 401
            assert hello(url, Authorization="Bearer wrong")[0] == 401
            assert hello(url, Authorization=TOKEN)[0] == 401
            assert hello(url, Authorization=f"Bearer {TOKEN}")[0] == 200
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with (
                httpx2.AsyncClient(headers=headers) as web,
                Client(streamable_http_client(url, http_client=web)) as client,
            ):
                assert (await call(client, "sandbox_run", command="echo in"))["stdout"] == "in\n"

    run(test)


def test_an_address_for_others_needs_a_token() -> None:
    for address in ("0.0.0.0:0", "[::]:0", "example.org:80"):
        ended = subprocess.run(
            [*COMMAND, "--http", address],
            capture_output=True,
            timeout=180,
            check=False,
            text=True,
            env=environment(),
        )
        assert ended.returncode == 125
        assert "other machines can reach " in ended.stderr


def test_a_token_that_can_be_guessed_is_refused() -> None:
    ended = subprocess.run(
        [*COMMAND, "--http", "127.0.0.1:0"],
        capture_output=True,
        timeout=180,
        check=False,
        text=True,
        env=environment(WASMSAND_MCP_TOKEN="short"),
    )
    assert ended.returncode == 125
    assert "a token must have at least 16 characters" in ended.stderr


def test_a_page_of_another_site_cannot_use_the_server() -> None:
    with http_server() as url:
        assert hello(url, Origin="http://evil.example")[0] == 403
        assert hello(url, Host="evil.example")[0] == 421


def test_a_client_without_sessions_is_told_which_protocol_to_use() -> None:
    async def test() -> None:
        with http_server() as url:
            async with Client(url, mode="auto") as client:
                assert client.session.protocol_version == "2025-11-25"
                await client.list_tools()  # the session has begun, and is not over
            async with Client(url, mode="2026-07-28") as client:
                with pytest.raises(MCPError, match="a sandbox needs a session"):
                    await client.list_tools()

    run(test)


BAD_REQUESTS: list[tuple[bytes, dict[str, str], int]] = [
    (b"not json", {}, 400),
    (b"{}", {}, 400),
    (tool_call(1, ":"), {}, 400),
    (tool_call(1, ":"), {"Mcp-Session-Id": "0" * 32}, 404),
    (tool_call(1, ":"), {"Mcp-Session-Id": "../../etc"}, 404),
    (json.dumps(HELLO).encode(), {"Content-Type": "text/plain"}, 400),
    (b"x" * 17_000_000, {}, 413),
]


def test_bad_requests_are_refused_and_the_server_goes_on() -> None:
    with http_server() as url:
        for body, headers, status in BAD_REQUESTS:
            try:
                assert post(url, body, **headers)[0] == status, body[:80]
            except urllib.error.URLError:
                # The server may close before it has read all of a refused body.
                assert status == 413
            assert hello(url)[0] == 200
