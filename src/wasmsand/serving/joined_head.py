"""Sends the head of a response together with the beginning of its body.

Owns `JoinedHead`. uvicorn writes head and body of a response one after the other, which costs a
system call each and, for the client, a second packet. Rules: only the head is held back, and only
until the body follows or the event loop has nothing else to do; so a stream does not wait for its
first output, and no more than a head is buffered.
"""

from __future__ import annotations

import asyncio
from typing import cast


class JoinedHead:
    """The transport of one request and its response, as uvicorn uses it."""

    __slots__ = ("_has_head", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._has_head = False

    @classmethod
    def around(
        cls, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Transport:
        """The transport to use instead of `transport`, for one response."""
        return cast("asyncio.Transport", cls(transport, loop))

    def write(self, data: bytes) -> None:
        """Write the first data a little later, and everything else at once."""
        if self._has_head:
            head, self._head = self._head, b""
            if head or data:
                self._transport.write(head + data if head else data)
            return
        self._has_head = True
        self._head = data
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)

    def close(self) -> None:
        """See `asyncio.Transport`."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """See `asyncio.Transport`."""
        return self._transport.is_closing()
