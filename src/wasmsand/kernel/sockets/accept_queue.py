"""Connections waiting to be accepted.

Owns `AcceptQueue`, one per listening socket. Rules: a connection exists, and is charged, before it
is accepted. At most `limit` + 1 connections are ready, as on Linux. Sockets that find the queue
full wait in order for a place, until they get one or are closed. Both numbers are bounded by
`BACKLOG_MAX`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from wasmsand.kernel.limits import BACKLOG_MAX

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.stream import StreamSocket


class AcceptQueue:
    """The queue of one listener."""

    __slots__ = ("_limit", "_waiting", "ready")

    def __init__(self) -> None:
        self._limit = 0
        self.ready: deque[StreamSocket] = deque()
        """Connections to accept, oldest first."""
        self._waiting: dict[StreamSocket, None] = {}
        """Sockets that want to connect but found the queue full."""

    def set_limit(self, backlog: int) -> None:
        """Set the backlog, as listen(2) does."""
        self._limit = min(max(backlog, 0), BACKLOG_MAX)

    @property
    def is_full(self) -> bool:
        """Whether a further connection has to wait for a place."""
        return len(self.ready) > self._limit

    def wait(self, client: StreamSocket) -> bool:
        """Make `client` wait for a place; False if too many wait already."""
        if len(self._waiting) >= BACKLOG_MAX:
            return False
        self._waiting[client] = None
        return True

    def leave(self, client: StreamSocket) -> None:
        """`client` no longer waits."""
        self._waiting.pop(client, None)

    def next_waiting(self) -> StreamSocket | None:
        """Remove and return the socket that has waited longest, or None."""
        client = next(iter(self._waiting), None)
        if client is not None:
            del self._waiting[client]
        return client
