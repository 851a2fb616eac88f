"""Connections through an HTTP proxy of the host."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.machine.network.servers import echo, only_event, python, run, server
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.network.policy import policy_of
from wasmsand.machine.network.proxy import ProxyAddress


class Proxy:
    """A proxy that connects to one port, whatever the name."""

    def __init__(self, port: int, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"):
        self.requests: list[str] = []
        self._port = port
        self._answer = answer

    def serve(self, connection: socket.socket) -> None:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += connection.recv(1)
        self.requests.append(request.decode())
        with socket.create_connection(("127.0.0.1", self._port)) as to:
            connection.sendall(self._answer)
            back = threading.Thread(target=_copy, args=(to, connection), daemon=True)
            back.start()
            _copy(connection, to)
            back.join()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):  # one side has ended
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)


@contextmanager
def behind(proxy_url: str) -> Iterator[Machine]:
    made = Machine(MachineOptions(network=policy_of(allow=["far.test"], proxy=proxy_url)))
    try:
        yield made
    finally:
        made.close()


CONVERSATION = """
s = socket.create_connection(("far.test", 443)); s.sendall(b"through"); s.shutdown(1)
print(s.recv(100))
"""


def test_the_proxy_is_told_the_name_and_the_bytes_go_through() -> None:
    with server(echo) as target:
        proxy = Proxy(target)
        with server(proxy.serve) as port, behind(f"http://me:se%20cret@127.0.0.1:{port}") as guest:
            assert python(guest, CONVERSATION) == "b'through'\n"
            pair = base64.b64encode(b"me:se cret").decode()
            assert proxy.requests == [
                "CONNECT far.test:443 HTTP/1.1\r\nHost: far.test:443\r\n"
                f"Proxy-Authorization: Basic {pair}\r\n\r\n"
            ]
            out, _ = run(guest, "python3", "-c", "import socket; socket.gethostbyname('near.test')")
            assert out == ""


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "refuses"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000, "too long"),
    ],
)
def test_a_proxy_that_refuses_is_a_refused_connection(answer: bytes, why: str) -> None:
    program = """
try: socket.create_connection(("far.test", 443))
except ConnectionRefusedError as error: print(error)
"""
    with (
        server(echo) as target,
        server(Proxy(target, answer).serve) as port,
        behind(f"http://127.0.0.1:{port}") as guest,
    ):
        assert python(guest, program) == "[Errno 111] Connection refused\n"
        event = only_event(guest)
        assert why in event.reason


def test_a_tunnel_takes_no_byte_of_the_other_side() -> None:
    """The server speaks first, in the same packet as the proxy's answer."""

    def eager(connection: socket.socket) -> None:
        while not connection.recv(4096).endswith(b"\r\n\r\n"):
            pass
        connection.sendall(b"HTTP/1.0 200 OK\r\nVia: x\r\n\r\n\r\n\r\nhello")

    with server(eager) as port, behind(f"http://127.0.0.1:{port}") as guest:
        program = 's = socket.create_connection(("far.test", 443)); print(s.recv(100), s.recv(9))'
        assert python(guest, program) == "b'\\r\\n\\r\\nhello' b''\n"


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "localhost, .inner.test,other.test")
    assert ProxyAddress.of_environment("far.test") == ("proxy.test", 3128, "")
    for exempt in ("localhost", "a.inner.test", "inner.test", "other.test", "x.other.test"):
        assert ProxyAddress.of_environment(exempt) is None
    assert ProxyAddress.of_environment("another.test") is not None
    with pytest.raises(ValueError, match="http://HOST:PORT"):
        ProxyAddress.of_url("socks5://proxy.test:1080")
