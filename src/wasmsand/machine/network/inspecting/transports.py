"""The bytes of one side of an inspected connection.

Owns `Transport`, and `Plain`, which implements it; `tls.py` has the other one. Rules: nothing
waits; bytes from the peer are passed in, bytes for the peer are taken out.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Transport(Protocol):
    """One side, seen from the bridge."""

    problem: str
    """Why nothing more can be read; empty if all is well."""

    def receive(self, data: bytes) -> None:
        """The peer has sent `data`."""

    def receive_end(self) -> None:
        """The peer will send no more."""

    def read(self) -> bytes:
        """Plaintext from the peer; empty if there is none now."""

    def ignore(self) -> None:
        """Read nothing more: drop what the peer has sent and sends."""

    @property
    def ignored(self) -> int:
        """How many bytes were dropped."""

    @property
    def at_end(self) -> bool:
        """Whether `read` will never return more."""

    @property
    def ended_properly(self) -> bool:
        """Whether the end can be trusted: not a TLS connection that was cut off."""

    def write(self, data: bytes) -> None:
        """Send plaintext to the peer."""

    def finish(self) -> None:
        """Send no more after what was written."""

    def take(self, most: int = -1) -> bytes:
        """Bytes for the peer: all, or up to `most`."""

    @property
    def is_ready(self) -> bool:
        """Whether there is, or was, a connection that can carry data."""

    @property
    def finished(self) -> bool:
        """Whether `finish` was called and everything can be taken."""

    @property
    def unread(self) -> int:
        """How many bytes from the peer wait to be read."""

    @property
    def queued(self) -> int:
        """How many bytes for the peer wait to be taken."""


class Plain:
    """Bytes as they are. Pieces are kept as they come, without copying them."""

    def __init__(self) -> None:
        self._in: deque[bytes] = deque()
        self._out: deque[bytes] = deque()
        self._ended = False
        self._ignoring = False
        self.unread = 0
        self.queued = 0
        self.ignored = 0
        self.is_ready = True
        self.finished = False
        self.problem = ""

    def receive(self, data: bytes) -> None:
        if self._ignoring:
            self.ignored += len(data)
        elif data:
            self._in.append(data)
            self.unread += len(data)

    def receive_end(self) -> None:
        self._ended = True

    def read(self) -> bytes:
        piece = self._in.popleft() if self._in else b""
        self.unread -= len(piece)
        return piece

    def ignore(self) -> None:
        self._ignoring = True
        self._in.clear()
        self.unread = 0

    @property
    def at_end(self) -> bool:
        return self._ended and not self._in

    @property
    def ended_properly(self) -> bool:
        return self._ended

    def write(self, data: bytes) -> None:
        if data and not self.finished:
            self._out.append(data)
            self.queued += len(data)

    def finish(self) -> None:
        self.finished = True

    def take(self, most: int = -1) -> bytes:
        taken = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        if 0 <= most < len(taken):
            self._out.append(taken[most:])
            taken = taken[:most]
        self.queued -= len(taken)
        return taken
