"""LazyTree: a mounted tree of files outside the sandbox, read when it is needed.

Owns the view of an outside tree: which of its directories are loaded, how current they are, and
what of the files' content is kept. Rules: mounting takes constant time; a directory is read when a
name in it is first wanted, and looked at again when what is known of it is older than
`OutsideTree.since` allows. The view is the lowest layer of the tree; inodes there have the numbers
of the host, so that they stay the same. At most MOUNT_NAMES_MAX names and MOUNT_CACHE_BYTES of
content are kept: directories that nobody uses are forgotten first. What is open, changed, or has
something mounted on it is never forgotten.

This class is the read-only mount; `overlay` and `write_through` build on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container
from itertools import chain
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import (
    MOUNT_CACHE_BYTES,
    MOUNT_LOOKS_MAX,
    MOUNT_NAMES_MAX,
    MOUNT_WINDOW,
    Limits,
)
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Attributes
from wasmsand.kernel.vfs.inode import DirectoryInode, FileInode, Inode, SpecialInode, SymlinkInode
from wasmsand.kernel.vfs.layers import ROOT_INO, SHARED_INO, FrozenTree, Layer
from wasmsand.kernel.vfs.lazy_table import LazyTable, Loading, OutsideContent
from wasmsand.kernel.vfs.model import DirEntry, Stat
from wasmsand.kernel.vfs.outside import Facts, Key, Listing, OutsideTree, Place
from wasmsand.kernel.vfs.tree import TreeFs

_NUMBER_MASK: Final = (1 << 47) - 1


class LazyTree(TreeFs):
    """A read-only view of an outside tree."""

    type_name = "hostfs"
    has_unnamed_files = False

    def __init__(
        self, outside: OutsideTree, limits: Limits, now_ns: Callable[[], int],
        base: FrozenTree | None = None,
    ) -> None:  # fmt: skip
        """`base` continues from an earlier tree of this kind: its upper layers are the changes."""
        self._outside = outside
        root = outside.root
        lower: Layer = {}
        upper = base.layers[:-1] if base is not None else ()
        first = FrozenTree((*upper, lower), base.next_ino if base else 2, 2)
        super().__init__(first, limits, now_ns)
        self._table = self._view = LazyTable(first)
        self._get = self._table.get
        self._lower = lower
        self._places: dict[int, Place] = {ROOT_INO: root}
        self._numbers: dict[Key, int] = {root.facts.key: ROOT_INO}
        self._names: dict[int, int] = {}
        """How many names in loaded directories refer to an inode."""
        self._loaded: OrderedDict[int, None] = OrderedDict()
        """Loaded directories, the one used least recently first."""
        self._loading: dict[int, Loading] = {}
        """Directories whose names are being brought into the tree."""
        self._windows: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._window_bytes = 0
        self._put(ROOT_INO, root.facts)
        lower[ROOT_INO].parent = ROOT_INO

    # The view.

    def _put(self, ino: int, facts: Facts) -> Inode:
        """Store what is known about an outside object in the lowest layer."""
        kind, old = facts.mode & S_IFMT, self._lower.get(ino)
        inode: Inode
        if kind == S_IFDIR:
            inode = old if isinstance(old, DirectoryInode) else DirectoryInode(0, 0, 0, 0)
        elif kind == S_IFLNK:
            inode = SymlinkInode(facts.mode, facts.uid, facts.gid, 0, facts.target)
        elif kind == S_IFREG:
            if isinstance(old, FileInode) and old.content.size == facts.size:
                inode = old
            else:
                content = OutsideContent(facts.size, facts.blocks)
                inode = FileInode(facts.mode, facts.uid, facts.gid, 0, content)
        else:
            inode = SpecialInode(facts.mode, facts.uid, facts.gid, 0)
        inode.mode, inode.uid, inode.gid = facts.mode, facts.uid, facts.gid
        inode.nlink = facts.nlink
        inode.atime, inode.mtime, inode.ctime = facts.atime_ns, facts.mtime_ns, facts.ctime_ns
        inode.btime = facts.ctime_ns
        if old is not None and inode is not old:
            inode.parent, inode.name = old.parent, old.name
        self._lower[ino] = inode
        return inode

    def _adopt(self, parent: int, name: bytes, facts: Facts, checked: float) -> int:
        """The inode number for an outside object that is (or is now) `name` in `parent`."""
        above = self._places[parent]
        ino = self._numbers.get(facts.key)
        if ino is None:
            ino = SHARED_INO + (facts.key[1] & _NUMBER_MASK)
            while ino in self._lower or self._view.is_changed(ino):
                ino += 1 << 47
            self._numbers[facts.key] = ino
        place = self._places.get(ino)
        if place is None:
            self._places[ino] = Place(above, name, facts, checked)
        elif (place.facts.mode ^ facts.mode) & S_IFMT:  # the host has reused the number
            self._forget(ino)
            return self._adopt(parent, name, facts, checked)
        elif not self._view.is_changed(ino):  # else remember what the sandbox has changed
            self._learn_facts(ino, place, facts, checked)
            if not place.pinned:
                place.parent, place.name = above, name
        if not self._view.is_changed(ino):
            inode = self._put(ino, facts)
            inode.parent, inode.name = parent, name
        return ino

    def _learn_facts(self, ino: int, place: Place, facts: Facts, checked: float) -> None:
        if facts.mode & S_IFMT == S_IFREG and not place.facts.same_content(facts):
            self._drop_windows(ino)
        place.facts, place.checked = facts, checked

    def _update(self, ino: int, place: Place, facts: Facts) -> None:
        """An object has new facts."""
        self._learn_facts(ino, place, facts, self._outside.seen_at())
        if not self._view.is_changed(ino):
            self._put(ino, facts)

    def _forget(self, ino: int) -> None:
        """Drop an unchanged inode from the view."""
        place = self._places.pop(ino, None)
        if place is not None:
            self._numbers.pop(place.facts.key, None)
        self._loaded.pop(ino, None)
        self._loading.pop(ino, None)
        self._scans.pop(ino, None)
        self._drop_windows(ino)
        self._lower.pop(ino, None)

    def _drop_windows(self, ino: int) -> None:
        for key in [key for key in self._windows if key[0] == ino]:
            self._window_bytes -= len(self._windows.pop(key))

    # Loading directories.

    def _current(self, ino: int, name: bytes | None = None) -> DirectoryInode:
        """A directory with its names, current enough for the present call. If `name` is given,
        what it refers to is current too."""
        place = self._places.get(ino)
        if place is None:  # created in the sandbox
            return self._directory(ino)
        changed = self._view.is_changed(ino)
        try:
            if ino in self._loading:
                self._go_on_loading(ino, place)
            elif not place.is_loaded:
                self._directory(ino)
                self._load(ino, place, self._outside.list(place, None, ()))
            elif not changed and not place.pinned:
                self._look_again(ino, place, name)
        except KernelError:
            if place.parent is not None and not place.parent.pinned:
                place.parent.doubt()  # it may have been replaced on the host
            raise
        self._loaded[ino] = None
        self._loaded.move_to_end(ino)
        directory = self._directory(ino)
        if name is not None and changed:
            entry = directory.entries.get(name)
            if entry is not None:
                self._recheck(entry[0])
        return directory

    def _look_again(self, ino: int, place: Place, name: bytes | None) -> None:
        since = self._outside.since()
        entries = self._directory(ino).entries
        child = None if name is None else entries.get(name)
        below = None if child is None else self._places.get(child[0])
        if place.listed_at >= since and (below is None or below.checked >= since):
            return
        if len(entries) <= MOUNT_LOOKS_MAX or name is None:
            names = tuple(entries) if len(entries) <= MOUNT_LOOKS_MAX else ()
        else:
            names = (name,)
        listing = self._outside.list(place, place.listed, names)
        if listing.is_complete:
            self._load(ino, place, listing)
            return
        self._update(ino, place, listing.facts)
        place.listed_at = place.checked
        directory = self._own_lower(ino)
        for each, facts in listing.entries.items():
            self._see_entry(ino, directory, each, facts, place.checked)

    def _own_lower(self, ino: int) -> DirectoryInode:
        directory = self._lower[ino]
        assert isinstance(directory, DirectoryInode)
        return directory

    def _load(self, ino: int, place: Place, listing: Listing) -> None:
        """The names of a directory are known now."""
        if len(listing.entries) > MOUNT_NAMES_MAX:
            raise KernelError(Errno.ENOMEM, f"a directory with more than {MOUNT_NAMES_MAX} names")
        self._make_room(len(listing.entries), ino)
        self._update(ino, place, listing.facts)
        gone = [name for name in self._own_lower(ino).entries if name not in listing.entries]
        self._loading[ino] = Loading(
            listing.facts,
            place.checked,
            chain([(name, None) for name in gone], listing.entries.items()),
        )
        self._go_on_loading(ino, place)

    def _go_on_loading(self, ino: int, place: Place) -> None:
        """Bring the names of a directory into the tree, some in each hold of the lock."""
        loading = self._loading[ino]
        for number, (name, facts) in enumerate(loading.names, 1):
            self._see_entry(ino, self._own_lower(ino), name, facts, loading.at)
            if not number % MOUNT_LOOKS_MAX:
                self._outside.give_way()
                if self._loading.get(ino) is not loading:
                    return  # finished or forgotten by another call meanwhile
        del self._loading[ino]
        if not place.is_loaded and self._view.is_changed(ino):
            # It was moved or its mode was changed before its names were known.
            own = self._own_directory(ino)
            for name, (child, _) in self._own_lower(ino).entries.items():
                own.add(name, child)
        place.listed, place.listed_at = loading.facts, loading.at

    def _see_entry(
        self, ino: int, directory: DirectoryInode, name: bytes, facts: Facts | None, at: float
    ) -> None:
        """A name of a directory refers to an object with these facts now, or (None) to nothing."""
        old = directory.entries.get(name)
        if facts is not None:
            child = self._adopt(ino, name, facts, at)
            if old is not None and old[0] == child:
                return
        if old is not None:
            directory.remove(name)
            self._lose_name(old[0])
        if facts is not None:
            directory.add(name, child)
            self._names[child] = self._names.get(child, 0) + 1

    def _lose_name(self, ino: int) -> None:
        """A name in the view no longer refers to this inode."""
        left = self._names.get(ino, 1) - 1
        if left:
            self._names[ino] = left
            self._find_name(ino)
        else:
            self._names.pop(ino, None)
            self._forget_tree(ino)

    def _find_name(self, ino: int) -> None:
        """A file has lost one of its names: if that was its place, its place is another one."""
        place, inode = self._places[ino], self._lower.get(ino)
        above = None if inode is None else self._lower.get(inode.parent)
        if inode is None:
            return
        if isinstance(above, DirectoryInode) and above.entries.get(inode.name, (0, 0))[0] == ino:
            return
        for directory in self._loaded:
            for name, (child, _) in self._own_lower(directory).entries.items():
                if child == ino:
                    place.parent, place.name = self._places[directory], name
                    inode.parent, inode.name = directory, name
                    return

    def _forget_tree(self, ino: int) -> None:
        """Drop an unchanged inode and what is known below it."""
        waiting = [ino]
        while waiting:
            ino = waiting.pop()
            inode = self._lower.get(ino)
            if ino in self._users or self._view.is_changed(ino) or self._places[ino].pinned:
                continue
            if isinstance(inode, DirectoryInode):
                for child, _ in inode.entries.values():
                    left = self._names.pop(child, 1) - 1
                    if left:
                        self._names[child] = left
                    else:
                        waiting.append(child)
            self._forget(ino)

    def _make_room(self, names: int, keep: int) -> None:
        """Forget directories that nobody uses until there is room for `names` more."""
        if len(self._lower) + names <= MOUNT_NAMES_MAX:
            return
        for ino in list(self._loaded):
            if len(self._lower) + names <= MOUNT_NAMES_MAX * 3 // 4:
                break
            if ino != keep:
                self._unload(ino)
        if len(self._lower) + names > 2 * MOUNT_NAMES_MAX:
            raise KernelError(Errno.ENOMEM, f"more than {MOUNT_NAMES_MAX} names of a mount in use")

    def _unload(self, ino: int) -> None:
        directory, place = self._lower.get(ino), self._places[ino]
        if self._view.is_changed(ino) or not isinstance(directory, DirectoryInode):
            return
        if place.pinned or ino in self._loading:
            return
        for child, _ in directory.entries.values():
            below = self._places.get(child)
            if child in self._users or self._view.is_changed(child):
                return
            if below is not None and (below.is_loaded or below.pinned):
                return
        for child, _ in directory.entries.values():
            self._lose_name(child)
        directory.entries = {}
        place.listed = None
        self._loaded.pop(ino, None)
        self._scans.pop(ino, None)

    # Names.

    def lookup(self, parent: int, name: bytes) -> int | None:
        entry = self._current(parent, name).entries.get(name)
        return entry[0] if entry is not None else None

    def step(self, parent: int, attributes: Attributes, name: bytes) -> tuple[int, Inode] | None:
        child = self.lookup(parent, name)
        return (child, self._get(child)) if child is not None else None

    def descend(
        self,
        ino: int,
        attributes: Attributes,
        names: list[bytes],
        keep: int,
        covered: Container[int],
    ) -> tuple[int, Attributes]:
        return ino, attributes

    def find(self, start: int, path: bytes, covered: Container[int]) -> int | None:
        return None

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        self._current(ino)
        return super().readdir(ino, cookie, limit)

    # Attributes and content.

    def _recheck(self, ino: int) -> None:
        """Look again at an object, unless it was changed in the sandbox."""
        place = self._places.get(ino)
        if place is None or place.pinned or self._view.is_changed(ino):
            return
        if place.checked < self._outside.since():
            self._update(ino, place, self._outside.facts(place))

    def stat(self, ino: int) -> Stat:
        self._recheck(ino)
        return super().stat(ino)

    def size(self, ino: int) -> int:
        self._recheck(ino)
        return super().size(ino)

    def read(self, ino: int, offset: int, size: int) -> bytes:
        inode = self._file(ino)
        if type(inode.content) is not OutsideContent:
            return super().read(ino, offset, size)
        self._recheck(ino)
        end = min(offset + size, self._file(ino).content.size)
        if end <= offset:
            return b""
        first = offset // MOUNT_WINDOW
        if (end - 1) // MOUNT_WINDOW != first or end - offset > MOUNT_WINDOW:
            return self._outside.read(self._places[ino], offset, end - offset)
        window = self._windows.get((ino, first))
        if window is None:
            place = self._places[ino]
            window = self._outside.read(place, first * MOUNT_WINDOW, MOUNT_WINDOW)
            self._keep_window((ino, first), window)
        start = offset - first * MOUNT_WINDOW
        return window[start : start + end - offset]

    def _keep_window(self, key: tuple[int, int], window: bytes) -> None:
        self._windows[key] = window
        self._window_bytes += len(window)
        while self._window_bytes > MOUNT_CACHE_BYTES:
            self._window_bytes -= len(self._windows.popitem(last=False)[1])

    def share_content(self, ino: int) -> FileContent:
        if type(self._file(ino).content) is not OutsideContent:
            return super().share_content(ino)
        self._recheck(ino)
        return self._outside.whole(self._places[ino], self.limits.fs_limit_bytes)

    def seek_data(self, ino: int, offset: int) -> int:
        if type(self._file(ino).content) is OutsideContent:
            return offset
        return super().seek_data(ino, offset)

    def seek_hole(self, ino: int, offset: int) -> int:
        if type(self._file(ino).content) is OutsideContent:
            return self.size(ino)
        return super().seek_hole(ino, offset)

    def content_key(self, ino: int) -> str | None:
        return None if self._is_outside(ino) else super().content_key(ino)

    def set_content_key(self, ino: int, key: str) -> None:
        if not self._is_outside(ino):
            super().set_content_key(ino, key)

    def _is_outside(self, ino: int) -> bool:
        inode = self._get(ino)
        return type(inode) is FileInode and type(inode.content) is OutsideContent

    # Lifetime.

    def retain(self, ino: int) -> None:
        if ino not in self._users and ino in self._places:
            self._outside.retain(self._places[ino])
        super().retain(ino)

    def release(self, ino: int) -> None:
        left = self._users[ino] - 1
        if left:
            self._users[ino] = left
            return
        del self._users[ino]
        place = self._places.get(ino)
        if place is not None:
            self._outside.release(place)
        if ino not in self._names and ino != self.root_ino:
            self._forget_tree(ino)  # it has lost its last name meanwhile
