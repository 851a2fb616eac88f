"""Connections to a port of this machine that leads to a sandbox on a server."""

from __future__ import annotations

import socket
import time

import pytest

from wasmsand.http.carrying import Carriers

pytestmark = pytest.mark.no_userland
ANSWER = bytes(100_000)


def test_a_server_that_closes_first_is_heard_to_its_end() -> None:
    """Also if the client goes on sending, and has not read anything yet."""
    mine, guests = socket.socketpair()
    guests.sendall(ANSWER)
    guests.close()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        for each, option in ((listener, socket.SO_SNDBUF), (client, socket.SO_RCVBUF)):
            each.setsockopt(socket.SOL_SOCKET, option, 4096)
        client.settimeout(60)
        client.connect(listener.getsockname())
        carried, _ = listener.accept()
        Carriers(lambda _port: mine)(80, carried)
        client.sendall(b"more")
        time.sleep(0.2)  # until the stream has refused it
        got = b""
        while data := client.recv(65536):
            got += data
    assert got == ANSWER
