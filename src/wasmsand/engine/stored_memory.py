"""Files with the memory of programs that have prepared themselves.

Owns `StoredMemory`, which describes such a file, and reading it. Rules: a file is used only after
its content was checked against its hash, because instances would run with whatever it holds. The
file is the memory from address `first` on, in whole WebAssembly pages; everything beyond its end is
zero. `first` is a multiple of such a page, so every host can map the file as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from wasmsand.engine.protocol import ModuleRejected, Start

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class StoredMemory:
    """One file, and how instances start with it."""

    path: Path
    sha256: str
    size: int
    """Bytes of the file."""
    first: int
    """The address of its first byte."""
    start: Start

    def pieces(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The content of the open file. Raises `ModuleRejected` at the end if it is not what was
        stored."""
        digest, left = hashlib.sha256(), self.size
        while left and (piece := stream.read(min(left, _PIECE_BYTES))):
            digest.update(piece)
            left -= len(piece)
            yield piece
        if left or stream.read(1) or digest.hexdigest() != self.sha256:
            raise ModuleRejected(f"{self.path} does not match its hash: reinstall the package")

    def read(self) -> bytes:
        """The checked content. Raises `ModuleRejected`."""
        try:
            with self.path.open("rb") as stream:
                return b"".join(self.pieces(stream))
        except OSError as error:
            raise unreadable(self, error) from None


def unreadable(stored: StoredMemory, error: OSError) -> ModuleRejected:
    """The error for a file that cannot be read."""
    return ModuleRejected(f"{stored.path}: {error.strerror or error}: reinstall the package")
