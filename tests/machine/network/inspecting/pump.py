"""Joins guests and a real server through an `Inspector`, by real sockets.

A guest connects to `Pump.port`. Each connection has a thread, which checks after each step that the
inspector keeps its promises: bounded buffers, no bytes for a side that is done.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPSConnection
from typing import Any

from tests.machine.network.inspecting.servers import SECONDS
from wasmsand.machine.network.inspecting.authority import Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context
from wasmsand.machine.network.inspecting.inspector import Inspector
from wasmsand.machine.network.inspecting.order import (
    InspectionOrder,
    RequestSeen,
    RequestVerdict,
)

HELD_MAX = 160 * 1024
"""Most bytes that may wait for one side: the inspector's 64 KiB, a piece, and overhead of TLS."""


@dataclass(frozen=True)
class Answer:
    """A verdict of a test."""

    allowed: bool
    reason: str = ""


def anything(_method: str, _path: str) -> Answer:
    return Answer(True)


@dataclass
class Pump:
    """What the tests see of a running pump."""

    authority: Authority
    port: int = 0
    seen: list[RequestSeen] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    most_held: int = 0
    to_server: bytearray = field(default_factory=bytearray)
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def guest_context(self) -> ssl.SSLContext:
        """How a guest connects: it trusts the sandbox's authority and nothing else."""
        context = ssl.create_default_context(cadata=self.authority.certificate.decode())
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def connect_tls(self, host: str | None = "api.test") -> ssl.SSLSocket:
        context = self.guest_context()
        context.check_hostname = host is not None
        return context.wrap_socket(self.connect(), server_hostname=host)

    def client(self, host: str = "api.test", port: int = 443) -> HTTPSConnection:
        """An ordinary client for https://`host`."""
        client = HTTPSConnection(host, port, context=self.guest_context(), timeout=SECONDS)

        def connect(*_arguments: Any, **_options: Any) -> socket.socket:
            return self.connect()

        client._create_connection = connect  # type: ignore[attr-defined]
        return client

    def exchange(self, data: bytes, *, tls: bool = True, host: str = "api.test") -> bytes:
        """Send `data`, end, and return everything that arrives."""
        with self.connect_tls(host) if tls else self.connect() as guest:
            guest.sendall(data)
            if not tls:
                guest.shutdown(socket.SHUT_WR)
            return received(guest)


def received(guest: socket.socket) -> bytes:
    """Everything until the end of the connection."""
    found = bytearray()
    with suppress(ConnectionError, ssl.SSLEOFError):
        while data := guest.recv(65536):
            found += data
    return bytes(found)


@contextmanager
def pump(
    server_port: int,
    *,
    ca_file: str | None = None,
    host: str = "api.test",
    port: int = 443,
    decide: Callable[[str, str], RequestVerdict] = anything,
    headers: Mapping[str, str] | None = None,
    placeholders: Mapping[str, str] | None = None,
    piece: int = 65536,
    **more: Any,
) -> Iterator[Pump]:
    """Lets guests reach the server at `server_port` as `host`:`port`."""
    result = Pump(Authority())
    order = InspectionOrder(
        host=host,
        port=port,
        decide=decide,
        authority=result.authority,
        server_context=verifying_context(ca_file),
        headers=headers or {},
        placeholders=placeholders or {},
        on_request=result.seen.append,
        **more,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    result.port = listener.getsockname()[1]
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                guest, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(
                target=_join, args=(guest, server_port, Inspector(order), result, piece)
            )
            threads.append(thread)
            thread.start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield result
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(SECONDS)
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a connection did not end"
    assert result.broken == []


def _join(
    guest: socket.socket, server_port: int, inspector: Inspector, result: Pump, piece: int
) -> None:
    try:
        server = socket.create_connection(("127.0.0.1", server_port), timeout=SECONDS)
        with guest, server:
            _move(guest, server, inspector, result, piece)
    except Exception as error:
        if not isinstance(error, ConnectionError):
            result.broken.append(repr(error))
    finally:
        result.ended.release()


def _move(
    guest: socket.socket, server: socket.socket, inspector: Inspector, result: Pump, piece: int
) -> None:
    waiting = {guest: b"", server: b""}
    finished: set[socket.socket] = set()
    ended: set[socket.socket] = set()
    guest.setblocking(False)
    server.setblocking(False)
    while True:
        inspector.go_on()
        # Take only when the last piece was sent, as a bridge with back pressure does.
        taken = False
        for side, take in ((guest, inspector.for_guest), (server, inspector.for_server)):
            if not waiting[side]:
                waiting[side] = take()
                taken = taken or bool(waiting[side])
                result.most_held = max(result.most_held, len(waiting[side]))
                if side is server:
                    result.to_server += waiting[side]
                if waiting[side] and side in finished:
                    result.broken.append("bytes for a side that was done")
                if len(waiting[side]) > HELD_MAX:
                    result.broken.append(f"{len(waiting[side])} bytes were held")
        for side, done in ((guest, inspector.guest_done), (server, inspector.server_done)):
            if done and not waiting[side] and side not in finished:
                finished.add(side)
                with suppress(OSError):
                    side.shutdown(socket.SHUT_WR)
        if inspector.failure is not None and not waiting[guest]:
            linger = b"\1\0\0\0\0\0\0\0"
            guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return
        wants = [
            side
            for side, wanted in ((guest, inspector.wants_guest), (server, inspector.wants_server))
            if wanted and side not in ended
        ]
        if len(finished) == 2 and not wants:
            return
        if taken:
            continue  # there may be more to do
        writers = [side for side in waiting if waiting[side]]
        patience = 0 if inspector.has_more else SECONDS
        readable, writable, _ = select.select(wants, writers, [], patience)
        if not readable and not writable and patience:
            result.broken.append("nothing happened for a long time")
            return
        for side in writable:
            sent = side.send(waiting[side])
            waiting[side] = waiting[side][sent:]
        for side in readable:
            try:
                data = side.recv(piece)
            except ConnectionError:
                data = b""
            if side is guest:
                (inspector.guest_sent(data) if data else inspector.guest_ended())
            else:
                (inspector.server_sent(data) if data else inspector.server_ended())
            if not data:
                ended.add(side)
