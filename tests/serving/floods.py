"""Connections of hostile clients."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from tests.waiting import wait_until


def allow_files(count: int) -> None:
    """Let this process open that many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=60)


@contextlib.contextmanager
def flood(url: str, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    """That many connections, each of which has sent `data` and sends no more."""
    allow_files(count + 512)
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = connect(url)
            opened.append(connection)
            with contextlib.suppress(OSError):  # the server may have closed it already
                connection.sendall(data)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def count_closed(connections: Sequence[socket.socket]) -> int:
    """How many connections the server has closed."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection, select.POLLIN | select.POLLHUP | select.POLLERR)
    ready = {descriptor for descriptor, _ in poll.poll(0)}
    closed = 0
    for connection in connections:
        if connection.fileno() in ready:
            try:
                while connection.recv(65536, socket.MSG_DONTWAIT):
                    pass
                closed += 1
            except BlockingIOError:
                pass
            except OSError:
                closed += 1
    return closed


def wait_until_closed(connections: Sequence[socket.socket], seconds: float) -> None:
    """Wait until the server has closed all of them."""
    wait_until(
        lambda: count_closed(connections) == len(connections),
        "the server has not closed all connections",
        seconds,
        pause=0.2,
    )
