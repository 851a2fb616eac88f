"""The bytes of one side of an inspected connection.

Owns `Plain` and `Tls`, two implementations of `Transport`. Rules: nothing waits; bytes from the
peer are passed in, bytes for the peer are taken out. A problem of TLS is kept as text; an alert
for the peer can still be taken. Plaintext that is written before the end of the handshake waits.
"""

from __future__ import annotations

import ssl
from collections import deque
from typing import Final, Protocol

_PIECE: Final = 65536


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


class Tls:
    """Bytes in TLS. `server_name` is the name of the real host; without it the bridge is the
    server."""

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._in, self._out, server_side=server_name is None, server_hostname=server_name
        )
        self._unsent = bytearray()
        self.is_ready = False
        self._ended = False
        self._ignoring = False
        self.ignored = 0
        self._closed_by_peer = False
        self.finished = False
        self.problem = ""
        if server_name is not None:
            self._shake_hands()

    def receive(self, data: bytes) -> None:
        if self._ignoring:
            self.ignored += len(data)
            return
        if self.at_end:
            return  # nobody will read it
        self._in.write(data)
        if not self.is_ready:
            self._shake_hands()

    def receive_end(self) -> None:
        self._in.write_eof()
        self._ended = True
        if not self.is_ready:
            self._shake_hands()

    def _shake_hands(self) -> None:
        if self.problem or self.finished:
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            self._fail(error)
            return
        self.is_ready = True
        waiting, self._unsent = bytes(self._unsent), bytearray()
        if waiting:
            self._tls.write(waiting)

    def _fail(self, error: ssl.SSLError) -> None:
        if isinstance(error, ssl.SSLCertVerificationError):
            self.problem = f"certificate not valid: {error.verify_message}"
        elif isinstance(error, ssl.SSLEOFError):
            self.problem = "TLS connection cut off"
        else:
            self.problem = f"TLS: {error.reason or 'protocol error'}"
        self._unsent.clear()
        self.finished = True

    def read(self) -> bytes:
        if not self.is_ready or self.at_end or self._ignoring:
            return b""
        try:
            data = self._tls.read(_PIECE)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b""
        except ssl.SSLZeroReturnError:
            self._closed_by_peer = True
            return b""
        except ssl.SSLError as error:
            self._fail(error)
            return b""
        if not data:
            self._closed_by_peer = True
        return data

    @property
    def at_end(self) -> bool:
        if self._ignoring:
            return self._ended
        return bool(self.problem) or self._closed_by_peer

    def ignore(self) -> None:
        self._ignoring = True
        self._in.read()

    @property
    def ended_properly(self) -> bool:
        return self._closed_by_peer

    def write(self, data: bytes) -> None:
        if self.problem or self.finished:
            return
        if not self.is_ready:
            self._unsent += data
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._fail(error)

    def finish(self) -> None:
        """Send the closing alert. Before the end of the handshake there is nothing to close, and
        what waits for that end is dropped."""
        if self.finished:
            return
        self.finished = True
        self._unsent.clear()
        if self.is_ready:
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # the peer has not answered; the alert is in the queue

    def take(self, most: int = -1) -> bytes:
        return self._out.read(most)

    @property
    def unread(self) -> int:
        return self._in.pending

    @property
    def queued(self) -> int:
        return self._out.pending + len(self._unsent)
