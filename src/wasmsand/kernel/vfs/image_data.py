"""File content that comes with an image.

Owns `ImageData`. Rules: it never changes, and all sandboxes share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Sliceable(Protocol):
    """bytes, a memoryview of bytes, or a mapped file."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


class ImageData:
    """Immutable bytes of an image, possibly loaded on first use. Shared by all sandboxes; if two
    load at once, both succeed and one result is kept."""

    __slots__ = ("_data", "load", "size")

    def __init__(self, size: int, source: Sliceable | Callable[[], Sliceable]) -> None:
        self.size = size
        self._data: Sliceable | None = None
        self.load: Callable[[], Sliceable] | None = None
        """Gets the bytes, if they are not there from the start."""
        if callable(source):
            self.load = source
        else:
            self._data = source

    @property
    def is_loaded(self) -> bool:
        """Whether the bytes are in memory."""
        return self._data is not None

    def slice(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, which must be within the data."""
        data = self._data
        if data is None:
            assert self.load is not None
            data = self.load()
            if len(data) != self.size:
                raise ValueError(f"image data has {len(data)} bytes, not {self.size}")
            self._data = data
        return bytes(data[start:stop])
