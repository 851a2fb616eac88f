"""One direction of a connection between stream sockets.

Owns `Channel`. Rules: descriptors arrive with the byte they were sent with. TCP's urgent byte is
kept apart from the stream, or within it if the reader had set SO_OOBINLINE when it arrived; a read
stops at the urgent mark. Queued bytes are charged to the sandbox's ledger.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from wasmsand.kernel.files.byte_queue import ByteQueue
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.sockets.rights import Rights
from wasmsand.kernel.wait import WaitQueue

_NO_RIGHTS: Final[deque[tuple[int, Rights]]] = deque(maxlen=0)
"""A shared empty queue: a deque per channel would take 600 bytes."""


class Channel(ByteQueue):
    """One direction of a connection."""

    __slots__ = (
        "_pulled",
        "_rights",
        "capacity",
        "finished",
        "mark",
        "reader",
        "urgent",
        "writer",
    )

    def __init__(self, ledger: Ledger, capacity: int, writer: WaitQueue, reader: WaitQueue) -> None:
        super().__init__(ledger)
        self.capacity = capacity
        self.finished = False
        """The writer will not write any more."""
        self.mark: int | None = None
        """The stream position of the last urgent byte, until a read passes it."""
        self.urgent = b""
        """The urgent byte, if it is kept apart and not yet read."""
        self.writer = writer
        self.reader = reader
        self._pulled = 0
        self._rights = _NO_RIGHTS  # by position in the stream

    def room(self) -> int:
        """Bytes that can be written now."""
        return self.capacity - self.size

    def push_with(self, data: bytes, rights: Rights | None) -> None:
        """Append `data`, which must fit; `rights` arrive with its first byte."""
        start = self._pulled + self.size
        self.push(data)
        if rights is not None:
            if self._rights is _NO_RIGHTS:
                self._rights = deque()
            self._rights.append((start, rights))
        self.reader.wake()

    def push_urgent(self, data: bytes, *, inline: bool) -> None:
        """Append `data`, which must fit and whose last byte is urgent."""
        mark = self._pulled + self.size + len(data) - 1
        self.push(data if inline else data[:-1])
        self.mark = mark
        self.urgent = b"" if inline else data[-1:]
        self.reader.wake()

    @property
    def at_mark(self) -> bool:
        """Whether the stream is at the urgent mark."""
        return self.mark == self._pulled

    def _pass_mark(self, mark: int, count: int, peek: bool) -> int:
        """How many bytes may be taken: up to the mark, or past it if the stream is at the mark."""
        if mark > self._pulled:
            return min(count, mark - self._pulled)
        if not peek:
            self.mark, self.urgent = None, b""
        return count

    def take(self, count: int, peek: bool) -> tuple[bytes, Rights | None]:
        """Take up to `count` bytes, and the descriptors sent with the first of them. Bytes of two
        messages with descriptors are not taken together."""
        if self.mark is not None and count:
            count = self._pass_mark(self.mark, count, peek)
        rights = None
        waiting = self._rights
        if waiting:
            start = self._pulled
            first = waiting[0][0]
            if first > start:
                count = min(count, first - start)
            else:
                rights = waiting[0][1]
                if len(waiting) > 1:
                    count = min(count, waiting[1][0] - start)
        data = self.pull(count)
        if peek:
            self.put_back(data)
            return data, None
        self._pulled += len(data)
        if rights is not None:
            waiting.popleft()
        self.writer.wake()
        return data, rights

    def discard(self) -> bool:
        """The reader is gone: drop queued data. True if there was any."""
        unread = self.size > 0
        self.clear()
        while self._rights:
            self._rights.popleft()[1].drop()
        return unread
