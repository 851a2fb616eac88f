"""Requests and responses that switch to WebSocket.

Owns the checks of RFC 6455's handshake. Rules: it is the only protocol to which a connection may
switch, because the bridge sees nothing afterwards. Another one, such as HTTP/2, could carry
requests that no rule sees. So the server has to prove that it speaks WebSocket.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from typing import Final

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16


def options_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> set[bytes]:
    """The lower-case elements of a header with a list."""
    found = (value.lower().split(b",") for key, value in headers if key.lower() == name)
    return {element.strip() for elements in found for element in elements} - {b""}


def requested_key(method: bytes, headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """The key of a request that asks for WebSocket; None if it does not, or not properly."""
    values = {name.lower(): value for name, value in headers}
    key = values.get(b"sec-websocket-key", b"")
    try:
        is_key = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        is_key = False
    asks = (
        method == b"GET"
        and options_of(headers, b"upgrade") == {b"websocket"}
        and b"upgrade" in options_of(headers, b"connection")
        and values.get(b"sec-websocket-version") == b"13"
        and not values.keys() & {b"content-length", b"transfer-encoding"}
    )
    return key if asks and is_key else None


def is_accepted(key: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a response with status 101 switches to WebSocket."""
    digest = hashlib.sha1(key + _GUID, usedforsecurity=False).digest()
    accepted = [value for name, value in headers if name.lower() == b"sec-websocket-accept"]
    return accepted == [base64.b64encode(digest)] and options_of(headers, b"upgrade") == {
        b"websocket"
    }
