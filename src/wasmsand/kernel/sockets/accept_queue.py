"""Connections that wait to be accepted.

Owns `AcceptQueue`, of one listening socket. Rules: a connection exists, and is on the ledger,
before it is accepted; at most `limit` + 1 of them are ready, as on Linux; sockets that find the
queue full wait for a place, in the order they came, until they get one or are closed. Both
numbers are bounded by `BACKLOG_MAX`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from wasmsand.kernel.limits import BACKLOG_MAX

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.stream import StreamSocket


class AcceptQueue:
    """What waits at one listener."""

    __slots__ = ("_limit", "_waiting", "ready")

    def __init__(self) -> None:
        self._limit = 0
        self.ready: deque[StreamSocket] = deque()
        """Connections to be accepted, the oldest first."""
        self._waiting: dict[StreamSocket, None] = {}
        """Sockets that want to connect and found no place."""

    def set_limit(self, backlog: int) -> None:
        """The number that listen(2) was called with."""
        self._limit = min(max(backlog, 0), BACKLOG_MAX)

    @property
    def is_full(self) -> bool:
        """Whether a further connection has to wait for a place."""
        return len(self.ready) > self._limit

    def wait(self, client: StreamSocket) -> bool:
        """Have `client` wait for a place; false if too many do."""
        if len(self._waiting) >= BACKLOG_MAX:
            return False
        self._waiting[client] = None
        return True

    def leave(self, client: StreamSocket) -> None:
        """`client` does not wait any more."""
        self._waiting.pop(client, None)

    def next_waiting(self) -> StreamSocket | None:
        """Take the socket that has waited longest; None if nobody waits."""
        client = next(iter(self._waiting), None)
        if client is not None:
            del self._waiting[client]
        return client
