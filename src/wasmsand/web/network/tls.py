"""TLS with a guest, which the JavaScript side speaks.

Owns `PageTls`, a `Transport`. Rules: nothing waits. Bytes go to the host and come back as events,
in order: plaintext of the guest, and records for it. Bytes that the host works on count as unread
or queued, so that the limits of a connection hold. This TLS protects nothing: both ends are on this
machine. The host's own request to the real host is what has to be safe, and the browser or Node
makes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.web.network.bridge import PageNetwork


class PageTls:
    """The bytes of a guest that connects to `host`."""

    def __init__(self, network: PageNetwork, host: str, wake: Callable[[], None]) -> None:
        """`wake` is called when something has changed."""
        self._network = network
        self._number = network.number_for(self)
        self._wake = wake
        self._plain: deque[bytes] = deque()
        self._plain_bytes = 0
        self._out = bytearray()
        self._undecrypted = 0
        self._unencrypted = 0
        self._unsent = bytearray()
        self._ended = False
        self._ignoring = False
        self._closed_by_peer = False
        self.ignored = 0
        self.is_ready = False
        self.finished = False
        self.problem = ""
        network.host.tls_open(self._number, host)

    # Receiver: `plain` and `records` have the number of bytes that they answer as text.

    def hear(self, event: str, text: str, data: bytes) -> None:
        """What the host says."""
        if event == "plain":
            self._undecrypted -= int(text)
            if data and not self._ignoring:
                self._plain.append(data)
                self._plain_bytes += len(data)
        elif event == "records":
            self._unencrypted -= int(text)
            self._out += data
        elif event == "ready":
            self.is_ready = True
            waiting, self._unsent = bytes(self._unsent), bytearray()
            self._send(waiting)
        elif event == "closed":
            self._closed_by_peer = True
        else:
            self.problem = text
            self.finished = True
            self._undecrypted = self._unencrypted = 0
            self._unsent.clear()
        self._wake()

    # Transport.

    def receive(self, data: bytes) -> None:
        if self._ignoring:
            self.ignored += len(data)
        elif data and not self.problem:
            self._undecrypted += len(data)
            self._network.host.tls_receive(self._number, data)

    def receive_end(self) -> None:
        self._ended = True

    def read(self) -> bytes:
        piece = self._plain.popleft() if self._plain else b""
        self._plain_bytes -= len(piece)
        return piece

    def ignore(self) -> None:
        self._ignoring = True
        self._plain.clear()
        self._plain_bytes = 0

    @property
    def at_end(self) -> bool:
        if self._ignoring:
            return self._ended
        if self._plain:
            return False
        return bool(self.problem) or self._closed_by_peer or (self._ended and not self.unread)

    @property
    def ended_properly(self) -> bool:
        return self._closed_by_peer

    def write(self, data: bytes) -> None:
        if not data or self.problem or self.finished:
            return
        if self.is_ready:
            self._send(data)
        else:
            self._unsent += data

    def _send(self, data: bytes) -> None:
        if data:
            self._unencrypted += len(data)
            self._network.host.tls_send(self._number, data)

    def finish(self) -> None:
        if self.finished:
            return
        self.finished = True
        self._unsent.clear()
        if self.is_ready:
            self._unencrypted += 1  # until the closing alert is there
            self._network.host.tls_finish(self._number)

    def take(self, most: int = -1) -> bytes:
        taken = bytes(self._out if most < 0 else self._out[:most])
        del self._out[: len(taken)]
        return taken

    @property
    def unread(self) -> int:
        return self._undecrypted + self._plain_bytes

    @property
    def queued(self) -> int:
        return len(self._out) + self._unencrypted + len(self._unsent)

    def close(self) -> None:
        """The connection is over."""
        self._network.forget(self._number)
        self._network.host.tls_close(self._number)
