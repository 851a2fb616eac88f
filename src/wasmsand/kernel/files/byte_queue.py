"""A queue of bytes, stored in pieces: the buffer of pipes and stream sockets.

Owns `ByteQueue`. Rules: taking bytes copies only those taken. Small pieces are joined, so that a
guest that writes single bytes does not cost the host an object for each. A piece that was mostly
taken is cut, so that its last byte does not keep it in memory. Queued bytes are charged to the
sandbox's ledger.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno
from wasmsand.kernel.ledger import Ledger

_JOIN_BELOW: Final = 4096
_CUT_FROM: Final = 512


class ByteQueue:
    """Bytes in the order they were pushed."""

    __slots__ = ("_chunks", "_ledger", "_taken", "size")

    refusal: ClassVar[Errno] = Errno.ENOBUFS
    """The error of `push` when the sandbox's memory is used up."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._chunks: deque[bytes] = deque()
        self._taken = 0  # bytes of the first chunk
        self.size = 0

    def push(self, data: bytes) -> None:
        """Append `data`."""
        size = len(data)
        ledger = self._ledger  # `Ledger.add_queued`, inlined for speed
        if ledger.objects + ledger.queued + size > ledger.kernel_max:
            ledger.require(size, self.refusal)
        ledger.queued += size
        chunks = self._chunks
        if chunks and len(chunks[-1]) + size <= _JOIN_BELOW:
            chunks[-1] += data
        else:
            chunks.append(data)
        self.size += size

    def pull(self, count: int) -> bytes:
        """Take up to `count` bytes from the front."""
        parts: list[bytes] = []
        left = min(count, self.size)
        self.size -= left
        self._ledger.queued -= left
        while left:
            first = self._chunks[0]
            end = self._taken + left
            if end < len(first):
                parts.append(first[self._taken : end])
                self._taken = end
                if end >= _CUT_FROM and end * 2 >= len(first):
                    self._chunks[0] = first[end:]
                    self._taken = 0
                break
            parts.append(first[self._taken :])
            left = end - len(first)
            self._taken = 0
            self._chunks.popleft()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def length_until(self, count: int, delimiter: int) -> int:
        """The number of bytes from the front up to the first `delimiter`, at most `count`."""
        start, length = self._taken, 0
        for chunk in self._chunks:
            end = min(len(chunk), start + count - length)
            found = chunk.find(delimiter, start, end)
            if found >= 0:
                return length + found + 1 - start
            length += end - start
            if length >= count:
                break
            start = 0
        return length

    def content(self) -> bytes:
        """Everything in the queue, which stays there."""
        whole = b"".join(self._chunks)
        return whole[self._taken :]

    def put_back(self, data: bytes) -> None:
        """Undo a `pull`: make these bytes the next ones to be taken."""
        if data:
            if self._taken:
                self._chunks[0] = self._chunks[0][self._taken :]
                self._taken = 0
            self._chunks.appendleft(data)
            self.size += len(data)
            self._ledger.queued += len(data)

    def clear(self) -> None:
        """Drop everything."""
        self._ledger.queued -= self.size
        self._chunks.clear()
        self._taken = self.size = 0
