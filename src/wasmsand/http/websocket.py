"""The server's end of a WebSocket.

Owns `handshake`, and `WebSocket`, messages over a switched connection. Rules: used on the event
loop only. Pings are answered while somebody receives. If the client does not read, `send`
waits; the limits of the connection stay in force.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import socket
from collections.abc import Sequence

from wasmsand.http.failures import ApiFailure
from wasmsand.http.websocket_frames import (
    CLOSE,
    NORMAL,
    PING,
    PONG,
    Message,
    Messages,
    WebSocketError,
    accept_value,
    closing,
    frame,
)
from wasmsand.serving.switched import Switched

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Names are in lower case."""

BEARER_PREFIX = "wasmsand.bearer."
"""A web page cannot set `Authorization`. It offers this subprotocol, followed by the token as
base64url without padding."""
_LOST_MS = 60_000
"""The system drops a connection whose client has not acknowledged data for this long."""


def handshake(headers: RawHeaders, protocol: str) -> list[tuple[bytes, bytes]]:
    """The headers of the response 101 to a request for a WebSocket. Raises `ApiFailure`."""
    key = _value(headers, b"sec-websocket-key") or ""
    try:
        is_key = len(base64.b64decode(key, validate=True)) == 16
    except binascii.Error:
        is_key = False
    if (
        (_value(headers, b"upgrade") or "").lower() != "websocket"
        or "upgrade" not in [word.lower() for word in _words(headers, b"connection")]
        or _value(headers, b"sec-websocket-version") != "13"
        or not is_key
    ):
        raise ApiFailure(426, "upgrade_required", "this path is a WebSocket (RFC 6455, version 13)")
    answer = [
        (b"connection", b"Upgrade"),
        (b"upgrade", b"websocket"),
        (b"sec-websocket-accept", accept_value(key).encode("ascii")),
    ]
    if protocol in _words(headers, b"sec-websocket-protocol"):
        answer.append((b"sec-websocket-protocol", protocol.encode("ascii")))
    return answer


def offered_token(headers: RawHeaders) -> str | None:
    """The token that the client offers as a subprotocol, if any."""
    for word in _words(headers, b"sec-websocket-protocol"):
        if word.startswith(BEARER_PREFIX):
            encoded = word.removeprefix(BEARER_PREFIX)
            try:
                padded = encoded + "=" * (-len(encoded) % 4)
                return base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
            except ValueError:
                return None
    return None


def _value(headers: RawHeaders, wanted: bytes) -> str | None:
    """The value of a header that is given exactly once."""
    values = [value.decode("latin-1").strip() for name, value in headers if name == wanted]
    return values[0] if len(values) == 1 else None


def _words(headers: RawHeaders, wanted: bytes) -> list[str]:
    values = [value.decode("latin-1") for name, value in headers if name == wanted]
    return [word.strip() for word in ",".join(values).split(",")]


class WebSocket:
    """A switched connection that carries messages."""

    def __init__(self, switched: Switched, limit: int) -> None:
        """`limit` is the maximum size of a message of the client."""
        self._switched = switched
        self.messages = Messages(masked=True, limit=limit)
        self.heard = asyncio.get_running_loop().time()
        """When the client last sent something."""
        self._has_closed = False

    async def receive(self) -> Message | None:
        """The next message; None when the client has closed the WebSocket or is gone. Raises
        `WebSocketError`."""
        while True:
            while (message := self.messages.next()) is None:
                try:
                    data = await self._switched.read()
                except ConnectionError:
                    return None
                if not data:
                    return None
                self.heard = asyncio.get_running_loop().time()
                self.messages.feed(data)
            if message.kind == PING:
                await self.send(PONG, message.data)
            elif message.kind == CLOSE:
                await self.close(NORMAL)
                return None
            elif message.kind != PONG:
                return message

    async def send(self, kind: int, data: bytes) -> None:
        """Send a message. Raises `ConnectionError`."""
        await self._switched.write(frame(kind, data, masked=False))

    async def close(self, code: int, reason: str = "") -> None:
        """Send a closing frame, once."""
        if not self._has_closed:
            self._has_closed = True
            try:
                await self.send(CLOSE, closing(code, reason))
            except ConnectionError:
                pass  # the client is gone

    def drop(self) -> None:
        """Close the connection; what was sent is still delivered."""
        self._switched.close()

    def notice_loss(self) -> None:
        """Let the system notice a client that vanished without a word."""
        connection = self._switched.socket
        option = getattr(socket, "TCP_USER_TIMEOUT", None)
        if connection is not None and option is not None:
            try:
                connection.setsockopt(socket.IPPROTO_TCP, option, _LOST_MS)
            except OSError:
                pass  # not a TCP connection


__all__ = [
    "BEARER_PREFIX",
    "Message",
    "WebSocket",
    "WebSocketError",
    "handshake",
    "offered_token",
]
