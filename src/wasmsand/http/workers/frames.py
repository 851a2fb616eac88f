"""Frames between the front process and a worker.

Owns `FrameConnection`, one end of a connection, and the kinds of frames. A connection carries one
request at a time: REQUEST, then BODY frames and END if it has a body; the worker answers START,
BODY frames, LAST and END, or SWITCH, after which both directions carry plain bytes. Rules: used on
the event loop only. A side that does not read makes the other one wait. A frame has at most
`FRAME_MAX` bytes; a larger one, or one of an unknown kind, ends the connection. Closing a
connection means that the request was given up.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from wasmsand.serving.switched import Switched

REQUEST, BODY, LAST, END, START, SWITCH, ASK, ANSWER = range(1, 9)
"""LAST is the last BODY of a response; END says that the connection can be used again."""
ROOM: Final = "room"
"""What the front process says to a worker that shall pause an idle sandbox."""
_HEAD: Final = struct.Struct("<BI")
FRAME_MAX: Final = 1 << 20
PIECE: Final = 256 * 1024
"""Bodies are cut into frames of this size."""
_QUEUED_MAX: Final = 2 * PIECE

RawHeaders = list[tuple[bytes, bytes]]


class RequestHead(msgspec.Struct, array_like=True, frozen=True):
    """The head of a request."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: RawHeaders
    owner: str
    """The name of the token, which the front process has checked."""
    has_body: bool
    scheme: str = "http"


class ResponseHead(msgspec.Struct, array_like=True, frozen=True):
    """The head of a response."""

    status: int
    headers: RawHeaders


class Lost(Exception):
    """The connection has ended."""


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A frame as bytes."""
    return _HEAD.pack(kind, len(payload)) + payload


def body_frames(data: bytes, *, is_last: bool = False) -> bytes:
    """A body, or a part of it, as frames; `is_last`: the last one is LAST."""
    pieces = [data[begin : begin + PIECE] for begin in range(0, len(data), PIECE)]
    last = frame(LAST, pieces.pop() if pieces else b"") if is_last else b""
    return b"".join([*(frame(BODY, piece) for piece in pieces), last])


class FrameConnection(asyncio.Protocol):
    """One end of a connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._frames: deque[tuple[int, bytes]] = deque()
        self._queued = 0
        self._reading_paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_raw = False
        self._switched: Switched | None = None
        self.is_lost = False
        self._lost_waiters: list[asyncio.Future[None]] = []
        self.on_lost: Callable[[], None] | None = None
        """Called when the connection ends."""

    # For asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._switched is not None:
            self._switched.received(data)
            return
        self._buffer += data
        if not self._is_raw:
            self._parse()
            self._wake()
        if self._queued + len(self._buffer) > _QUEUED_MAX + FRAME_MAX:
            self._pause()

    def eof_received(self) -> bool:
        if self._switched is not None:
            self._switched.ended()
            return True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._switched is not None:
            self._switched.lost()
        self._wake()
        self.resume_writing()
        for waiter in self._lost_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._lost_waiters.clear()
        if self.on_lost is not None:
            self.on_lost()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Reading.

    def _parse(self) -> None:
        buffer, size, at = self._buffer, _HEAD.size, 0
        while len(buffer) - at >= size:
            kind, length = _HEAD.unpack_from(buffer, at)
            if length > FRAME_MAX or not REQUEST <= kind <= ANSWER:
                self.close()
                break
            if len(buffer) - at - size < length:
                break
            self._frames.append((kind, bytes(buffer[at + size : at + size + length])))
            self._queued += length
            at += size + length
            if kind == SWITCH:
                self._is_raw = True
                break
        if at:
            del buffer[:at]
        if self._queued > _QUEUED_MAX:
            self._pause()

    def _pause(self) -> None:
        if not self._reading_paused and self._transport is not None:
            self._reading_paused = True
            self._transport.pause_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def has_frames(self) -> bool:
        """Whether `next` does not have to wait."""
        return bool(self._frames)

    async def next(self) -> tuple[int, bytes]:
        """The next frame. Raises `Lost`."""
        while not self._frames:
            if self.is_lost:
                raise Lost
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        found = self._frames.popleft()
        self._queued -= len(found[1])
        if self._reading_paused and self._queued <= _QUEUED_MAX // 2 and not self.is_lost:
            self._reading_paused = False
            assert self._transport is not None
            self._transport.resume_reading()
        return found

    async def wait_lost(self) -> None:
        """Wait for the end of the connection."""
        if not self.is_lost:
            waiter = asyncio.get_running_loop().create_future()
            self._lost_waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._lost_waiters:
                    self._lost_waiters.remove(waiter)

    # Writing.

    def write(self, data: bytes) -> None:
        """Send frames. Without effect if the connection has ended."""
        if not self.is_lost and self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the other side has read."""
        if self._writable is not None and not self.is_lost:
            await self._writable

    def close(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()

    # Switching.

    def switch(self) -> Switched:
        """Leave frames; from now on, both directions carry plain bytes."""
        assert self._transport is not None
        first, self._buffer = bytes(self._buffer), bytearray()
        self._switched = Switched(self._transport, self.drain, first)
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if self.is_lost:
            self._switched.lost()
        return self._switched
