"""Mutated requests to servers in a sandbox: no bug of the server, and nothing is kept."""

from __future__ import annotations

import random
import socket
import time
from urllib.parse import urlsplit

import pytest

from fuzz.mutation import mutated
from tests.http.port_guests import RAW, WEBSOCKET
from tests.http.server import Client, ServerProcess, serving
from tests.http.test_ports import OK, Guest
from tests.waiting import wait_until

INPUTS = 120
SEED = 14
HOST = b"Host: 127.0.0.1\r\n"
WEB = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abcd\r\n"
STREAM = b"Connection: Upgrade\r\nUpgrade: wasmsand-stream\r\n"
REQUESTS = [
    (b"GET", b"/ports/8000/", b"", b""),
    (b"POST", b"/ports/8000/upload", b"Content-Length: 5\r\n", b"hello"),
    (b"POST", b"/ports/8000/chunked-request", b"Transfer-Encoding: chunked\r\n",
     b"5\r\nhello\r\n0\r\n\r\n"),
    (b"GET", b"/ports/8000/chunked", b"", b"GET / HTTP/1.1\r\n\r\n"),
    (b"GET", b"/ports/8000/reset", b"", b""),
    (b"GET", b"/ports/8000/endless-body", b"", b""),
    (b"POST", b"/ports/8000/early", b"Expect: 100-continue\r\nContent-Length: 99999\r\n", b"x"),
    (b"GET", b"/ports/8001/chat", WEB, b"\x81\x85\0\0\0\0hello"),
    (b"GET", b"/ports/8001/refuse", WEB, b"GET / HTTP/1.1\r\n\r\n"),
    (b"GET", b"/ports/8000/", WEB, b""),
    (b"POST", b"/tunnels/8000", STREAM + b"Content-Length: 0\r\n", b"GET / HTTP/1.0\r\n\r\n"),
    (b"POST", b"/tunnels/8000", STREAM + b"Content-Length: 5\r\n", b"hello"),
    (b"HEAD", b"/ports/8000", b"", b""),
]  # fmt: skip
WORDS = (
    WEB, STREAM, b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"\r\n\r\n", b"?",
    b"#",
    b"Connection: close\r\n", b"HTTP/1.0", b"%2f", b"//", b"\0", b"/ports/8001", b"/ports/9",
    b"X-Wasmsand-Token: x\r\n", b"Connection: content-length, host\r\n",
)  # fmt: skip


def send(server: ServerProcess, data: bytes, cut: int) -> bytes:
    """Send in two parts; return what arrives at first."""
    parts, got = urlsplit(server.url), b""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as connection:
            connection.settimeout(0.1)
            connection.sendall(data[:cut])
            time.sleep(0.005)
            connection.sendall(data[cut:])
            while len(got) < 100_000 and (piece := connection.recv(65536)):
                got += piece
    except (TimeoutError, ConnectionError):
        pass
    return got


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_mutated_requests_do_no_harm(isolation: str) -> None:
    options = ("--isolation", isolation, "--port-idle-seconds", "2", "--grace-seconds", "2")
    chance = random.Random(SEED)
    with serving(*options) as server:  # it must not log anything
        client = Client(server.url)
        guest = Guest(client, client.create())
        guest.start("raw.py", RAW, 8000)
        guest.start("websocket.py", WEBSOCKET, 8001)
        guest.put("reply", OK)
        seeds = [
            b"%s %s%s HTTP/1.1\r\n%s%s\r\n%s"
            % (method, guest.path.encode(), path, HOST, more, body)
            for method, path, more, body in REQUESTS
        ]
        for _ in range(INPUTS):
            one, two = chance.choice(seeds), chance.choice(seeds)
            data = chance.choice([one, one + two, mutated(chance, one, two, WORDS, most=8000)])
            answer = send(server, data, chance.randrange(len(data) + 1))
            assert b"HTTP/1.1 500" not in answer, data
            assert answer[:7] in (b"", b"HTTP/1."), data
        assert guest.get("/").body == b"ok"
        wait_until(lambda: b"\nwasmsand_port_connections 0.0" in client.ask("GET", "/metrics").body)
