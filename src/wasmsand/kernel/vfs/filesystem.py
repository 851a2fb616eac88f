"""The contract of a mountable file system, and `Node`, the identity of an object in one.

Owns `Node`, `Attributes`, `AttributeChanges` and the base class `FileSystem`. Rules: a file system
knows inodes and names, never paths, mounts or callers. The namespace has checked permissions and
the read-only flag before it calls a method that changes something; the file system checks structure
(does it exist, is it empty, is there room) and raises `KernelError`. Methods that take `parent` may
assume that it is a directory and that names are valid.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, ClassVar, Protocol, TypedDict, Unpack

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.model import DirEntry, FileTime, Stat, StatFs

if TYPE_CHECKING:
    from wasmsand.kernel.vfs.content import FileContent

Data = bytes | bytearray | memoryview


class Attributes(Protocol):
    """What a permission check needs of an inode."""

    @property
    def mode(self) -> int: ...
    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...


class AttributeChanges(TypedDict, total=False):
    """What to change of an inode; None is the same as a missing key."""

    mode: int | None
    """The permission bits alone."""
    uid: int | None
    gid: int | None
    atime: FileTime | None
    mtime: FileTime | None


class Node:
    """One object: a file system and an inode number. Compares and hashes by identity
    of the object, holds nothing alive: see `Namespace.retain`."""

    __slots__ = ("fs", "ino")

    confines: ClassVar[bool] = False
    """Whether a path that starts here must stay beneath this directory."""

    def __init__(self, fs: FileSystem, ino: int) -> None:
        self.fs = fs
        self.ino = ino

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.ino == self.ino and other.fs is self.fs

    def __hash__(self) -> int:
        return hash((id(self.fs), self.ino))

    def __repr__(self) -> str:
        return f"Node({self.fs.type_name}:{self.ino})"


class Beneath(Node):
    """A directory as the start of a path that must not leave it: neither by '..' nor by a
    symbolic link nor by being absolute (openat2's RESOLVE_BENEATH)."""

    __slots__ = ()

    confines: ClassVar[bool] = True


class FileSystem:
    """What can be mounted. Every changing method fails with EROFS here, so that a
    read-only file system implements only the reading half."""

    type_name: str = "none"
    """As the third column of /proc/mounts shows it."""
    root_ino: int = 1
    dev: int = 0
    """st_dev of every object; given by the mount table."""

    moves: int = 0
    """How often a directory was moved to another parent. While this number stays the same, what
    was nested still is."""

    has_descriptors: ClassVar[bool] = False
    """Whether there are inodes for which `fd_reference` says something."""

    # Reading.

    def attributes(self, ino: int) -> Attributes:
        """Mode and owner: the cheap part of stat. ENOENT when the inode is gone."""
        raise NotImplementedError

    def stat(self, ino: int) -> Stat:
        """Everything about an inode."""
        raise NotImplementedError

    def lookup(self, parent: int, name: bytes) -> int | None:
        """The inode that `name` (neither '.' nor '..') means, or None."""
        raise NotImplementedError

    def step(
        self, parent: int, attributes: Attributes, name: bytes
    ) -> tuple[int, Attributes] | None:
        """`lookup` and `attributes` in one: what the path walk does at each name. It hands
        over the directory's attributes, which it has just got from here."""
        child = self.lookup(parent, name)
        return (child, self.attributes(child)) if child is not None else None

    def descend(
        self,
        ino: int,
        attributes: Attributes,
        names: list[bytes],
        keep: int,
        covered: Container[int],
    ) -> tuple[int, Attributes]:
        """Take as many names off the end of `names` as need no closer look, and return where
        they lead: through directories that everybody may search, to what is neither a
        symbolic link nor `covered` by a mount. `keep` names stay. The path walk takes the
        other steps one by one, and all of them if a file system does not do this."""
        return ino, attributes

    def find(self, start: int, path: bytes, covered: Container[int]) -> int | None:
        """What `path` leads to from the directory `start`, if no step needs a closer look
        (see `descend`); None if one does. ENOENT when the last name is not there. For
        file systems that remember how far they got with earlier paths."""
        return None

    def mounts_changed(self) -> None:
        """Something was mounted on this file system, or unmounted from it."""

    def parent(self, ino: int) -> int:
        """The directory that holds a directory; the root is its own parent."""
        raise NotImplementedError

    def contains(self, ancestor: int, ino: int) -> bool:
        """Whether a directory is `ancestor` or lies below it."""
        while ino != ancestor:
            if ino == self.root_ino:
                return False
            ino = self.parent(ino)
        return True

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        """A directory and a name in it that mean this inode; None when it has none."""
        raise NotImplementedError

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        """At most `limit` entries after the one with `cookie` (0: from the start,
        which is '.' and '..'). An entry that exists throughout a listing is returned
        exactly once, whatever is added or removed meanwhile."""
        raise NotImplementedError

    def readlink(self, ino: int) -> bytes:
        """The text of a symbolic link."""
        raise NotImplementedError

    def follow(self, ino: int) -> bytes | Node:
        """Where a symbolic link leads: a path, or (a magic link) an object itself."""
        return self.readlink(ino)

    def read(self, ino: int, offset: int, size: int) -> bytes:
        """Bytes of a regular file; fewer than `size` only at the end."""
        raise NotImplementedError

    def size(self, ino: int) -> int:
        """st_size alone, for appending and for seeking from the end."""
        return self.stat(ino).size

    def seek_data(self, ino: int, offset: int) -> int:
        """The first offset at or after `offset` that holds data; ENXIO past the last."""
        return offset

    def seek_hole(self, ino: int, offset: int) -> int:
        """The first offset at or after `offset` in a hole (the end counts as one)."""
        return self.size(ino)

    def share_content(self, ino: int) -> FileContent | None:
        """The content of a regular file as it is now, which later changes leave alone; it
        costs no bytes. None from a file system that has no such content: read it then."""
        return None

    def statfs(self) -> StatFs:
        """Room and limits."""
        raise NotImplementedError

    def content_key(self, ino: int) -> str | None:
        """The hash of the content, if somebody has given it since the last change."""
        return None

    def set_content_key(self, ino: int, key: str) -> None:
        """Keep the hash of the content until it changes."""

    def is_of_image(self, ino: int) -> bool:
        """Whether the content, which has a hash, is as an image builder gave it."""
        return False

    def fd_reference(self, ino: int) -> tuple[int, int] | None:
        """(pid, fd) when the inode stands for an open descriptor that lives in no file
        system: what a magic link to a pipe leads to."""
        return None

    # Lifetime: an inode without a name lives until its last release.

    def retain(self, ino: int) -> None:
        """Count one more user (an open description, a working directory)."""

    def release(self, ino: int) -> None:
        """Count one user less; the last one of an object without a name frees it."""

    # Changing.

    def create(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        """Make an empty regular file."""
        raise KernelError(Errno.EROFS)

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        """Make an empty directory."""
        raise KernelError(Errno.EROFS)

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        """Make a symbolic link."""
        raise KernelError(Errno.EROFS)

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, uid: int, gid: int) -> int:
        """Make a FIFO, socket or device; `mode` has the type."""
        raise KernelError(Errno.EROFS)

    def link(self, ino: int, parent: int, name: bytes) -> None:
        """Give an inode that is no directory another name."""
        raise KernelError(Errno.EROFS)

    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name that does not mean a directory."""
        raise KernelError(Errno.EROFS)

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""
        raise KernelError(Errno.EROFS)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        """Move a name, replacing what was there. The namespace has excluded loops,
        equal inodes and a directory meeting a non-directory."""
        raise KernelError(Errno.EROFS)

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        """Swap what two names mean."""
        raise KernelError(Errno.EROFS)

    def set_attributes(self, ino: int, **changes: Unpack[AttributeChanges]) -> None:
        """Change what is not None, and ctime."""
        raise KernelError(Errno.EROFS)

    def write(self, ino: int, offset: int, data: Data) -> int:
        """Write as much as fits and return how much; ENOSPC when nothing fits."""
        raise KernelError(Errno.EROFS)

    def replace_content(self, ino: int, content: FileContent) -> None:
        """Make `content`, which belongs to the file from now on, all that a file holds: in one
        step, or (ENOSPC) not at all."""
        raise KernelError(Errno.EROFS)

    def truncate(self, ino: int, size: int) -> None:
        """Cut or extend (by a hole)."""
        raise KernelError(Errno.EROFS)

    def allocate(self, ino: int, offset: int, length: int, *, keep_size: bool) -> None:
        """Reserve room for a range, all of it or none."""
        raise KernelError(Errno.EROFS)

    def punch_hole(self, ino: int, offset: int, length: int) -> None:
        """Make a range read as zeros and give its room back; the size stays."""
        raise KernelError(Errno.EROFS)
