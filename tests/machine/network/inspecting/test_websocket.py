"""A connection switches to WebSocket, and to nothing else."""

from __future__ import annotations

import base64
import hashlib
import socket

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import Answer, pump, received
from tests.machine.network.inspecting.servers import answering, raw_server

pytestmark = pytest.mark.no_userland
KEY = base64.b64encode(b"sixteen bytes ok")
ACCEPT = base64.b64encode(hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
REQUEST = (
    b"GET /chat HTTP/1.1\r\nHost: api.test\r\nConnection: keep-alive, Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Accept: " + ACCEPT + b"\r\n\r\n"
)


def echo_after_switch(connection: socket.socket) -> None:
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536)
    assert b"upgrade: websocket" in head.lower()
    early = head.partition(b"\r\n\r\n")[2]
    connection.sendall(SWITCH + b"greeting " + early)
    while data := connection.recv(65536):
        connection.sendall(data.upper())
    connection.sendall(b" bye")


def test_after_the_switch_bytes_pass_in_both_directions(
    private_authority: PrivateAuthority,
) -> None:
    with (
        raw_server(echo_after_switch, private_authority.context("api.test")) as port,
        pump(port, ca_file=private_authority.ca_file) as joint,
        joint.connect_tls() as guest,
    ):
        guest.sendall(REQUEST)
        got = guest.recv(65536)
        while b"greeting " not in got:
            got += guest.recv(65536)
        guest.sendall(b"TRACE / HTTP/1.1\r\n\r\n frames \x00\xff")
        echo = b""
        while b"\xff" not in echo:
            echo += guest.recv(65536)
    assert got.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert ACCEPT in got
    assert echo == b"TRACE / HTTP/1.1\r\n\r\n FRAMES \x00\xff"
    assert [(seen.status, seen.path) for seen in joint.seen] == [(101, "/chat")]


def test_one_direction_may_end_before_the_other() -> None:
    with raw_server(echo_after_switch) as port, pump(port, port=80) as joint:
        got = joint.exchange(REQUEST + b"abc", tls=False)
    assert b"greeting abc" in got or b"ABC" in got
    assert got.endswith(b" bye")


def test_much_data_after_the_switch_is_held_back() -> None:
    size = 4 * 1024 * 1024

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(SWITCH + b"w" * size)

    with raw_server(handle) as port, pump(port, port=80) as joint, joint.connect() as guest:
        guest.sendall(REQUEST)
        got = received(guest)
    assert got.endswith(b"w" * size)  # the pump checks what is held


def test_a_request_that_is_not_allowed_does_not_switch() -> None:
    seen: list[bytes] = []
    with (
        raw_server(answering(SWITCH, seen=seen)) as port,
        pump(port, port=80, decide=lambda method, path: Answer(False)) as joint,
    ):
        assert joint.exchange(REQUEST, tls=False).startswith(b"HTTP/1.1 403 ")
    assert seen == []


@pytest.mark.parametrize(
    "switch",
    [
        SWITCH.replace(b"websocket", b"h2c"),
        SWITCH.replace(ACCEPT, KEY),
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
)
def test_a_server_that_does_not_prove_it_is_refused(switch: bytes) -> None:
    with raw_server(answering(switch)) as port, pump(port, port=80) as joint:
        answer = joint.exchange(REQUEST, tls=False)
    assert answer.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    "request_text",
    [
        REQUEST.replace(b"websocket", b"h2c"),
        REQUEST.replace(b"websocket", b"websocket, h2c"),
        REQUEST.replace(b"websocket", b"TLS/1.0"),
        REQUEST.replace(b"GET", b"POST"),
        REQUEST.replace(b"Version: 13", b"Version: 1"),
        REQUEST.replace(KEY, b"short"),
        REQUEST.replace(b"keep-alive, Upgrade", b"keep-alive"),
        REQUEST.replace(b"Upgrade: websocket", b"Upgrade: websocket\r\nContent-Length: 0"),
    ],
)
def test_no_other_switch_is_offered_to_the_server(request_text: bytes) -> None:
    seen: list[bytes] = []
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with raw_server(answering(ok, seen=seen)) as port, pump(port, port=80) as joint:
        assert joint.exchange(request_text, tls=False).endswith(b"\r\n\r\nok")
    assert b"upgrade:" not in seen[0].lower()
    assert b"http2-settings" not in seen[0].lower()
