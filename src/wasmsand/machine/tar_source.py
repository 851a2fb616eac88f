"""The input of the tar reader: pieces of bytes, plain or gzip-compressed, with a size limit.

Owns `PieceSource`, `Unpacked`, `Bounded` and `unpacked`. Rules: `read` returns as many bytes as
requested, and fewer only at the end. A source holds no more than its current piece and the
requested bytes, so a small archive that unpacks to a huge size costs no memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine.tar_format import ArchiveRejected

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_PACKED_PIECE: Final = 65536


class Source(Protocol):
    """Where an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """Read `size` bytes; fewer only at the end."""


class PieceSource:
    """Reads from pieces of bytes of any sizes."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterator[bytes | memoryview] = iter(pieces)
        self._rest = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        """See `Source`."""
        if size <= len(self._rest):
            data = bytes(self._rest[:size])
            self._rest = self._rest[size:]
            return data
        taken = bytearray(self._rest)
        while len(taken) < size:
            piece = next(self._pieces, None)
            if piece is None:
                self._rest = memoryview(b"")
                return bytes(taken)
            self._rest = memoryview(piece)
            count = size - len(taken)
            taken += self._rest[:count]
            self._rest = self._rest[count:]
        return bytes(taken)

    def push_back(self, data: bytes) -> None:
        """Make `data` the next bytes to read."""
        self._pieces = chain((self._rest,), self._pieces)
        self._rest = memoryview(data)


class Unpacked:
    """Decompresses another source; it may consist of several gzip members."""

    def __init__(self, packed: Source) -> None:
        self._packed = packed
        self._inflate = zlib.decompressobj(_GZIP_FORMAT)
        self._input = b""

    def read(self, size: int, /) -> bytes:
        """See `Source`."""
        taken = bytearray()
        while len(taken) < size:
            if self._inflate.eof and not self._next_part():
                break
            if not self._input:
                self._input = self._packed.read(_PACKED_PIECE)
                if not self._input:
                    raise ArchiveRejected("the gzip data is cut short")
            try:
                taken += self._inflate.decompress(self._input, size - len(taken))
            except zlib.error as error:
                raise ArchiveRejected(f"bad gzip data: {error}") from None
            self._input = self._inflate.unconsumed_tail or self._inflate.unused_data
        return bytes(taken)

    def _next_part(self) -> bool:
        """Start the next gzip member; zeros between members are skipped."""
        while True:
            self._input = self._input.lstrip(b"\0")
            if self._input:
                break
            self._input = self._packed.read(_PACKED_PIECE)
            if not self._input:
                return False
        self._inflate = zlib.decompressobj(_GZIP_FORMAT)
        return True


class Bounded:
    """Another source, limited to `most` bytes."""

    def __init__(self, source: Source, most: int) -> None:
        self._source = source
        self._left = most

    def read(self, size: int, /) -> bytes:
        """See `Source`. ENOSPC beyond the limit."""
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise KernelError(
                Errno.ENOSPC, "the archive holds more than the file system; raise fs_limit_bytes"
            )
        return data


def unpacked(pieces: Iterable[bytes]) -> Source:
    """The bytes of an archive, decompressed if they are gzip data."""
    source = PieceSource(pieces)
    start = source.read(len(_GZIP_MAGIC))
    source.push_back(start)
    return Unpacked(source) if start == _GZIP_MAGIC else source
