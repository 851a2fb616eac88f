"""The inode table of a tree, in layers, and its frozen form.

Owns `InodeTable`, `FrozenTree` and `SharedTree`. A table is a private top layer over frozen ones;
the last layer is the image that all sandboxes share. Rules: a frozen layer never changes, so any
number of tables may use it. An inode is copied into the top layer before its first change. Inode
numbers are never reused. Freezing is O(1): the top becomes a frozen layer. Merging layers takes
longer but needs only frozen ones, so it is done without the lock (`FrozenTree.merged`), and the
table is then switched to the result.

A shared tree is a frozen tree outside the layers, which is attached to a table in constant time.
Its inode numbers are unique in this process, so any number of tables may use the same one; they
are found by their upper bits. Like inodes of the image, its inodes are not charged.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.inode import REMOVED, Inode

Layer = dict[int, Inode]

ROOT_INO: Final = 1
_SHARED_BITS: Final = 24
"""A shared tree has at most 2**24 inodes."""
_FIRST_SHARED: Final = 1 << 40 - _SHARED_BITS
SHARED_INO: Final = _FIRST_SHARED << _SHARED_BITS
"""Inode numbers from here on belong to shared trees."""
_shared_numbers: Final = itertools.count(_FIRST_SHARED)
LAYERS_MAX: Final = 8
"""A longer chain should be merged, because every layer slows down inode look-ups."""


@dataclass(frozen=True, slots=True)
class FrozenTree:
    """A tree at one moment: immutable, shared, the base of any number of trees."""

    layers: tuple[Layer, ...]
    next_ino: int
    image_end: int
    """Inode numbers below this belong to the image and are not charged."""
    used_blocks: int = 0
    used_inodes: int = 0
    orphans: frozenset[int] = frozenset()
    """Inodes without a name that were open: a tree made from this one drops them."""
    held: frozenset[int] = frozenset()
    """Inodes without a name that are kept: whoever creates a tree from this one opens them."""
    shared: Mapping[int, Layer] = field(default_factory=dict)
    """The shared trees that were attached, by number."""

    @property
    def is_long(self) -> bool:
        """Whether it has so many layers that they should be merged."""
        return len(self.layers) > LAYERS_MAX

    def merged(self) -> FrozenTree:
        """The same tree in two layers: the image, and everything that differs from it."""
        merged: Layer = {}
        for layer in reversed(self.layers[:-1]):
            merged.update(layer)
        changes = {
            ino: inode
            for ino, inode in merged.items()
            if inode is not REMOVED or ino < self.image_end
        }
        return replace(self, layers=(changes, self.layers[-1]))


@dataclass(frozen=True, slots=True)
class SharedTree:
    """A frozen tree that can be attached to any number of tables."""

    inodes: Layer
    root_ino: int

    @property
    def number(self) -> int:
        """The upper bits of its inode numbers."""
        return self.root_ino >> _SHARED_BITS


def new_shared_root() -> int:
    """The inode number for the root of a new shared tree; its other inodes have the next ones."""
    return next(_shared_numbers) << _SHARED_BITS


class InodeTable:
    """Maps inode numbers to inodes."""

    __slots__ = ("_frozen_end", "_image", "_layers", "image_end", "next_ino", "shared", "top")

    def __init__(self, base: FrozenTree) -> None:
        self.top: Layer = {}
        self._layers = base.layers
        self._image = base.layers[-1]
        self._frozen_end = base.next_ino
        self.next_ino = base.next_ino
        self.image_end = base.image_end
        self.shared = base.shared

    def get(self, ino: int) -> Inode:
        """The current version, for reading only."""
        inode = self.top.get(ino)
        if inode is None:
            for layer in self._layers:
                inode = layer.get(ino)
                if inode is not None:
                    break
            else:
                inode = self._shared_inode(ino)
        if inode is REMOVED:
            raise KernelError(Errno.ENOENT, f"inode {ino} was removed")
        return inode

    def _shared_inode(self, ino: int) -> Inode:
        return self.shared.get(ino >> _SHARED_BITS, {}).get(ino, REMOVED)

    def attach(self, tree: SharedTree) -> None:
        """Let the table find the inodes of a shared tree. EEXIST if it was attached before, even if
        it was removed since: the table has changed versions of its inodes."""
        if tree.number in self.shared:
            raise KernelError(Errno.EEXIST)
        self.shared = {**self.shared, tree.number: tree.inodes}

    def is_charged(self, ino: int) -> bool:
        """Whether an inode is charged: those of the image and of shared trees are not."""
        return self.image_end <= ino < SHARED_INO

    def own(self, ino: int) -> Inode:
        """The current version in the top layer, copied there first if necessary."""
        inode = self.top.get(ino)
        if inode is None or inode is REMOVED:
            inode = self.top[ino] = self.get(ino).copy()
        return inode

    def add(self, inode: Inode) -> int:
        """Store a new inode and return its number."""
        ino = self.next_ino
        self.next_ino = ino + 1
        self.top[ino] = inode
        return ino

    def remove(self, ino: int) -> None:
        """Remove an inode."""
        if ino < self._frozen_end or ino >= SHARED_INO:
            self.top[ino] = REMOVED
        else:
            del self.top[ino]

    def image_links(self, ino: int) -> int:
        """How many names an inode has in the image or a shared tree; 0 for a newer inode."""
        if ino >= SHARED_INO:
            return self._shared_inode(ino).nlink
        return self._image[ino].nlink if ino < self.image_end else 0

    def freeze(self) -> tuple[Layer, ...]:
        """Make the top a frozen layer and continue with an empty one."""
        if self.top:
            self._layers = (self.top, *self._layers)
            self.top = {}
            self._frozen_end = self.next_ino
        return self._layers

    def stand_on(self, layers: tuple[Layer, ...], instead_of: tuple[Layer, ...]) -> None:
        """Use `layers`, which have the same content, in place of the layers `instead_of`. Do
        nothing if the table no longer uses those."""
        above = len(self._layers) - len(instead_of)
        lower = self._layers[above:] if above >= 0 else ()
        if len(lower) == len(instead_of) and all(map(is_, lower, instead_of)):
            self._layers = (*self._layers[:above], *layers)
