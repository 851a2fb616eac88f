"""Moves bytes between a client and a server in a sandbox.

Owns `GuestStream`, the connection to the server, and `relay`, both directions of a connection that
has left HTTP. Rules: if one side does not read, the other one waits; a connection through which no
byte moves for long is closed. A guest that reads no more may still send: what it has sent reaches
the client, and what the client sends meanwhile is dropped.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from wasmsand.serving.switched import PIECE, Switched

_LINGER_SECONDS: Final = 30.0
"""If the guest has closed the connection: how long the client may go on sending after the guest's
last byte. If we closed the connection with data unread, the system would drop what the client has
not received yet."""
_SILENT_SECONDS: Final = 5.0
"""The same if the client sends nothing."""


class Idle(Exception):
    """No byte has moved for too long."""


class GuestStream:
    """A connection to a server in a sandbox. It uses the socket itself, because a transport of
    asyncio stops reading when the guest reads no more."""

    def __init__(self, connection: socket.socket, idle_seconds: float) -> None:
        """The stream over `connection`, a connected socket, which it owns."""
        connection.setblocking(False)
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._idle_seconds = idle_seconds
        self._moved = self._loop.time()

    async def read(self) -> bytes:
        """The next data from the guest; empty at the end. Raises `Idle`, `OSError`."""
        while True:
            await asyncio.sleep(0)  # others get their turn, however fast the guest is
            try:
                data = self._socket.recv(PIECE)
            except BlockingIOError:
                await self._ready(
                    self._loop.add_reader, self._loop.remove_reader, self.seconds_left()
                )
                if self.seconds_left() <= 0:  # nor has the other direction moved
                    raise Idle from None
                continue
            self._touch()
            return data

    async def write(self, data: bytes) -> None:
        """Send data to the guest. The system has all of it when this returns. Raises `OSError`."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
                self._touch()
            except BlockingIOError:
                await self._ready(self._loop.add_writer, self._loop.remove_writer, None)

    async def _ready(
        self, add: Callable[..., None], remove: Callable[[int], object], seconds: float | None
    ) -> None:
        """Wait until the socket can be used, for at most `seconds`."""
        number, ready = self._socket.fileno(), self._loop.create_future()
        add(number, _tell, ready)
        try:
            await asyncio.wait({ready}, timeout=seconds)
        finally:
            remove(number)

    def finish(self) -> None:
        """Send no more."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the guest has closed the connection

    def close(self) -> None:
        """Close the connection now. Nobody may be reading or writing."""
        self._socket.close()

    def _touch(self) -> None:
        self._moved = self._loop.time()

    def seconds_left(self) -> float:
        """How long nothing may move from now on."""
        return max(0.0, self._moved + self._idle_seconds - self._loop.time())


def _tell(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def relay(client: Switched, guest: GuestStream, first: bytes = b"") -> None:
    """Move bytes both ways until both sides have ended, one is lost, or nothing moves. `first`
    was read from the guest before."""
    try:
        await _Relay(client, guest).run(first)
    finally:
        client.close()
        guest.close()


class _Relay:
    """Both directions of one connection."""

    def __init__(self, client: Switched, guest: GuestStream) -> None:
        self._client = client
        self._guest = guest
        self._guest_reads = True
        self._client_ended = False
        self._heard = asyncio.Event()
        """Set when the client has sent something, or has ended."""

    async def run(self, first: bytes) -> None:
        """Until both directions have ended, or one fails."""
        await until_all_end_or_one_fails(self._to_guest(), self._to_client(first))

    async def _to_guest(self) -> None:
        while data := await self._client.read():
            if self._guest_reads:
                try:
                    await self._guest.write(data)
                except OSError:
                    self._guest_reads = False
            self._heard.set()
        self._client_ended = True
        self._heard.set()
        if self._guest_reads:
            self._guest.finish()

    async def _to_client(self, first: bytes) -> None:
        if first:
            await self._client.write(first)
        while data := await self._from_guest():
            await self._client.write(data)
        self._client.finish()
        await self._wait_for_client()

    async def _from_guest(self) -> bytes:
        try:
            return await self._guest.read()
        except OSError:  # the guest has closed the connection, and did not read everything
            self._guest_reads = False
            return b""

    async def _wait_for_client(self) -> None:
        """The guest sends no more. It may still read what the client sends. If it does not, wait a
        little until the client has all that the guest has sent. Raises `Idle`."""
        loop = asyncio.get_running_loop()
        linger_until: float | None = None
        while not self._client_ended:
            seconds = self._guest.seconds_left()
            if not self._guest_reads:
                linger_until = linger_until or loop.time() + _LINGER_SECONDS
                seconds = min(linger_until - loop.time(), _SILENT_SECONDS)
            self._heard.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._heard.wait()
            except TimeoutError:
                raise Idle from None


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
