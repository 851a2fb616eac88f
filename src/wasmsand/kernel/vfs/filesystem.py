"""The interface of a mountable file system, and `Node`, the identity of an object in one.

Owns `Node`, `Attributes`, `AttributeChanges` and the base class `FileSystem`. Rules: a file system
knows inodes and names, never paths, mounts or callers. The namespace checks permissions and
read-only mounts before it calls a method that changes something. The file system checks its
structure (does it exist, is it empty, is there room) and raises `KernelError`. Methods that take
`parent` may assume that it is a directory and that names are valid.
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
    """The attributes of an inode that a permission check needs."""

    @property
    def mode(self) -> int: ...
    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...


class AttributeChanges(TypedDict, total=False):
    """The attributes to change; None is the same as a missing key."""

    mode: int | None
    """Permission bits only."""
    uid: int | None
    gid: int | None
    atime: FileTime | None
    mtime: FileTime | None


class Node:
    """One object: a file system and an inode number. Nodes compare and hash by these two. A node
    does not keep its object alive: see `Namespace.retain`."""

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
    """A directory as the start of a path that must not leave it, whether by '..', by a symbolic
    link or by being absolute (openat2's RESOLVE_BENEATH)."""

    __slots__ = ()

    confines: ClassVar[bool] = True


class FileSystem:
    """A mountable file system. Every changing method raises EROFS here, so a read-only file system
    implements only the reading methods."""

    type_name: str = "none"
    """The type in /proc/mounts."""
    root_ino: int = 1
    dev: int = 0
    """st_dev of every object; assigned by the mount table."""

    moves: int = 0
    """How often a directory was moved to another parent. While this number stays the same,
    ancestors stay the same."""

    has_unnamed_files: ClassVar[bool] = True
    """Whether files without a name (O_TMPFILE) can be made here."""

    has_descriptors: ClassVar[bool] = False
    """Whether `fd_reference` returns something for some inodes."""

    # Reading.

    def attributes(self, ino: int) -> Attributes:
        """Mode and owner, faster than `stat`. ENOENT if the inode was removed."""
        raise NotImplementedError

    def stat(self, ino: int) -> Stat:
        """Everything about an inode."""
        raise NotImplementedError

    def lookup(self, parent: int, name: bytes) -> int | None:
        """The inode with `name` (neither '.' nor '..') in a directory, or None."""
        raise NotImplementedError

    def step(
        self, parent: int, attributes: Attributes, name: bytes
    ) -> tuple[int, Attributes] | None:
        """`lookup` and `attributes` in one, for each name of a path walk. The walk passes the
        attributes of the directory, which it has just received from this file system."""
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
        """Walk several names at once. Takes names off the end of `names` as long as they lead
        through directories that everyone may search, and neither to a symbolic link nor to a node
        `covered` by a mount; returns where they lead. Leaves at least `keep` names. The path walk
        takes the remaining steps one by one. A file system need not implement this."""
        return ino, attributes

    def find(self, start: int, path: bytes, covered: Container[int]) -> int | None:
        """The inode at `path`, starting at the directory `start`, if every step is a simple one
        (see `descend`); else None. ENOENT if only the last name is missing. For file systems that
        cache directories by path."""
        return None

    def mounts_changed(self) -> None:
        """Something was mounted on this file system, or unmounted from it."""

    def parent(self, ino: int) -> int:
        """The parent of a directory; the root is its own parent."""
        raise NotImplementedError

    def contains(self, ancestor: int, ino: int) -> bool:
        """Whether a directory is `ancestor` or lies below it."""
        while ino != ancestor:
            if ino == self.root_ino:
                return False
            ino = self.parent(ino)
        return True

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        """A directory and a name in it that refer to this inode; None if it has no name."""
        raise NotImplementedError

    lists_fully: ClassVar[bool] = False
    """Whether `readdir` returns fewer entries than `limit` only at the end of a directory."""

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        """At most `limit` entries after the one with `cookie` (0: from the start, which is '.' and
        '..'). An entry that exists throughout a listing is returned exactly once, whatever is added
        or removed meanwhile."""
        raise NotImplementedError

    def readlink(self, ino: int) -> bytes:
        """The target of a symbolic link, as text."""
        raise NotImplementedError

    def follow(self, ino: int) -> bytes | Node:
        """The target of a symbolic link: a path or, for a magic link, the object itself."""
        return self.readlink(ino)

    def read(self, ino: int, offset: int, size: int) -> bytes:
        """Read a regular file; fewer than `size` bytes only at end of file."""
        raise NotImplementedError

    def size(self, ino: int) -> int:
        """st_size alone, for appending and for seeking from the end."""
        return self.stat(ino).size

    def seek_data(self, ino: int, offset: int) -> int:
        """The first offset at or after `offset` with data; ENXIO if there is none."""
        return offset

    def seek_hole(self, ino: int, offset: int) -> int:
        """The first offset at or after `offset` in a hole; the end of the file counts as one."""
        return self.size(ino)

    def share_content(self, ino: int) -> FileContent | None:
        """The current content of a regular file, which later changes do not affect. No bytes are
        copied. None if this file system has no such content and the file must be read."""
        return None

    def statfs(self) -> StatFs:
        """Space and limits."""
        raise NotImplementedError

    def content_key(self, ino: int) -> str | None:
        """The hash of the content, if it was set since the last change."""
        return None

    def set_content_key(self, ino: int, key: str) -> None:
        """Store the hash of the content until the content changes."""

    def is_of_image(self, ino: int) -> bool:
        """Whether the content has a hash and is unchanged from the image."""
        return False

    def memory_key(self, ino: int) -> str | None:
        """The hash of the memory with which the program in this file starts, if any."""
        return None

    def fd_reference(self, ino: int) -> tuple[int, int] | None:
        """(pid, fd) if the inode stands for an open descriptor of an object in no file system: the
        target of a magic link to a pipe."""
        return None

    # Lifetime: an inode without a name exists until its last release.

    def retain(self, ino: int) -> None:
        """Count one more user (an open description, a working directory)."""

    def release(self, ino: int) -> None:
        """Count one user less; the last release of an object without a name frees it."""

    # Changing.

    def create(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        """Create an empty regular file."""
        raise KernelError(Errno.EROFS)

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        """Create an empty directory."""
        raise KernelError(Errno.EROFS)

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        """Create a symbolic link."""
        raise KernelError(Errno.EROFS)

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, uid: int, gid: int) -> int:
        """Create a FIFO, socket or device; `mode` includes the type."""
        raise KernelError(Errno.EROFS)

    def link(self, ino: int, parent: int, name: bytes) -> None:
        """Add a name for an inode that is not a directory."""
        raise KernelError(Errno.EROFS)

    def unlink(self, parent: int, name: bytes) -> None:
        """Remove a name that does not refer to a directory."""
        raise KernelError(Errno.EROFS)

    def rmdir(self, parent: int, name: bytes) -> None:
        """Remove an empty directory."""
        raise KernelError(Errno.EROFS)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        """Move a name, replacing what was there. The namespace has excluded loops, identical
        inodes, and a directory that replaces a non-directory or the reverse."""
        raise KernelError(Errno.EROFS)

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        """Exchange what two names refer to."""
        raise KernelError(Errno.EROFS)

    def set_attributes(self, ino: int, **changes: Unpack[AttributeChanges]) -> None:
        """Set what is not None, and ctime."""
        raise KernelError(Errno.EROFS)

    def write(self, ino: int, offset: int, data: Data) -> int:
        """Write as much as fits and return how much; ENOSPC if nothing fits."""
        raise KernelError(Errno.EROFS)

    def replace_content(self, ino: int, content: FileContent) -> None:
        """Replace the content of a file with `content`, which then belongs to the file: in one
        step, or (ENOSPC) not at all."""
        raise KernelError(Errno.EROFS)

    def truncate(self, ino: int, size: int) -> None:
        """Cut, or extend with a hole."""
        raise KernelError(Errno.EROFS)

    def allocate(self, ino: int, offset: int, length: int, *, keep_size: bool) -> None:
        """Reserve space for a range, all or nothing."""
        raise KernelError(Errno.EROFS)

    def punch_hole(self, ino: int, offset: int, length: int) -> None:
        """Make a range read as zeros and free its space; the size stays."""
        raise KernelError(Errno.EROFS)
