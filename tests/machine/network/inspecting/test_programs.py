"""curl, wget and git reach inspected hosts, and get secrets that they do not have."""

from __future__ import annotations

import base64
import hashlib
import socket
from pathlib import Path

from tests.machine.network.inspecting.guests import inspected
from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.servers import (
    answering,
    echo_server,
    files_of,
    raw_server,
)
from tests.machine.network.servers import run
from tests.small_index import make_wheel, write_pages

SECRET = "sk-91d0-for-programs"
BEARER = {"api.test": {"Authorization": f"Bearer {SECRET}"}}


def at(port: int) -> dict[str, str]:
    return {"api.test": f"127.0.0.1:{port}"}


def test_curl_uses_a_host_with_a_secret(private_authority: PrivateAuthority) -> None:
    script = (
        "curl -sS https://api.test/a https://api.test/b;"
        " head -c 3000000 /dev/zero | curl -sS --data-binary @- https://api.test/up;"
        " head -c 3000000 /dev/zero | curl -sS -T - https://api.test/put;"
        " curl -sSI https://api.test/head | head -n 1"
    )
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "api.test", hosts=at(echo.port), secrets=BEARER) as machine,
    ):
        assert run(machine, "bash", "-c", script) == (
            "GET /a 0\nGET /b 0\nPOST /up 3000000\nPUT /put 3000000\nHTTP/1.1 200 OK\r\n",
            "",
        )
    assert [request[2]["authorization"] for request in echo.requests] == 5 * [[f"Bearer {SECRET}"]]


def test_curl_is_told_which_rule_is_missing(private_authority: PrivateAuthority) -> None:
    script = "curl -sS -X DELETE https://api.test/v1/a 2>/dev/null; curl -fsS https://api.test/b"
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET api.test/v1/*", hosts=at(echo.port)) as machine,
    ):
        out, err = run(machine, "bash", "-c", script)
    assert out == (
        "wasmsand: DELETE api.test:443/v1/a is not allowed; "
        "to allow it, add 'DELETE api.test:443/v1/a' to network.allow\n"
    )
    assert "curl: (22) The requested URL returned error: 403" in err
    assert echo.requests == []


def test_curl_asks_before_it_sends_a_large_body(private_authority: PrivateAuthority) -> None:
    """With `Expect: 100-continue`; the body of a refused request stays in the sandbox."""
    script = "head -c 2000000 /dev/zero | curl -sS -H 'Expect: 100-continue' -T - https://api.test/"
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET api.test", hosts=at(echo.port)) as machine,
    ):
        out, _ = run(machine, "bash", "-c", script)
    assert out.startswith("wasmsand: PUT api.test:443/ is not allowed; ")
    assert echo.requests == []


def test_curl_that_offers_http_2_speaks_http_1_1(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET api.test", hosts=at(echo.port)) as machine,
    ):
        script = "curl -sS --http2 -w '%{http_version}\\n' https://api.test/a"
        assert run(machine, "bash", "-c", script) == ("GET /a 0\n1.1\n", "")


def test_wget_uses_a_host_with_a_secret(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "api.test", hosts=at(echo.port), secrets=BEARER) as machine,
    ):
        assert run(machine, "wget", "-qO-", "https://api.test/a") == ("GET /a 0\n", "")
    assert echo.requests[0][2]["authorization"] == [f"Bearer {SECRET}"]


def test_pip_installs_from_an_index_with_rules(
    private_authority: PrivateAuthority, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "files" / "small", "small", "1.5")
    write_pages(tmp_path)
    install = (
        "pip install -q --disable-pip-version-check --index-url https://api.test/simple/ small"
        " && python3 -c 'import small; print(small.version)'"
    )
    with (
        raw_server(files_of(tmp_path), private_authority.context("api.test")) as port,
        inspected(
            private_authority,
            "GET api.test/simple/*",
            "GET api.test/files/*",
            hosts=at(port),
        ) as machine,
    ):
        assert run(machine, "bash", "-c", install)[0] == "1.5\n"
        events = machine.bridge.log.events()
    paths = [event.path for event in events if event.kind == "request"]
    assert paths == ["/simple/small/", "/files/small/small-1.5-py3-none-any.whl"]


def test_git_sends_a_placeholder_as_its_password(private_authority: PrivateAuthority) -> None:
    """git encodes user and password together; the bridge looks inside."""
    seen: list[bytes] = []
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    question = (
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=git\r\n"
        b"Content-Length: 0\r\n\r\n"
    )
    handle = answering(question, refusal, seen=seen)
    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        inspected(
            private_authority,
            "api.test",
            hosts=at(port),
            placeholders={"api.test": {"{{GIT_TOKEN}}": SECRET}},
        ) as machine,
    ):
        url = "https://user:{{GIT_TOKEN}}@api.test/repository.git"
        run(machine, "git", "ls-remote", url)
    heads = b"".join(seen)
    assert b"GET /repository.git/info/refs?service=git-upload-pack HTTP/1.1" in heads
    assert b"Authorization: Basic dXNlcjpzay05MWQwLWZvci1wcm9ncmFtcw==" in heads


def test_httpx_uses_a_host_with_a_secret(private_authority: PrivateAuthority) -> None:
    program = """
import asyncio, httpx
with httpx.Client() as client:
    print(client.get("https://api.test/a").text, end="")
    print(client.post("https://api.test/b", content=iter([b"x" * 1000] * 50)).text, end="")
async def main():
    async with httpx.AsyncClient() as client:
        answers = await asyncio.gather(*(client.get(f"https://api.test/{n}") for n in range(5)))
        print([answer.text for answer in answers])
asyncio.run(main())
"""
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(
            private_authority,
            "api.test",
            hosts=at(echo.port),
            secrets=BEARER,
            packages=("httpx",),
        ) as machine,
    ):
        out, err = run(machine, "python3", "-c", program)
    assert (out, err) == (
        "GET /a 0\nPOST /b 50000\n" + repr([f"GET /{n} 0\n" for n in range(5)]) + "\n",
        "",
    )
    assert {request[2]["authorization"][0] for request in echo.requests} == {f"Bearer {SECRET}"}


def test_a_websocket_is_opened_with_a_secret(private_authority: PrivateAuthority) -> None:
    heads: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        heads.append(head)
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        key = {name.lower(): value for name, value in fields.items()}[b"sec-websocket-key"]
        digest = hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
        )
        frame = connection.recv(65536)  # text, masked, shorter than 126 bytes
        mask, data = frame[2:6], frame[6:]
        text = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)).upper()
        connection.sendall(bytes((0x81, len(text))) + text + b"\x88\x00")
        connection.recv(65536)

    program = """
from websockets.sync.client import connect
with connect("wss://api.test/chat") as socket:
    socket.send("hello"); print(socket.recv())
"""
    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        inspected(
            private_authority,
            "GET api.test/chat",
            hosts=at(port),
            secrets=BEARER,
            packages=("websockets",),
        ) as machine,
    ):
        assert run(machine, "python3", "-c", program) == ("HELLO\n", "")
    assert f"Authorization: Bearer {SECRET}\r\n".encode() in heads[0]
