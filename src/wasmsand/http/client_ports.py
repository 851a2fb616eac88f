"""`HttpPorts`: the operations on ports of a server's sandbox.

A part of `HttpBackend`. Rules: the URL of a port is one of the server's, which passes requests on.
A port of this machine is opened only if the user asks for it (`host_port`). A stream is a request
that leaves HTTP (`Upgrade`).
"""

from __future__ import annotations

import http.client
import socket
import time
from typing import Any, Final

from wasmsand.http.answers import exception_of
from wasmsand.http.carrying import Carriers
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import ConnectionLostError, PortError, port_error
from wasmsand.sdk.host_ports import HostPorts, host_ports
from wasmsand.sdk.results import PortInfo

TUNNEL_PROTOCOL: Final = "wasmsand-stream"
"""The value of `Upgrade` for a stream to a port."""
_WAIT_STEP_MS: Final = 20_000.0
_ANSWER_SECONDS: Final = 30.0
_MAX_HEAD_BYTES: Final = 64 * 1024
_MAX_ERROR_BYTES: Final = 1024 * 1024


class HttpPorts:
    """The ports of a server's sandbox."""

    _transport: Transport
    _path: str
    _host_ports: HostPorts | None = None

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        raise NotImplementedError

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        return _open_stream(self._transport, self._path, port, timeout_seconds)

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """See `Backend`."""
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            step = _WAIT_STEP_MS
            if until is not None:
                step = min(step, max(0.0, (until - time.monotonic()) * 1000))
            if self._get(f"/listening/{port}", wait_ms=step)["listens"]:
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def listening_ports(self) -> list[PortInfo]:
        """See `Backend`."""
        return [PortInfo(**item) for item in self._get("/listening")["ports"]]

    def open_port(self, port: int, host_port: int | None) -> str:
        """See `Backend`."""
        self._get(f"/listening/{port}")  # raises if the sandbox is gone
        if host_port is None:
            return self._transport.address_of(f"{self._path}/ports/{port}")
        transport, path = self._transport, self._path

        def make() -> HostPorts:
            carriers = Carriers(lambda port: _open_stream(transport, path, port, None))
            return HostPorts(self, carriers, carriers.has_room)

        return host_ports(self, make).open(port, host_port)

    def close_port(self, port: int) -> bool:
        """See `Backend`."""
        return self._host_ports is not None and self._host_ports.close_port(port)

    def close_ports(self) -> None:
        """Close all ports of this machine that lead to the sandbox."""
        if self._host_ports is not None:
            self._host_ports.close()


def _open_stream(
    transport: Transport, path: str, port: int, timeout_seconds: float | None
) -> socket.socket:
    """A stream to a port of the sandbox at `path`. Raises `PortError`, `ConnectionLostError`."""
    connection = transport.new_connection()
    seconds = _ANSWER_SECONDS if timeout_seconds is None else timeout_seconds + _ANSWER_SECONDS
    try:
        status, body = _switch(connection, transport, path, port, seconds)
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise transport.lost(error) from None
    if status == 101:
        found: socket.socket = connection.sock
        connection.sock = None
        return found
    connection.close()
    failure = exception_of(status, body)
    if isinstance(failure, PortError):
        failure = port_error(str(failure), failure.errno_name, port)
    raise failure


def _switch(
    connection: http.client.HTTPConnection,
    transport: Transport,
    path: str,
    port: int,
    seconds: float,
) -> tuple[int, bytes]:
    """Ask for a stream. Returns the status, and the body of an error."""
    connection.connect()
    connection.sock.settimeout(seconds)
    target = transport.target_of(f"{path}/tunnels/{port}")
    connection.putrequest("POST", target, skip_accept_encoding=True)
    for name, value in transport.headers.items():
        connection.putheader(name, value)
    connection.putheader("Connection", "Upgrade")
    connection.putheader("Upgrade", TUNNEL_PROTOCOL)
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    head = _read_head(connection.sock)
    first, _, rest = head.partition(b"\r\n")
    words = first.split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ConnectionLostError(f"not a response from wasmsand: {first[:80]!r}")
    status = int(words[1])
    if status == 101:
        return status, b""
    size = 0
    for line in rest.lower().split(b"\r\n"):
        field, _, content = line.partition(b":")
        if field == b"content-length" and content.strip().isdigit():
            size = min(int(content), _MAX_ERROR_BYTES)
    body = b""
    while len(body) < size and (piece := connection.sock.recv(size - len(body))):
        body += piece
    return status, body


def _read_head(connection: socket.socket) -> bytes:
    """The head of the response, byte by byte: what follows belongs to the stream."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte or len(head) >= _MAX_HEAD_BYTES:
            raise http.client.BadStatusLine("the response ended early, or is too long")
        head += byte
    return bytes(head)
