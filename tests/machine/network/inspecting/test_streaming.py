"""Bodies are passed on as they come, not when they are complete."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import pump, received
from tests.machine.network.inspecting.servers import SECONDS, raw_server

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (b"Transfer-Encoding: chunked", (b"6\r\nfirst \r\n", b"6\r\nsecond\r\n0\r\n\r\n")),
        (b"Content-Length: 12", (b"first ", b"second")),
        (b"Connection: close", (b"first ", b"second")),
    ],
)
def test_events_of_a_response_arrive_one_by_one(
    private_authority: PrivateAuthority, head: bytes, pieces: tuple[bytes, bytes]
) -> None:
    first_was_read = threading.Event()

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + pieces[0])
        if first_was_read.wait(SECONDS):
            connection.sendall(pieces[1])
        connection.unwrap()  # type: ignore[attr-defined]

    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        pump(port, ca_file=private_authority.ca_file) as joint,
    ):
        client = joint.client()
        client.request("GET", "/events")
        response = client.getresponse()
        assert response.read1(100) == b"first "
        first_was_read.set()
        assert response.read() == b"second"
        client.close()


def test_a_request_is_sent_while_it_is_written() -> None:
    seen = threading.Event()

    def handle(connection: socket.socket) -> None:
        data = b""
        while b"first" not in data:
            data += connection.recv(65536)
        seen.set()
        while b"0\r\n\r\n" not in data:
            data += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with raw_server(handle) as port, pump(port, port=80) as joint, joint.connect() as guest:
        guest.sendall(b"POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        guest.sendall(b"5\r\nfirst\r\n")
        assert seen.wait(SECONDS)
        guest.sendall(b"4\r\nlast\r\n0\r\n\r\n")
        guest.shutdown(socket.SHUT_WR)
        assert received(guest).endswith(b"\r\n\r\nok")


def test_both_directions_may_move_at_once(private_authority: PrivateAuthority) -> None:
    """A server that answers each piece of the request before the next one comes."""

    def handle(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        data = data.partition(b"\r\n\r\n")[2]
        for number in range(3):
            while b"ask %d" % number not in data:
                data += connection.recv(65536)
            connection.sendall(b"8\r\nanswer %d\r\n" % number)
        while b"0\r\n\r\n" not in data:
            data += connection.recv(65536)
        connection.sendall(b"0\r\n\r\n")
        connection.recv(1)

    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        pump(port, ca_file=private_authority.ca_file) as joint,
        joint.connect_tls() as guest,
    ):
        guest.sendall(b"POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        got = b""
        for number in range(3):
            guest.sendall(b"5\r\nask %d\r\n" % number)
            while b"answer %d" % number not in got:
                got += guest.recv(65536)
        guest.sendall(b"0\r\n\r\n")
        while not got.endswith(b"0\r\n\r\n"):
            got += guest.recv(65536)
    assert [(seen.sent, seen.received) for seen in joint.seen] == [(15, 24)]
