"""What a lazy tree stores: inodes over a view of an outside tree.

Owns `LazyTable`, `OutsideContent` and `Loading`. Rules: the lowest layer of the table is the view;
it changes when the outside tree does. An inode in a layer above is the sandbox's own version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.layers import InodeTable, Layer
from wasmsand.kernel.vfs.outside import Facts


class OutsideContent(FileContent):
    """The content of a file that is outside: only its size is known here."""

    __slots__ = ("_outside_blocks",)

    def __init__(self, size: int, blocks: int) -> None:
        super().__init__()
        self.size = self.image_end = size
        self._outside_blocks = blocks

    def stat_blocks(self) -> int:
        return self._outside_blocks


class LazyTable(InodeTable):
    """An inode table whose lowest layer is the view of an outside tree."""

    def image_links(self, ino: int) -> int:
        inode = self._image.get(ino)
        return inode.nlink if inode is not None else 0

    @property
    def upper_layers(self) -> tuple[Layer, ...]:
        """The frozen layers above the view."""
        return self._layers[:-1]

    def is_changed(self, ino: int) -> bool:
        """Whether the sandbox has a version of its own of this inode."""
        return ino in self.top or any(ino in layer for layer in self._layers[:-1])


class Loading(NamedTuple):
    """A directory whose names are being brought into the tree."""

    facts: Facts
    at: float
    """When they were true."""
    names: Iterator[tuple[bytes, Facts | None]]
    """Those that are left; None for a name that is gone."""
