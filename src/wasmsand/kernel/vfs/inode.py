"""What a tree stores for each object.

Owns the inode classes: `FileInode`, `DirectoryInode`, `SymlinkInode`, `SpecialInode`. Rules: an
inode in a frozen layer never changes; `copy` makes a version for the top layer of a tree.
`parent` and `name` record where the inode was last linked: exact for directories, a hint for
everything else (that hard link may have been removed).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from wasmsand.kernel.flags import S_IFDIR
from wasmsand.kernel.vfs.content import FileContent

_REMOVED_KEPT: Final = 64

Entries = dict[bytes, tuple[int, int]]
"""A directory's names: each with its inode number and its cookie."""


class Inode:
    """The attributes that every object has. Times are in nanoseconds."""

    __slots__ = (
        "atime",
        "btime",
        "ctime",
        "gid",
        "mode",
        "mtime",
        "name",
        "nlink",
        "parent",
        "uid",
    )

    def __init__(self, mode: int, uid: int, gid: int, now: int) -> None:
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.nlink = 1
        self.atime = self.mtime = self.ctime = self.btime = now
        self.parent = 0
        self.name = b""

    def copy(self) -> Inode:
        """A copy for a top layer, which may be changed."""
        raise NotImplementedError

    def _copy_attributes(self, source: Inode) -> None:
        self.mode = source.mode
        self.uid = source.uid
        self.gid = source.gid
        self.nlink = source.nlink
        self.atime = source.atime
        self.mtime = source.mtime
        self.ctime = source.ctime
        self.btime = source.btime
        self.parent = source.parent
        self.name = source.name


class FileInode(Inode):
    """A regular file. It shares its content with frozen versions until `writable_content` is
    called."""

    __slots__ = ("content", "owns_content")

    def __init__(
        self, mode: int, uid: int, gid: int, now: int, content: FileContent | None = None
    ) -> None:
        super().__init__(mode, uid, gid, now)
        self.content = content or FileContent()
        self.owns_content = True

    def copy(self) -> FileInode:
        twin = FileInode(self.mode, self.uid, self.gid, 0, self.content)
        twin._copy_attributes(self)
        twin.owns_content = False
        return twin

    def writable_content(self) -> FileContent:
        """The content, copied first if it is shared."""
        if not self.owns_content:
            self.content = self.content.fork()
            self.owns_content = True
        return self.content


class DirectoryInode(Inode):
    """A directory: name to (inode number, cookie), in ascending order of cookies."""

    __slots__ = ("_entries", "next_cookie", "removed", "unread")

    FIRST_COOKIE: ClassVar[int] = 3
    """1 and 2 belong to '.' and '..'."""

    def __init__(self, mode: int, uid: int, gid: int, now: int) -> None:
        super().__init__(mode | S_IFDIR, uid, gid, now)
        self.nlink = 2
        self._entries: Entries = {}
        self.unread: Callable[[], Entries] | None = None
        """Reads the entries when they are first used: for large directories of an image."""
        self.next_cookie = self.FIRST_COOKIE
        self.removed = 0
        """Names removed since `entries` was last rebuilt."""

    @property
    def entries(self) -> Entries:
        """The names in it."""
        read = self.unread
        if read is not None:
            self._entries = read()
            self.unread = None
        return self._entries

    @entries.setter
    def entries(self, entries: Entries) -> None:
        self._entries = entries

    def copy(self) -> DirectoryInode:
        twin = DirectoryInode(self.mode, self.uid, self.gid, 0)
        twin._copy_attributes(self)
        twin._entries = dict(self.entries)
        twin.next_cookie = self.next_cookie
        return twin

    def add(self, name: bytes, ino: int) -> None:
        """Append an entry; the name must be free, so that the order of cookies is kept."""
        self.entries[name] = (ino, self.next_cookie)
        self.next_cookie += 1

    def remove(self, name: bytes) -> None:
        """Remove a name. A dict never shrinks, so it is rebuilt from time to time: a directory that
        once held many names must not keep their memory."""
        del self.entries[name]
        self.removed = removed = self.removed + 1
        if removed > _REMOVED_KEPT and removed > 2 * len(self.entries):
            self.entries = dict(self.entries)
            self.removed = 0


class SymlinkInode(Inode):
    """A symbolic link."""

    __slots__ = ("target",)

    def __init__(self, mode: int, uid: int, gid: int, now: int, target: bytes) -> None:
        super().__init__(mode, uid, gid, now)
        self.target = target

    def copy(self) -> SymlinkInode:
        twin = SymlinkInode(self.mode, self.uid, self.gid, 0, self.target)
        twin._copy_attributes(self)
        return twin


class SpecialInode(Inode):
    """A FIFO, socket or device: just its type and device number; the kernel implements it."""

    __slots__ = ("rdev",)

    def __init__(self, mode: int, uid: int, gid: int, now: int, rdev: int = 0) -> None:
        super().__init__(mode, uid, gid, now)
        self.rdev = rdev

    def copy(self) -> SpecialInode:
        twin = SpecialInode(self.mode, self.uid, self.gid, 0, self.rdev)
        twin._copy_attributes(self)
        return twin


REMOVED = SpecialInode(0, 0, 0, 0)
"""Marks an inode in a layer that was removed from a lower layer."""
