"""The WebSocket of a terminal: frames and orders of a hostile client.

An input is what a client sends after the handshake; its first byte says how it is cut into pieces.
Rules: whatever arrives is a message, or is refused with `WebSocketError` or `ApiFailure`; no
message exceeds the limit; how the bytes are cut makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fuzz.target import Finding, Target
from wasmsand.http.failures import ApiFailure
from wasmsand.http.terminal_session import order_of
from wasmsand.http.websocket_frames import BINARY, PING, TEXT, Messages, WebSocketError, frame

_LIMIT: Final = 2048
_ORDERS: Final = (
    b'{"type":"open","command":["vim","a"],"cols":80,"rows":24,"env":{"A":"b"},"window":1000}',
    b'{"type":"resize","cols":132,"rows":50}',
    b'{"type":"ack","bytes":512}',
    b'{"type":"kill"}',
    b'{"type":"hangup"}',
)


class TerminalMessages(Target):
    """Frames and orders."""

    name = "terminal-messages"
    about = "frames and orders on the WebSocket of a terminal"
    words = (
        b"\x81\x80", b"\x82\xfe", b"\x82\xff", b"\x00\x80", b"\x80\x80", b"\x89\x80", b"\x88\x82",
        b"\x03\xe8", b"\0\0\0\0", b"\xff" * 8, b'"type":', b'"open"', b"65536", b"1e400", b"null",
        b"\xed\xa0\x80", b'"\\ud800"', b"[" * 50,
    )  # fmt: skip
    longest = 4096

    def seeds(self) -> Iterable[bytes]:
        """See `Target`."""
        for order in _ORDERS:
            # A mask of zeros, so that mutations change the order itself.
            yield b"\x07\x81" + bytes([0x80 | min(len(order), 125)]) + bytes(4) + order[:125]
        yield b"\x01" + frame(BINARY, b"ls\r", masked=True) + frame(PING, b"", masked=True)

    def run(self, data: bytes) -> None:
        """See `Target`."""
        if not data:
            return
        whole, cut = _outcome(data[1:], len(data)), _outcome(data[1:], 1 + data[0])
        if whole != cut:
            raise Finding("cuts", f"{whole!r} and {cut!r}")


def _outcome(data: bytes, step: int) -> list[object]:
    """What a server makes of `data`."""
    messages, found = Messages(masked=True, limit=_LIMIT), list[object]()
    try:
        for at in range(0, len(data), step):
            messages.feed(data[at : at + step])
            while (message := messages.next()) is not None:
                if len(message.data) > _LIMIT:
                    raise Finding("limit", f"a message of {len(message.data)} bytes")
                found.append(message)
                if message.kind == TEXT:
                    found.append(order_of(message))
    except WebSocketError as error:
        found.append(error.code)
    except ApiFailure as failure:
        found.append(failure.code)
    return found
