"""ImageBuilder: makes the tree that all sandboxes share.

Owns the host's way to describe files before any sandbox exists. Rules: everything is
root's unless said otherwise, missing parent directories are made (0755), the result is
the same for the same calls (times are given, not taken from a clock). What is in a large
directory may be said later, when somebody looks into it: its inode numbers are set aside,
so that it makes no difference when that is. Mistakes are `ValueError`: they are the
host's, not a guest's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wasmsand.kernel.flags import S_IFCHR, S_IFLNK, S_IFREG
from wasmsand.kernel.limits import NAME_MAX
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.image_data import ImageData, Sliceable
from wasmsand.kernel.vfs.inode import (
    DirectoryInode,
    FileInode,
    Inode,
    SpecialInode,
    SymlinkInode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree
from wasmsand.kernel.vfs.model import device_number


class ImageBuilder:
    """Collects files; `build` freezes them. Paths are absolute, and are not resolved
    through symbolic links: add the files where they really are."""

    def __init__(self, time_ns: int = 0) -> None:
        self._time = time_ns
        self._inodes: dict[int, Inode] = {}
        self._by_path: dict[bytes, int] = {}
        self._next_ino = ROOT_INO + 1
        root = DirectoryInode(0o755, 0, 0, time_ns)
        root.parent = ROOT_INO
        self._inodes[ROOT_INO] = root
        self._by_path[b"/"] = ROOT_INO

    def add_dir(self, path: bytes, mode: int = 0o755, uid: int = 0, gid: int = 0) -> None:
        """Make a directory, or set mode and owner of one that was made before."""
        path = _normal(path)
        existing = self._inodes.get(self._by_path.get(path, 0))
        if existing is None:
            directory = DirectoryInode(mode, uid, gid, self._time)
            self._add(path, directory)
            self._parent_of(path).nlink += 1
        elif isinstance(existing, DirectoryInode):
            existing.mode = DirectoryInode(mode, uid, gid, self._time).mode
            existing.uid, existing.gid = uid, gid
        else:
            raise ValueError(f"{path!r} is there already and is no directory")

    def add_dir_later(
        self, path: bytes, fill: Callable[[ImageBuilder], None], *, inodes: int, subdirs: int
    ) -> None:
        """Make a directory (0755) whose content `fill` adds when somebody looks into it.

        `inodes` is how many inodes that will be, `subdirs` how many directories are right
        in it. `fill` gets a builder that knows only this directory, under its full path.
        """
        path = _normal(path)
        directory = _UnreadDirectory(0o755, 0, 0, self._time)
        directory.nlink += subdirs
        self._add(path, directory)
        self._parent_of(path).nlink += 1
        first = self._next_ino
        self._next_ino += inodes
        ino = self._by_path[path]

        def read() -> dict[bytes, tuple[int, int]]:
            part = ImageBuilder(self._time)
            stand_in = DirectoryInode(0o755, 0, 0, self._time)
            part._inodes = {ino: stand_in}
            part._by_path = {path: ino}
            part._next_ino = first
            fill(part)
            if part._next_ino != first + inodes or stand_in.nlink != 2 + subdirs:
                raise ValueError(f"{path!r} holds something else than was said")
            del part._inodes[ino]
            # Two sandboxes may look at the same time: they read the same, and one is kept.
            for number, inode in part._inodes.items():
                self._inodes.setdefault(number, inode)
            directory.next_cookie = stand_in.next_cookie
            return stand_in.entries

        directory.read = read

    def add_file(
        self,
        path: bytes,
        content: Sliceable | Callable[[], Sliceable],
        mode: int = 0o644,
        uid: int = 0,
        gid: int = 0,
        *,
        size: int | None = None,
        content_key: str | None = None,
    ) -> None:
        """Make a file. Content that is a callable is read when a sandbox first reads the
        file, and needs its size in advance. `content_key` names the content (a sha256)
        for whoever wants to know it without reading."""
        if size is None:
            if callable(content):
                raise ValueError(f"{path!r}: content that is read later needs its size")
            size = len(content)
        data = FileContent(ImageData(size, content), content_key)
        self._add(_normal(path), FileInode(mode | S_IFREG, uid, gid, self._time, data))

    def add_symlink(self, path: bytes, target: bytes, uid: int = 0, gid: int = 0) -> None:
        """Make a symbolic link."""
        if not target:
            raise ValueError(f"{path!r}: a symbolic link needs a target")
        self._add(_normal(path), SymlinkInode(S_IFLNK | 0o777, uid, gid, self._time, target))

    def add_device(
        self, path: bytes, major: int, minor: int, mode: int = 0o666, uid: int = 0, gid: int = 0
    ) -> None:
        """Make a character device."""
        rdev = device_number(major, minor)
        self._add(_normal(path), SpecialInode(mode | S_IFCHR, uid, gid, self._time, rdev))

    def add_link(self, path: bytes, existing: bytes) -> None:
        """Give what was added as `existing` another name (a hard link)."""
        ino = self._by_path.get(_normal(existing))
        if ino is None or isinstance(self._inodes[ino], DirectoryInode):
            raise ValueError(f"{existing!r} is no file of this image")
        path = _normal(path)
        directory, name = self._place(path)
        directory.add(name, ino)
        self._by_path[path] = ino
        self._inodes[ino].nlink += 1

    def __contains__(self, path: bytes) -> bool:
        return _normal(path) in self._by_path

    def build(self) -> FrozenTree:
        """Freeze what was added. The builder must not be used any more."""
        return FrozenTree((self._inodes,), self._next_ino, self._next_ino)

    def _add(self, path: bytes, inode: Inode) -> None:
        directory, name = self._place(path)
        ino = self._next_ino
        self._next_ino = ino + 1
        self._inodes[ino] = inode
        self._by_path[path] = ino
        directory.add(name, ino)
        inode.parent = self._by_path[_dirname(path)]
        inode.name = name

    def _place(self, path: bytes) -> tuple[DirectoryInode, bytes]:
        """The directory and the name of a new path; makes directories on the way."""
        name = path.rpartition(b"/")[2]
        if path in self._by_path:
            raise ValueError(f"{path!r} is there already")
        if len(name) > NAME_MAX:
            raise ValueError(f"{path!r}: the name is too long")
        if _dirname(path) not in self._by_path:
            self.add_dir(_dirname(path))
        return self._parent_of(path), name

    def _parent_of(self, path: bytes) -> DirectoryInode:
        parent = self._inodes[self._by_path[_dirname(path)]]
        if not isinstance(parent, DirectoryInode):
            raise ValueError(f"{_dirname(path)!r} is no directory")
        return parent


class _UnreadDirectory(DirectoryInode):
    """A directory whose entries are not known before somebody asks for them."""

    __slots__ = ("read",)

    def __init__(self, mode: int, uid: int, gid: int, now: int) -> None:
        self.read: Callable[[], dict[bytes, tuple[int, int]]] | None = None
        super().__init__(mode, uid, gid, now)

    # The slot of a plain directory holds what was read.
    @property
    def entries(self) -> dict[bytes, tuple[int, int]]:
        read = self.read
        if read is not None:
            _PLAIN_ENTRIES.__set__(self, read())
            self.read = None
        known: dict[bytes, tuple[int, int]] = _PLAIN_ENTRIES.__get__(self)
        return known

    @entries.setter
    def entries(self, entries: dict[bytes, tuple[int, int]]) -> None:
        _PLAIN_ENTRIES.__set__(self, entries)


_PLAIN_ENTRIES: Any = DirectoryInode.__dict__["entries"]


def _normal(path: bytes) -> bytes:
    parts = [part for part in path.split(b"/") if part]
    if not path.startswith(b"/") or b"." in parts or b".." in parts or b"\0" in path:
        raise ValueError(f"{path!r} is no plain absolute path")
    return b"/" + b"/".join(parts)


def _dirname(path: bytes) -> bytes:
    return path.rpartition(b"/")[0] or b"/"
