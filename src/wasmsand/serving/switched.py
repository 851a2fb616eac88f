"""A connection that has left HTTP: bytes in both directions, such as a WebSocket.

Owns `Switched`. Rules: used on the event loop only. If one side does not read, the other one waits:
at most two pieces are buffered in each direction. `write` returns when the system has all of the
data, so that nothing is lost if the connection is then aborted. The connection's own limits
(number, owner, unread output) stay in force.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

PIECE = 64 * 1024


class Switched:
    """The server's end of a switched connection."""

    def __init__(
        self, transport: asyncio.Transport, drain: Callable[[], Awaitable[None]], first: bytes
    ) -> None:
        """`drain` waits until the client has read; `first` was received before the switch."""
        transport.set_write_buffer_limits(high=0)  # `drain` waits until nothing is buffered
        self._transport = transport
        self._drain = drain
        self._reader = asyncio.StreamReader(PIECE)
        self._reader.set_transport(transport)
        if first:
            self._reader.feed_data(first)
        self._has_ended = False

    # For the connection.

    def received(self, data: bytes) -> None:
        """Data from the client."""
        self._reader.feed_data(data)

    def ended(self) -> None:
        """The client sends no more."""
        self._has_ended = True
        self._reader.feed_eof()

    def lost(self) -> None:
        """The connection is closed: `read` fails, unless all that the client has sent is there."""
        if not self._has_ended:
            self._reader.set_exception(ConnectionResetError())

    # For the application.

    async def read(self) -> bytes:
        """The next data from the client; empty at the end. Raises `ConnectionResetError`."""
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        """Send data to the client. The system has all of it when this returns."""
        if self._transport.is_closing():
            raise ConnectionResetError
        self._transport.write(data)
        await self._drain()

    @property
    def socket(self) -> socket.socket | None:
        """The client's connection, for its options; None if it has none."""
        found = self._transport.get_extra_info("socket")
        return found if hasattr(found, "setsockopt") else None

    def finish(self) -> None:
        """Send no more."""
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()
