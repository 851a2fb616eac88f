"""A queue of bytes in pieces: what pipes and stream sockets hold between writer and reader.

Owns `ByteQueue`. Rules: taking bytes copies only those taken; small pieces are joined, so
that a guest that writes byte by byte does not cost the host an object for each.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_JOIN_BELOW: Final = 4096


class ByteQueue:
    """Bytes in the order they were pushed."""

    __slots__ = ("_chunks", "_taken", "size")

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._taken = 0  # of the first chunk
        self.size = 0

    def push(self, data: bytes) -> None:
        """Append `data`."""
        chunks = self._chunks
        if chunks and len(chunks[-1]) + len(data) <= _JOIN_BELOW:
            chunks[-1] += data
        else:
            chunks.append(data)
        self.size += len(data)

    def pull(self, count: int) -> bytes:
        """Take up to `count` bytes from the front."""
        parts: list[bytes] = []
        left = min(count, self.size)
        self.size -= left
        while left:
            first = self._chunks[0]
            end = self._taken + left
            if end < len(first):
                parts.append(first[self._taken : end])
                self._taken = end
                break
            parts.append(first[self._taken :])
            left = end - len(first)
            self._taken = 0
            self._chunks.popleft()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def put_back(self, data: bytes) -> None:
        """Undo a `pull`: these bytes are the next ones to be taken."""
        if data:
            if self._taken:
                self._chunks[0] = self._chunks[0][self._taken :]
                self._taken = 0
            self._chunks.appendleft(data)
            self.size += len(data)

    def clear(self) -> None:
        """Drop everything."""
        self._chunks.clear()
        self._taken = self.size = 0
