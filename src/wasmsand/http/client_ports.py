"""`HttpPorts`: the operations on ports of a server's sandbox.

A part of `HttpBackend`. Rules: no port of this machine is opened: the URL of a port is one of the
server's, which passes requests on. A stream is a request that leaves HTTP (`Upgrade`).
"""

from __future__ import annotations

import http.client
import socket
import time
from typing import Any, Final

from wasmsand.http.answers import exception_of
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import (
    ConnectionLostError,
    PortError,
    UnsupportedError,
    port_error,
)
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

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        raise NotImplementedError

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        connection = self._transport.new_connection()
        seconds = _ANSWER_SECONDS if timeout_seconds is None else timeout_seconds + _ANSWER_SECONDS
        try:
            status, body = _switch(connection, self._transport, self._path, port, seconds)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._transport.lost(error) from None
        if status == 101:
            found: socket.socket = connection.sock
            connection.sock = None
            return found
        connection.close()
        failure = exception_of(status, body)
        if isinstance(failure, PortError):
            failure = port_error(str(failure), failure.errno_name, port)
        raise failure

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
        if host_port is not None:
            raise UnsupportedError(
                "Sandbox.connect opens no port of this machine; leave host_port out"
            )
        self._get(f"/listening/{port}")  # raises if the sandbox is gone
        return self._transport.address_of(f"{self._path}/ports/{port}")

    def close_port(self, port: int) -> bool:
        """See `Backend`. Nothing was opened."""
        return False


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
