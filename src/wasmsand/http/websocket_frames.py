"""The frames of a WebSocket (RFC 6455), for the server and for our client.

Owns `Messages`, which decodes what the other side sends, and `frame`, which encodes. Rules: no
input or output; standard library only; a message has a maximum size, checked before it is stored;
whatever breaks the protocol raises `WebSocketError` with the code for the closing frame.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import Final

TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA
_CONTINUATION: Final = 0x0
_DATA: Final = frozenset({_CONTINUATION, TEXT, BINARY})
_CONTROL: Final = frozenset({CLOSE, PING, PONG})
_CONTROL_MAX: Final = 125
_FINAL: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
REFUSED: Final = 1008
TOO_LARGE: Final = 1009
INTERNAL: Final = 1011

_ACCEPT_SUFFIX: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocketError(Exception):
    """The other side broke the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """A whole message, or a control frame."""

    kind: int
    data: bytes

    def text(self) -> str:
        """The text of a message. Raises `WebSocketError` if it is not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            raise WebSocketError(1007, "a text message must be UTF-8") from None


class Messages:
    """Decodes the bytes of one direction."""

    def __init__(self, *, masked: bool, limit: int) -> None:
        """`masked`: whether frames have to be masked, as those of a client are. `limit` is the
        maximum size of a message."""
        self._masked = masked
        self.limit = limit
        self._received = bytearray()
        self._parts = bytearray()
        self._kind: int | None = None
        """The kind of the message whose parts are being received."""

    def feed(self, data: bytes) -> None:
        """Add bytes that were received."""
        self._received += data

    def next(self) -> Message | None:
        """The next message; None if more bytes are needed. Raises `WebSocketError`."""
        while (found := self._frame()) is not None:
            is_final, kind, payload = found
            if kind in _CONTROL:
                return Message(kind, payload)
            if (kind == _CONTINUATION) != (self._kind is not None):
                raise WebSocketError(PROTOCOL_ERROR, "a message was continued or begun wrongly")
            if kind != _CONTINUATION:
                self._kind = kind
            if len(self._parts) + len(payload) > self.limit:
                raise self._too_large()
            self._parts += payload
            if is_final:
                assert self._kind is not None
                message = Message(self._kind, bytes(self._parts))
                self._parts.clear()
                self._kind = None
                return message
        return None

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """The next frame: whether it is final, its kind and its content."""
        received = self._received
        if len(received) < 2:
            return None
        first, second = received[0], received[1]
        kind, size, at = first & 0x0F, second & 0x7F, 2
        if first & _RESERVED or kind not in _DATA | _CONTROL:
            raise WebSocketError(PROTOCOL_ERROR, "reserved bits or an unknown kind of frame")
        if bool(second & _MASKED) != self._masked:
            raise WebSocketError(PROTOCOL_ERROR, "frames of clients, and only these, are masked")
        if kind in _CONTROL and (size > _CONTROL_MAX or not first & _FINAL):
            raise WebSocketError(PROTOCOL_ERROR, "a control frame is too long or not final")
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(received) < at + width:
                return None
            size = int.from_bytes(received[at : at + width])
            at += width
        if size > self.limit and kind not in _CONTROL:
            raise self._too_large()
        key_size = 4 if self._masked else 0
        if len(received) < at + key_size + size:
            return None
        key = bytes(received[at : at + key_size])
        at += key_size
        payload = bytes(received[at : at + size])
        del received[: at + size]
        return bool(first & _FINAL), kind, _xor(payload, key) if key else payload

    def _too_large(self) -> WebSocketError:
        return WebSocketError(TOO_LARGE, f"a message may have {self.limit} bytes")


def frame(kind: int, data: bytes, *, masked: bool) -> bytes:
    """One frame with a whole message. A client's frames have to be masked."""
    bit = _MASKED if masked else 0
    if len(data) < 126:
        head = bytes((_FINAL | kind, bit | len(data)))
    elif len(data) < 65536:
        head = bytes((_FINAL | kind, bit | 126)) + len(data).to_bytes(2)
    else:
        head = bytes((_FINAL | kind, bit | 127)) + len(data).to_bytes(8)
    if not masked:
        return head + data
    key = secrets.token_bytes(4)
    return head + key + _xor(data, key)


def closing(code: int, reason: str = "") -> bytes:
    """The content of a closing frame."""
    text = reason.encode("utf-8")[: _CONTROL_MAX - 2].decode("utf-8", "ignore")
    return code.to_bytes(2) + text.encode("utf-8")


def accept_value(key: str) -> str:
    """The value of `Sec-WebSocket-Accept` for a client's key."""
    digest = hashlib.sha1(key.encode("ascii") + _ACCEPT_SUFFIX, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode("ascii")


def _xor(data: bytes, key: bytes) -> bytes:
    """Mask or unmask; as one large number, because a loop over the bytes is slow."""
    size = len(data)
    repeated = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data) ^ int.from_bytes(repeated)).to_bytes(size)
