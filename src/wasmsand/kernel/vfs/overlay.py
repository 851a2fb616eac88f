"""OverlayTree: a mounted outside tree whose changes stay in the sandbox.

Owns the copy of what is changed: an inode is copied into the upper layers when its attributes or
names change, and a file's content when it is written. Rules: nothing is ever written outside.
Changes are charged to the sandbox's file system. A directory that was changed here keeps the names
that it had then, whatever the host does; unchanged files in it stay current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import PATH_MAX, Limits
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.vfs.inode import REMOVED, DirectoryInode, FileInode, Inode, SymlinkInode
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree, Layer
from wasmsand.kernel.vfs.lazy_table import OutsideContent
from wasmsand.kernel.vfs.lazy_tree import LazyTree
from wasmsand.kernel.vfs.outside import Facts, OutsideTree, Place
from wasmsand.kernel.vfs.space import Space
from wasmsand.kernel.vfs.store import target_blocks
from wasmsand.kernel.vfs.tree import TreeFs


class OverlayChange(NamedTuple):
    """A path at which the overlay differs from the outside tree."""

    path: bytes
    """Relative to the root of the mount."""
    ino: int | None
    """What is there now; None if nothing."""
    place: Place | None
    """What the outside tree had there when the sandbox looked; None if nothing."""


class OverlayState(NamedTuple):
    """An overlay at one moment, from which another one can be made."""

    tree: FrozenTree
    """The changes; the lowest layer is not used."""
    view: Layer
    places: Mapping[int, Place]


class OverlayTree(LazyTree):
    """A copy-on-write view of an outside tree."""

    type_name = "overlay"
    has_unnamed_files = True

    def __init__(
        self,
        outside: OutsideTree,
        limits: Limits,
        now_ns: Callable[[], int],
        space: Space,
        state: OverlayState | None = None,
    ) -> None:
        """`space` is that of the sandbox's file system, which pays for changes. With `state`, the
        tree continues from there; `space` has been charged for it."""
        super().__init__(outside, limits, now_ns, None if state is None else state.tree)
        self.space = space
        if state is not None:
            self._restore(state)

    def overlay_state(self) -> OverlayState:
        """The current state. Takes time in proportion to the part of the tree that was looked
        at."""
        view, places = _copy_of_view(self._lower, self._places)
        return OverlayState(self.freeze(), view, places)

    def _restore(self, state: OverlayState) -> None:
        view, places = _copy_of_view(state.view, state.places)
        self._lower.update(view)
        old_root, root = places[ROOT_INO], self._outside.root
        root.listed = old_root.listed
        for ino, place in places.items():
            if place.parent is old_root:
                place.parent = root
            self._numbers[place.facts.key] = ino
            if place.is_loaded:
                self._loaded[ino] = None
        self._places = {**places, ROOT_INO: root}
        for inode in view.values():
            if isinstance(inode, DirectoryInode):
                for child, _ in inode.entries.values():
                    self._names[child] = self._names.get(child, 0) + 1

    # Content: a file is copied before its first write.

    def _copy_up(self, ino: int, *, empty: bool = False) -> None:
        content = self._file(ino).content
        if type(content) is not OutsideContent:
            return
        free = self.space.free_blocks() * 4096
        if empty or not content.size:
            copy = FileContent()
        else:
            if content.size > free:
                raise self.space.full()
            try:
                copy = self._outside.whole(self._places[ino], free)
            except KernelError as error:
                if error.errno is Errno.EFBIG:
                    raise self.space.full() from None
                raise
        if type(self._file(ino).content) is not OutsideContent:
            return  # copied by another call meanwhile
        self.space.take_blocks(copy.blocks)
        inode = self._table.own(ino)
        assert isinstance(inode, FileInode)
        inode.content, inode.owns_content = copy, True

    def take(self, ino: int) -> None:
        """Make a copy of an object that does not need the outside tree any more. The entries of a
        directory are not copied."""
        inode = self._get(ino)
        if isinstance(inode, FileInode):
            self._copy_up(ino)
        elif isinstance(inode, DirectoryInode):
            self._current(ino)
        self._table.own(ino)

    def write(self, ino: int, offset: int, data: Data) -> int:
        self._copy_up(ino)
        return super().write(ino, offset, data)

    def truncate(self, ino: int, size: int) -> None:
        self._copy_up(ino, empty=size == 0)
        super().truncate(ino, size)

    def allocate(self, ino: int, offset: int, length: int, *, keep_size: bool) -> None:
        self._copy_up(ino)
        super().allocate(ino, offset, length, keep_size=keep_size)

    def punch_hole(self, ino: int, offset: int, length: int) -> None:
        self._copy_up(ino)
        super().punch_hole(ino, offset, length)

    def replace_content(self, ino: int, content: FileContent) -> None:
        self._copy_up(ino, empty=True)
        super().replace_content(ino, content)

    # Names: a directory is loaded before its names change.

    def _insert(self, parent: int, name: bytes, inode: Inode) -> int:
        self._current(parent)
        return super()._insert(parent, name, inode)

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        self._current(parent)
        return super().mkdir(parent, name, mode, uid, gid)

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        self._current(parent)
        return super().symlink(parent, name, target, uid, gid)

    def link(self, ino: int, parent: int, name: bytes) -> None:
        self._current(parent)
        super().link(ino, parent, name)

    def unlink(self, parent: int, name: bytes) -> None:
        self._current(parent)
        super().unlink(parent, name)

    def rmdir(self, parent: int, name: bytes) -> None:
        self._current(parent)
        self._current(self._entry(parent, name))
        super().rmdir(parent, name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        self._current(parent)
        replaced = self._current(new_parent).entries.get(new_name)
        if replaced is not None and isinstance(self._get(replaced[0]), DirectoryInode):
            self._current(replaced[0])
        super().rename(parent, name, new_parent, new_name)

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        self._current(parent)
        self._current(other_parent)
        super().exchange(parent, name, other_parent, other_name)

    # What the host changes does not undo what was changed here.

    def _see_entry(
        self, ino: int, directory: DirectoryInode, name: bytes, facts: Facts | None, at: float
    ) -> None:
        old = directory.entries.get(name)
        is_lost = old is not None and (facts is None or self._numbers.get(facts.key) != old[0])
        if is_lost and self._has_changes(directory.entries[name][0]):
            return
        super()._see_entry(ino, directory, name, facts, at)

    def _has_changes(self, ino: int) -> bool:
        return self._view.is_changed(ino) or ino in self._directories_with_changes()

    def release(self, ino: int) -> None:
        TreeFs.release(self, ino)
        place = self._places.get(ino)
        if place is not None and ino not in self._users:
            self._outside.release(place)

    def give_back_space(self) -> None:
        """The tree is no longer used: free what its changes were charged."""
        newest: Layer = {}
        for layer in reversed((self._table.top, *self._view.upper_layers)):
            newest.update(layer)
        for ino, inode in newest.items():
            if inode is REMOVED:
                continue
            if isinstance(inode, FileInode):
                self.space.give_blocks(inode.content.blocks)
            elif isinstance(inode, SymlinkInode) and self._table.is_charged(ino):
                self.space.give_blocks(target_blocks(inode.target))
            names = 1 if isinstance(inode, DirectoryInode) else inode.nlink
            if self._table.is_charged(ino):
                self.space.used_inodes -= names
            elif not isinstance(inode, DirectoryInode):
                self.space.used_inodes -= max(0, names - self._table.image_links(ino))

    # What differs from the outside tree.

    def place_of(self, ino: int) -> Place | None:
        """Where an inode is outside; None if it was created in the sandbox."""
        return self._places.get(ino)

    def seen(self, names: tuple[bytes, ...]) -> tuple[bool, Facts | None]:
        """What the sandbox has seen at a path of the outside tree; first whether it has looked."""
        ino = ROOT_INO
        for name in names:
            directory, place = self._lower.get(ino), self._places.get(ino)
            if not isinstance(directory, DirectoryInode):
                return True, None
            if place is None or not place.is_loaded:
                return False, None
            entry = directory.entries.get(name)
            if entry is None:
                return True, None
            ino = entry[0]
        found = self._places.get(ino)
        return found is not None, None if found is None else found.facts

    def changes(self) -> Iterator[OverlayChange]:
        """Every path at which something was added, changed or removed: a directory before its
        entries. What is below an added or removed directory is not listed. The lock is held
        throughout: only changed inodes and the directories above them are visited."""
        concerned = self._directories_with_changes()
        waiting = [(b"", ROOT_INO)]
        while waiting:
            prefix, ino = waiting.pop()
            directory = self._directory(ino)
            before = self._lower[ino]
            assert isinstance(before, DirectoryInode)
            old = before.entries
            for name in sorted(old.keys() - directory.entries.keys()):
                yield OverlayChange(prefix + name, None, self._places.get(old[name][0]))
            below = []
            for name, (child, _) in sorted(directory.entries.items()):
                path = prefix + name
                if len(path) >= PATH_MAX:
                    continue
                entry = old.get(name)
                if entry is None or entry[0] != child:
                    place = None if entry is None else self._places.get(entry[0])
                    yield OverlayChange(path, child, place)
                    continue
                is_directory = isinstance(self._get(child), DirectoryInode)
                if self._view.is_changed(child):
                    yield OverlayChange(path, child, self._places[child])
                if is_directory and child in concerned:
                    below.append((path + b"/", child))
            waiting.extend(reversed(below))

    def _directories_with_changes(self) -> set[int]:
        """Every directory of the view below which an inode was changed."""
        found: set[int] = set()
        for layer in (self._table.top, *self._view.upper_layers):
            for number in layer:
                ino = number
                while ino in self._lower and ino not in found:
                    if isinstance(self._lower[ino], DirectoryInode):
                        found.add(ino)
                    ino = self._lower[ino].parent
        return found


def _copy_of_view(view: Layer, places: Mapping[int, Place]) -> tuple[Layer, dict[int, Place]]:
    """A view that changes independently. Nothing in it counts as current."""
    copies = {place: place.doubted_copy() for place in places.values()}
    for copy in copies.values():
        if copy.parent is not None:
            copy.parent = copies.get(copy.parent, copy.parent)
    return (
        {ino: inode.copy() for ino, inode in view.items()},
        {ino: copies[place] for ino, place in places.items()},
    )
