"""Requests that leave HTTP: the client's side of a switched connection.

Owns `open_stream`. Rules: standard library only; what follows the response's head belongs to the
stream and is left unread.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from typing import Final

from wasmsand.http.answers import exception_of
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import ConnectionLostError

_MAX_HEAD_BYTES: Final = 64 * 1024
_MAX_ERROR_BYTES: Final = 1024 * 1024


def open_stream(
    transport: Transport, method: str, path: str, headers: Mapping[str, str], seconds: float
) -> tuple[socket.socket, dict[str, str]]:
    """Ask the server to switch protocols. Returns the connection, without a timeout, and the
    headers of the response, with names in lower case. Raises the exception that the server reports,
    or `ConnectionLostError`."""
    try:
        connection = transport.connected()
    except OSError as error:
        raise transport.lost(error) from None
    try:
        connection.sock.settimeout(seconds)
        _ask(connection, transport, method, path, headers)
        status, answer = _read_head(connection.sock)
        if status == 101:
            found: socket.socket = connection.sock
            found.settimeout(None)
            connection.sock = None
            return found, answer
        body = _read_body(connection.sock, answer)
    except (OSError, http.client.HTTPException) as error:
        raise transport.lost(error) from None
    finally:
        connection.close()
    raise exception_of(status, body)


def _ask(
    connection: http.client.HTTPConnection,
    transport: Transport,
    method: str,
    path: str,
    headers: Mapping[str, str],
) -> None:
    connection.putrequest(method, transport.target_of(path), skip_accept_encoding=True)
    for name, value in {**transport.headers, "Connection": "Upgrade", **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()


def _read_head(connection: socket.socket) -> tuple[int, dict[str, str]]:
    """The status and the headers of the response, byte by byte."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte or len(head) >= _MAX_HEAD_BYTES:
            raise http.client.BadStatusLine("the response ended early, or is too long")
        head += byte
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
        raise ConnectionLostError(f"not a response from wasmsand: {first[:80]!r}")
    pairs = (line.partition(":") for line in lines if line)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _read_body(connection: socket.socket, headers: Mapping[str, str]) -> bytes:
    length = headers.get("content-length", "0")
    size = min(int(length), _MAX_ERROR_BYTES) if length.isdecimal() else 0
    body = b""
    while len(body) < size and (piece := connection.recv(size - len(body))):
        body += piece
    return body
