"""Moves bytes between a client and a server in a sandbox.

Owns `GuestStream`, the connection to the server, and `relay`, both directions of a connection that
has left HTTP. Rules: if one side does not read, the other one waits; a connection through which no
byte moves for long is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

from wasmsand.serving.switched import PIECE, Switched


class Idle(Exception):
    """No byte has moved for too long."""


class GuestStream:
    """A connection to a server in a sandbox."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle_seconds: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_seconds = idle_seconds
        self._moved = asyncio.get_running_loop().time()

    @classmethod
    async def over(cls, connection: socket.socket, idle_seconds: float) -> GuestStream:
        """The stream over `connection`, a connected socket, which it owns."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection, limit=PIECE)
        # `drain` waits until nothing is buffered: `close` loses what is.
        writer.transport.set_write_buffer_limits(high=0)
        return cls(reader, writer, idle_seconds)

    async def read(self) -> bytes:
        """The next data from the guest; empty at the end. Raises `Idle`, `OSError`."""
        while True:
            waiting = asyncio.ensure_future(self._reader.read(PIECE))
            try:
                await asyncio.wait({waiting}, timeout=self._seconds_left())
                if waiting.done():
                    self._touch()
                    return waiting.result()
            finally:
                waiting.cancel()
            if self._seconds_left() <= 0:  # nor has the other direction moved
                raise Idle

    async def write(self, data: bytes) -> None:
        """Send data to the guest. Raises `OSError`."""
        self._writer.write(data)
        self._touch()
        await self._writer.drain()
        self._touch()

    def finish(self) -> None:
        """Send no more."""
        if not self._writer.is_closing():
            self._writer.write_eof()

    def close(self) -> None:
        """Close the connection now."""
        self._writer.transport.abort()

    def _touch(self) -> None:
        self._moved = asyncio.get_running_loop().time()

    def _seconds_left(self) -> float:
        return max(0.0, self._moved + self._idle_seconds - asyncio.get_running_loop().time())


async def relay(client: Switched, guest: GuestStream, first: bytes = b"") -> None:
    """Move bytes both ways until both sides have ended, one is lost, or nothing moves. `first`
    was read from the guest before."""

    async def to_guest() -> None:
        while data := await client.read():
            await guest.write(data)
        guest.finish()

    async def to_client() -> None:
        if first:
            await client.write(first)
        while data := await guest.read():
            await client.write(data)
        client.finish()

    try:
        await until_all_end_or_one_fails(to_guest(), to_client())
    finally:
        client.close()
        guest.close()


async def until_all_end_or_one_fails(*works: Coroutine[Any, Any, None]) -> None:
    """Run these at the same time. When one fails, the others are cancelled."""
    tasks = {asyncio.create_task(work) for work in works}
    try:
        while tasks:
            done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # Every result is looked at: asyncio reports exceptions that nobody has asked for.
            failures = [task.exception() for task in done]
            if any(failures):
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
