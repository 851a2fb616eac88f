"""TreeFs: the read-write file system of a sandbox, a copy-on-write tree.

Owns names: directories and their entries. Inodes and their bytes are in `store`. Rules: a method
that fails has changed nothing. Directory entries are ordered by cookie; a name that is removed and
added again goes to the end. Creating a tree over a frozen one, and freezing a tree, take constant
time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Container
from typing import Unpack

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import PERMISSION_BITS, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import (
    KNOWN_PATH_BYTES_MAX,
    KNOWN_PATHS_MAX,
    LINK_MAX,
    NAME_MAX,
    SCANNED_NAMES_KEPT,
    SCANS_KEPT,
    Limits,
)
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import AttributeChanges, Attributes
from wasmsand.kernel.vfs.inode import (
    DirectoryInode,
    FileInode,
    Inode,
    SpecialInode,
    SymlinkInode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree, SharedTree
from wasmsand.kernel.vfs.model import DirEntry, new_record
from wasmsand.kernel.vfs.store import TreeStore, target_blocks

_NO_NAMES = (b"", b".", b"..")


class TreeFs(TreeStore):
    """A tree of files over a frozen one."""

    lists_fully = True

    def __init__(
        self,
        base: FrozenTree,
        limits: Limits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(base, limits, now_ns)
        self._scans: dict[int, tuple[list[int], list[bytes]]] = {}
        # Cache: directories reached by simple steps, by start and path.
        self._known: dict[tuple[int, bytes], int] = {}

    # Looking up and listing.

    def lookup(self, parent: int, name: bytes) -> int | None:
        entry = self._directory(parent).entries.get(name)
        return entry[0] if entry is not None else None

    def step(self, parent: int, attributes: Attributes, name: bytes) -> tuple[int, Inode] | None:
        # The attributes that this file system returns are the inodes themselves.
        assert isinstance(attributes, DirectoryInode)
        entry = attributes.entries.get(name)
        return (entry[0], self._get(entry[0])) if entry is not None else None

    def descend(
        self,
        ino: int,
        attributes: Attributes,
        names: list[bytes],
        keep: int,
        covered: Container[int],
    ) -> tuple[int, Attributes]:
        inode = attributes
        top = self._table.top
        while len(names) > keep:
            if not isinstance(inode, DirectoryInode) or inode.mode & 0o111 != 0o111:
                break
            entry = inode.entries.get(names[-1])
            if entry is None:
                break
            child = entry[0]
            found = top.get(child)
            if found is None:
                found = self._get(child)
            if type(found) is SymlinkInode or child in covered:
                break
            names.pop()
            ino, inode = child, found
        return ino, inode

    def find(self, start: int, path: bytes, covered: Container[int]) -> int | None:
        head, _, name = path.rpartition(b"/")
        if not head:
            directory = start
        else:
            known = self._known.get((start, head))
            if known is None:
                known = self._learn(start, head, covered)
                if known is None:
                    return None
            directory = known
        top = self._table.top
        inode = top.get(directory) or self._get(directory)
        if type(inode) is not DirectoryInode or inode.mode & 0o111 != 0o111:
            return None
        entry = inode.entries.get(name)
        if entry is None:
            if name in _NO_NAMES or len(name) > NAME_MAX:
                return None
            raise KernelError(Errno.ENOENT, path.decode("utf-8", "backslashreplace"))
        child = entry[0]
        if child in covered or type(top.get(child) or self._get(child)) is SymlinkInode:
            return None
        return child

    def _learn(self, start: int, head: bytes, covered: Container[int]) -> int | None:
        names = head.lstrip(b"/").split(b"/")
        names.reverse()
        directory, inode = self.descend(start, self._get(start), names, 0, covered)
        if names or not isinstance(inode, DirectoryInode):
            return None
        if len(head) <= KNOWN_PATH_BYTES_MAX:
            if len(self._known) >= KNOWN_PATHS_MAX:
                self._known.clear()
            self._known[start, head] = directory
        return directory

    def mounts_changed(self) -> None:
        self._known.clear()

    def set_attributes(self, ino: int, **changes: Unpack[AttributeChanges]) -> None:
        super().set_attributes(ino, **changes)
        if changes.get("mode") is not None and isinstance(self._get(ino), DirectoryInode):
            self._known.clear()

    def parent(self, ino: int) -> int:
        return self._directory(ino).parent

    def contains(self, ancestor: int, ino: int) -> bool:
        # Guests can nest directories to any depth, and this loop visits every level.
        find, get = self._table.top.get, self._get
        while ino != ancestor:
            if ino == ROOT_INO:
                return False
            ino = (find(ino) or get(ino)).parent
        return True

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        inode = self._get(ino)
        try:
            entry = self._directory(inode.parent).entries.get(inode.name)
        except KernelError:
            return None
        return (inode.parent, inode.name) if entry is not None and entry[0] == ino else None

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        directory = self._directory(ino)
        if directory.nlink == 0:
            raise KernelError(Errno.ENOENT)
        if cookie == 0:
            self._accessed(ino, directory)
        found: list[DirEntry] = []
        if cookie < 1 and limit > 0:
            found.append(DirEntry(b".", ino, S_IFDIR, 1))
        if cookie < 2 and len(found) < limit:
            found.append(DirEntry(b"..", directory.parent, S_IFDIR, 2))
        cookies, names = self._scan(ino, directory, fresh=cookie < DirectoryInode.FIRST_COOKIE)
        entries, top, inode_of = directory.entries, self._table.top, self._get
        for position in range(bisect_right(cookies, cookie), len(cookies)):
            if len(found) >= limit:
                break
            name = names[position]
            entry = entries.get(name)
            # Skip names that were removed, or removed and added again, since the scan.
            if entry is not None and entry[1] == cookies[position]:
                number, place = entry
                inode = top.get(number) or inode_of(number)
                found.append(new_record(DirEntry, (name, number, inode.mode & S_IFMT, place)))
        return found

    def _scan(
        self, ino: int, directory: DirectoryInode, *, fresh: bool
    ) -> tuple[list[int], list[bytes]]:
        """Cookies and names at the start of the listing. Kept for a few directories, so that a
        listing in small steps does not start over each time. The scan is not extended, so that a
        program that renames the files it lists comes to an end."""
        scan = None if fresh else self._scans.get(ino)
        if scan is None:
            scan = ([entry[1] for entry in directory.entries.values()], list(directory.entries))
            self._scans.pop(ino, None)
            held = len(scan[0]) + sum(len(names) for _, names in self._scans.values())
            while self._scans and (len(self._scans) >= SCANS_KEPT or held > SCANNED_NAMES_KEPT):
                held -= len(self._scans.pop(next(iter(self._scans)))[1])
            self._scans[ino] = scan
        return scan

    # Changing names.

    def create(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        mode = mode & PERMISSION_BITS | S_IFREG
        return self._insert(parent, name, FileInode(mode, uid, gid, self._now()))

    def add_file(
        self, parent: int, name: bytes, data: bytes, mode: int, uid: int, gid: int, mtime: int
    ) -> int:
        """Create a file with its content, which fits into one chunk, in one step."""
        content = FileContent.of_bytes(data, self.space)
        inode = FileInode(mode & PERMISSION_BITS | S_IFREG, uid, gid, self._now(), content)
        inode.mtime = mtime
        try:
            return self._insert(parent, name, inode)
        except KernelError:
            self.space.give_blocks(content.blocks)
            raise

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        if self._directory(parent).nlink >= LINK_MAX:
            raise KernelError(Errno.EMLINK)
        inode = DirectoryInode(mode & PERMISSION_BITS, uid, gid, self._now())
        ino = self._insert(parent, name, inode)
        self._table.own(parent).nlink += 1
        return ino

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        blocks = target_blocks(target)
        self.space.take_blocks(blocks)
        try:
            inode = SymlinkInode(S_IFLNK | 0o777, uid, gid, self._now(), target)
            return self._insert(parent, name, inode)
        except KernelError:
            self.space.give_blocks(blocks)
            raise

    def attach(self, parent: int, name: bytes, tree: SharedTree) -> None:
        """Make a shared tree appear as a directory, in constant time. It is not charged. EEXIST if
        the name is taken, or if this tree was attached before."""
        directory = self._writable_directory(parent, name)
        if directory.nlink >= LINK_MAX:
            raise KernelError(Errno.EMLINK)
        self._table.attach(tree)
        root = self._table.own(tree.root_ino)
        root.parent = parent
        root.name = name
        directory.add(name, tree.root_ino)
        directory.nlink += 1
        directory.mtime = directory.ctime = self._now()

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, uid: int, gid: int) -> int:
        return self._insert(parent, name, SpecialInode(mode, uid, gid, self._now(), rdev))

    def _insert(self, parent: int, name: bytes, inode: Inode) -> int:
        directory = self._writable_directory(parent, name)
        if self._unreleased or self.space.discarded_blocks:
            self._free_some()
        self.space.take_inode()
        ino = self._table.add(inode)
        inode.parent = parent
        inode.name = name
        directory.add(name, ino)
        directory.mtime = directory.ctime = inode.ctime
        return ino

    def link(self, ino: int, parent: int, name: bytes) -> None:
        nlink = self._get(ino).nlink
        if nlink == 0:
            raise KernelError(Errno.ENOENT)
        if nlink >= LINK_MAX:
            raise KernelError(Errno.EMLINK)
        directory = self._writable_directory(parent, name)
        if nlink >= self._table.image_links(ino):
            self.space.take_inode()
        inode = self._table.own(ino)
        directory.add(name, ino)
        inode.nlink = nlink + 1
        inode.parent = parent
        inode.name = name
        inode.ctime = directory.mtime = directory.ctime = self._now()

    def unlink(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        if self._unreleased or self.space.discarded_blocks:
            self._free_some()
        directory = self._own_directory(parent)
        directory.remove(name)
        directory.mtime = directory.ctime = now = self._now()
        self._drop_name(ino, now)

    def rmdir(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        if self._directory(ino).entries:
            raise KernelError(Errno.ENOTEMPTY)
        directory = self._own_directory(parent)
        directory.remove(name)
        directory.nlink -= 1
        directory.mtime = directory.ctime = now = self._now()
        self._drop_directory(ino, now)
        self._known.clear()
        self._scans.pop(ino, None)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        ino = self._entry(parent, name)
        is_directory = isinstance(self._get(ino), DirectoryInode)
        replaced = self._directory(new_parent).entries.get(new_name)
        if is_directory:
            if replaced is not None and self._directory(replaced[0]).entries:
                raise KernelError(Errno.ENOTEMPTY)
            if (
                replaced is None
                and parent != new_parent
                and self._directory(new_parent).nlink >= LINK_MAX
            ):
                raise KernelError(Errno.EMLINK)
            self._known.clear()
            self.moves += 1
        source, target = self._own_directory(parent), self._own_directory(new_parent)
        if target.nlink == 0:
            raise KernelError(Errno.ENOENT)
        now = self._now()
        if replaced is not None:
            target.remove(new_name)
            if is_directory:
                target.nlink -= 1
                self._drop_directory(replaced[0], now)
            else:
                self._drop_name(replaced[0], now)
        source.remove(name)
        target.add(new_name, ino)
        if is_directory:
            source.nlink -= 1
            target.nlink += 1
        self._moved(ino, new_parent, new_name, now)
        source.mtime = source.ctime = target.mtime = target.ctime = now

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        self._known.clear()
        self.moves += 1
        ino, other_ino = self._entry(parent, name), self._entry(other_parent, other_name)
        first, second = self._own_directory(parent), self._own_directory(other_parent)
        now = self._now()
        first.remove(name)
        second.remove(other_name)
        first.add(name, other_ino)
        second.add(other_name, ino)
        for moved, old, new in ((ino, first, second), (other_ino, second, first)):
            if isinstance(self._get(moved), DirectoryInode):
                old.nlink -= 1
                new.nlink += 1
        self._moved(ino, other_parent, other_name, now)
        self._moved(other_ino, parent, name, now)
        first.mtime = first.ctime = second.mtime = second.ctime = now

    def _moved(self, ino: int, parent: int, name: bytes, now: int) -> None:
        inode = self._table.own(ino)
        inode.parent = parent
        inode.name = name
        inode.ctime = now

    def _own_directory(self, ino: int) -> DirectoryInode:
        inode = self._table.own(ino)
        assert isinstance(inode, DirectoryInode)
        return inode

    def _writable_directory(self, parent: int, name: bytes) -> DirectoryInode:
        """A directory that was not removed and in which `name` is free."""
        directory = self._directory(parent)
        if directory.nlink == 0:
            raise KernelError(Errno.ENOENT)
        if name in directory.entries:
            raise KernelError(Errno.EEXIST)
        return self._own_directory(parent)

    def _entry(self, parent: int, name: bytes) -> int:
        entry = self._directory(parent).entries.get(name)
        if entry is None:
            raise KernelError(Errno.ENOENT)
        return entry[0]
