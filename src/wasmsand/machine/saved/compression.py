"""Compression of saved machines: zstd, or zlib where Python has no zstd.

Owns `Packer` and `Unpacker`. Rules: an unpacker never returns more than it was asked for, so a
small file cannot make the host allocate a large buffer. A damaged stream raises `StateRejected`.
"""

from __future__ import annotations

import sys
import zlib
from types import ModuleType
from typing import IO, Any, Final, Protocol

from wasmsand.machine.saved.problems import StateRejected

ZSTD, ZLIB = "zstd", "zlib"
_ZSTD_LEVEL: Final = 1
"""Saves the memory of Python a third faster than level 3, and in no more bytes."""
_ZLIB_LEVEL: Final = 1
_WINDOW_LOG_MAX: Final = 27
"""The largest window that a zstd stream may need: 128 MiB."""
_READ: Final = 256 * 1024


def _find_zstd() -> ModuleType | None:
    """The module of Python 3.14, or the same one as a package for older versions."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    found: ModuleType = zstd
    return found


_zstd: Any = _find_zstd()


def best_codec() -> str:
    """The codec with which this host saves."""
    return ZLIB if _zstd is None else ZSTD


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class Packer:
    """Compresses to a stream."""

    def __init__(self, stream: IO[bytes], codec: str) -> None:
        self._stream = stream
        self._compressor: _Compressor
        if codec == ZSTD:
            self._compressor = _zstd.ZstdCompressor(level=_ZSTD_LEVEL)
        else:
            self._compressor = zlib.compressobj(_ZLIB_LEVEL)

    def write(self, data: bytes) -> None:
        """Compress `data`."""
        packed = self._compressor.compress(data)
        if packed:
            self._stream.write(packed)

    def finish(self) -> None:
        """Write what is left."""
        self._stream.write(self._compressor.flush())


class Unpacker:
    """Decompresses from a stream, up to a total size."""

    def __init__(self, stream: IO[bytes], codec: str, most: int) -> None:
        """`most` is the most bytes of the result."""
        self._stream = stream
        self._left = most
        self._most = most
        self._ready = b""
        self._failures: tuple[type[Exception], ...] = (zlib.error,)
        if codec == ZLIB:
            self._next = _zlib_reader(stream)
        elif codec != ZSTD:
            raise StateRejected(f"unknown compression {codec[:20]!r}")
        elif _zstd is None:
            raise StateRejected(
                "compressed with zstd, which this Python lacks: install the package "
                "`backports.zstd`, or use Python 3.14"
            )
        else:
            self._next = _zstd_reader(stream)
            self._failures = (_zstd.ZstdError, EOFError)

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, or fewer at the end."""
        pieces, wanted = [], size
        while wanted:
            piece = self._ready or self._unpack(wanted)
            if not piece:
                break
            self._ready = piece[wanted:]
            pieces.append(piece[:wanted])
            wanted -= len(pieces[-1])
        return b"".join(pieces)

    def _unpack(self, size: int) -> bytes:
        try:
            piece = self._next(max(size, 1))
        except self._failures as error:
            raise StateRejected(f"damaged: {error}") from None
        self._left -= len(piece)
        if self._left < 0:
            raise StateRejected(f"unpacks to more than {self._most} bytes")
        return piece


class _NextPiece(Protocol):
    def __call__(self, most: int, /) -> bytes:
        """Up to `most` bytes; empty at the end."""


def _zlib_reader(stream: IO[bytes]) -> _NextPiece:
    unpacker = zlib.decompressobj()

    def read(most: int) -> bytes:
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail or stream.read(_READ)
            if not packed:
                return b""  # the frame notices that it is cut short
            piece = unpacker.decompress(packed, most)
            if piece:
                return piece
        return b""

    return read


def _zstd_reader(stream: IO[bytes]) -> _NextPiece:
    window = {_zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
    unpacker = _zstd.ZstdDecompressor(options=window)

    def read(most: int) -> bytes:
        while not unpacker.eof:
            packed = stream.read(_READ) if unpacker.needs_input else b""
            if unpacker.needs_input and not packed:
                return b""  # the frame notices that it is cut short
            piece: bytes = unpacker.decompress(packed, most)
            if piece:
                return piece
        return b""

    return read
