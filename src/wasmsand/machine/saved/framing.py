"""The frame of a saved machine.

Owns the outer format, version 1:

    magic       8 bytes
    version     4 bytes, little-endian, like all numbers here
    length      4 bytes, of the header
    header      JSON: what the machine needs, its options, its sessions
    digest      32 bytes: sha256 of everything before it
    body        compressed with the codec that the header names: chunks, each with a kind (1 byte),
                a length (4 bytes) and its data. The last one is `END`, whose data is the sha256 of
                all chunks before it.

Rules: a file is written and read in one pass, so it may be a pipe. A file that is cut off or
changed anywhere is refused: the header by its digest, the body by that of its end.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from typing import IO, Any, Final

from wasmsand.machine.saved.compression import Packer, Unpacker, best_codec
from wasmsand.machine.saved.problems import NewerVersion, StateRejected

MAGIC: Final = b"\x89WSAND\r\n"
VERSION: Final = 1
HEADER_BYTES_MAX: Final = 16 << 20
CHUNK_BYTES_MAX: Final = 64 << 20
FILES, PROCESS, MEMORY, END = b"F", b"S", b"M", b"E"
"""Kinds of chunks: a piece of the disk image; a session; a part of its memory; the end."""
_BEGINNING: Final = struct.Struct("<8sII")
_CHUNK: Final = struct.Struct("<cI")
_DIGEST_BYTES: Final = 32


class FrameWriter:
    """Writes the frame of one file."""

    def __init__(self, stream: IO[bytes], header: dict[str, Any]) -> None:
        codec = best_codec()
        text = json.dumps({**header, "codec": codec}, separators=(",", ":")).encode()
        if len(text) > HEADER_BYTES_MAX:
            raise ValueError(f"the variables and options take more than {HEADER_BYTES_MAX} bytes")
        beginning = _BEGINNING.pack(MAGIC, VERSION, len(text)) + text
        stream.write(beginning + hashlib.sha256(beginning).digest())
        self._packer = Packer(stream, codec)
        self._digest = hashlib.sha256()

    def chunk(self, kind: bytes, data: bytes) -> None:
        """Write one chunk."""
        beginning = _CHUNK.pack(kind, len(data))
        self._digest.update(beginning)
        self._digest.update(data)
        self._packer.write(beginning)
        self._packer.write(data)

    def finish(self) -> None:
        """Write the end."""
        digest = self._digest.digest()
        self._packer.write(_CHUNK.pack(END, len(digest)) + digest)
        self._packer.finish()


def read_header(stream: IO[bytes]) -> dict[str, Any]:
    """The header of a file. Raises `StateRejected`."""
    beginning = _exactly(stream, _BEGINNING.size)
    if not beginning.startswith(MAGIC[: len(beginning)]) or not beginning:
        raise StateRejected("not a saved sandbox")
    if len(beginning) < _BEGINNING.size:
        raise StateRejected("cut short")
    _, version, length = _BEGINNING.unpack(beginning)
    if version > VERSION:
        raise NewerVersion(
            f"saved in format {version}, and this wasmsand knows up to {VERSION}: install a newer "
            "wasmsand"
        )
    if version < 1 or length > HEADER_BYTES_MAX:
        raise StateRejected("damaged: impossible header")
    text, digest = _exactly(stream, length), _exactly(stream, _DIGEST_BYTES)
    if len(text) != length or len(digest) != _DIGEST_BYTES:
        raise StateRejected("cut short")
    if hashlib.sha256(beginning + text).digest() != digest:
        raise StateRejected("damaged: the header does not match its digest")
    return parse_object(text)


def parse_object(text: bytes) -> dict[str, Any]:
    """A JSON object. Raises `StateRejected`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise StateRejected("damaged: not JSON") from None
    if not isinstance(value, dict):
        raise StateRejected("damaged: not an object")
    return value


class FrameReader:
    """Reads the chunks of one body."""

    def __init__(self, stream: IO[bytes], codec: str, most: int) -> None:
        """`most` is the most bytes of the whole body."""
        self._unpacker = Unpacker(stream, codec, most)
        self._digest = hashlib.sha256()
        self._next: tuple[bytes, bytes] | None = None

    def peek(self) -> bytes:
        """The kind of the next chunk."""
        if self._next is None:
            self._next = self._read()
        return self._next[0]

    def take(self, kind: bytes) -> bytes:
        """The data of the next chunk, which must be of this kind."""
        if self.peek() != kind:
            raise StateRejected(f"damaged: a chunk {self.peek()!r} instead of {kind!r}")
        assert self._next is not None
        data = self._next[1]
        self._next = None
        return data

    def pieces(self, kind: bytes) -> Iterator[bytes]:
        """The data of the next chunks, as long as they are of this kind."""
        while self.peek() == kind:
            yield self.take(kind)

    def finish(self) -> None:
        """The next chunk must be the end."""
        self.take(END)

    def _read(self) -> tuple[bytes, bytes]:
        beginning = self._unpacker.read(_CHUNK.size)
        if len(beginning) != _CHUNK.size:
            raise StateRejected("cut short")
        kind, length = _CHUNK.unpack(beginning)
        if length > CHUNK_BYTES_MAX or kind not in (FILES, PROCESS, MEMORY, END):
            raise StateRejected("damaged: impossible chunk")
        data = self._unpacker.read(length)
        if len(data) != length:
            raise StateRejected("cut short")
        if kind == END:
            if data != self._digest.digest():
                raise StateRejected("damaged: the content does not match its digest")
        else:
            self._digest.update(beginning)
            self._digest.update(data)
        return kind, data


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """`size` bytes, or fewer at the end: a pipe may return less than it was asked for."""
    pieces = []
    while size and (piece := stream.read(min(size, 1 << 20))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
