"""WriteThroughTree: a mounted outside tree that the sandbox may change.

Owns the changes of a read-write mount. Rules: a change is made outside first; when that has
succeeded, the view follows. If a call waits for a change, its next attempt comes here again with
the same arguments and takes the result. So a call makes one change at most, and makes it once.
Devices, FIFOs and sockets cannot be created. Owners cannot be changed.
"""

from __future__ import annotations

from typing import Unpack

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFMT
from wasmsand.kernel.limits import FILE_SIZE_MAX
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import AttributeChanges, Data
from wasmsand.kernel.vfs.inode import DirectoryInode
from wasmsand.kernel.vfs.lazy_tree import LazyTree
from wasmsand.kernel.vfs.model import NOW, FileTime
from wasmsand.kernel.vfs.outside import Facts, Move, Place


class WriteThroughTree(LazyTree):
    """A read-write view of an outside tree."""

    # New names.

    def create(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        facts = self._outside.create(self._directory_place(parent), name, mode)
        return self._add_name(parent, name, facts)

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        facts = self._outside.mkdir(self._directory_place(parent), name, mode)
        return self._add_name(parent, name, facts)

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        facts = self._outside.symlink(self._directory_place(parent), name, target)
        return self._add_name(parent, name, facts)

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, uid: int, gid: int) -> int:
        raise KernelError(Errno.EPERM, "a mount has no devices, FIFOs or sockets")

    def link(self, ino: int, parent: int, name: bytes) -> None:
        facts = self._outside.link(self._places[ino], self._directory_place(parent), name)
        self._add_name(parent, name, facts)

    def _directory_place(self, ino: int) -> Place:
        place = self._places[ino]
        if not place.is_loaded:
            self._current(ino)
        return place

    def _add_name(self, parent: int, name: bytes, facts: Facts) -> int:
        now = self._outside.seen_at()
        self._see_entry(parent, self._own_lower(parent), name, facts, now)
        self._touched(parent)
        return self._own_lower(parent).entries[name][0]

    def _touched(self, directory: int) -> None:
        """The names of a directory were changed here: show a new time until it is looked at."""
        inode = self._own_lower(directory)
        inode.mtime = inode.ctime = self._now()

    # Removing and moving names.

    def unlink(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        self._outside.unlink(self._directory_place(parent), name, self._places[ino])
        self._remove_name(parent, name, ino)

    def rmdir(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        self._outside.rmdir(self._directory_place(parent), name, self._places[ino])
        self._own_lower(ino).entries = {}
        self._remove_name(parent, name, ino)

    def _remove_name(self, parent: int, name: bytes, ino: int) -> None:
        directory = self._own_lower(parent)
        if not self._still_named(parent, name, ino):
            self._places[parent].doubt()  # another call has used the name meanwhile
            return
        inode = self._lower[ino]
        is_directory = isinstance(inode, DirectoryInode)
        inode.nlink = 0 if is_directory else max(0, inode.nlink - 1)
        directory.remove(name)
        self._lose_name(ino)
        self._touched(parent)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        ino = self._entry(parent, name)
        above, place = self._directory_place(new_parent), self._places[ino]
        replaced = self._own_lower(new_parent).entries.get(new_name)
        victim = None if replaced is None else self._places[replaced[0]]
        old = self._directory_place(parent)
        facts = self._outside.rename(Move(place, old, name, above, new_name, victim))
        if replaced is not None:
            self._remove_name(new_parent, new_name, replaced[0])
        if (
            not self._still_named(parent, name, ino)
            or new_name in self._own_lower(new_parent).entries
        ):
            self._places[parent].doubt()
            self._places[new_parent].doubt()
            return
        self._names[ino] = self._names.get(ino, 0) + 1  # it keeps a name throughout
        directory = self._own_lower(parent)
        directory.remove(name)
        self._lose_name(ino)
        self._own_lower(new_parent).add(new_name, ino)
        self._moved_to(ino, new_parent, new_name)
        self._update(ino, place, facts)
        self._touched(parent)
        self._touched(new_parent)

    def _still_named(self, parent: int, name: bytes, ino: int) -> bool:
        return self._own_lower(parent).entries.get(name, (0, 0))[0] == ino

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        ino, other = self._entry(parent, name), self._entry(other_parent, other_name)
        above = self._directory_place(other_parent)
        place, replaced = self._places[ino], self._places[other]
        old = self._directory_place(parent)
        self._outside.rename(Move(place, old, name, above, other_name, replaced, exchange=True))
        if not (
            self._still_named(parent, name, ino)
            and self._still_named(other_parent, other_name, other)
        ):
            old.doubt()
            above.doubt()
            return
        for directory, each, new in ((parent, name, other), (other_parent, other_name, ino)):
            self._own_lower(directory).remove(each)
            self._own_lower(directory).add(each, new)
            self._moved_to(new, directory, each)
            self._touched(directory)

    def _moved_to(self, ino: int, parent: int, name: bytes) -> None:
        place, inode = self._places[ino], self._lower[ino]
        place.parent, place.name = self._places[parent], name
        inode.parent, inode.name = parent, name
        if isinstance(inode, DirectoryInode):
            self.moves += 1

    # Attributes and content.

    def set_attributes(self, ino: int, **changes: Unpack[AttributeChanges]) -> None:
        inode, place = self._get(ino), self._places[ino]
        if changes.get("uid") not in (None, inode.uid) or changes.get("gid") not in (
            None,
            inode.gid,
        ):
            raise KernelError(Errno.EPERM, "owners in a mount cannot be changed")
        mode = changes.get("mode")
        if mode is not None and mode == inode.mode & ~S_IFMT:
            mode = None
        atime, mtime = _time(changes.get("atime")), _time(changes.get("mtime"))
        if mode is None and atime is None and mtime is None:
            return
        self._update(ino, place, self._outside.set_attributes(place, mode, atime, mtime))

    def write(self, ino: int, offset: int, data: Data) -> int:
        if offset + len(data) > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        if not data:
            return 0
        place = self._places[ino]
        written, facts = self._outside.write(place, offset, data)
        self._drop_windows(ino)
        self._update(ino, place, facts)
        return written

    def truncate(self, ino: int, size: int) -> None:
        place = self._places[ino]
        if self._file(ino).content.size == size == 0 and place.checked >= self._outside.since():
            return
        facts = self._outside.truncate(place, size)
        self._drop_windows(ino)
        self._update(ino, place, facts)

    def allocate(self, ino: int, offset: int, length: int, *, keep_size: bool) -> None:
        raise KernelError(Errno.EOPNOTSUPP)

    def punch_hole(self, ino: int, offset: int, length: int) -> None:
        raise KernelError(Errno.EOPNOTSUPP)

    def replace_content(self, ino: int, content: FileContent) -> None:
        """Only operations of the host do this, which may make several changes."""
        self.truncate(ino, 0)
        done = 0
        while done < content.size:
            done += self.write(ino, done, content.read(done, 1 << 20))


def _time(value: FileTime | None) -> int | None:
    return -1 if value is NOW else value
