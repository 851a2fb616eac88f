"""The bytes of one side of an inspected connection, by TLS.

Owns `Tls`, a `Transport`. Rules: as in `transports.py`. A problem of TLS is kept as text; an alert
for the peer can still be taken. Plaintext that is written before the end of the handshake waits.
"""

from __future__ import annotations

import ssl
from typing import Final

_PIECE: Final = 65536


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
