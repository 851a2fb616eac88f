"""ImageBuilder: builds the tree that all sandboxes share.

Owns how the host describes files before any sandbox exists. Rules: everything belongs to root
unless stated otherwise. Missing parent directories are created (0755). The same calls give the same
result (times are given, not taken from a clock). The content of a large directory may be added
later, when it is first accessed; its inode numbers are reserved, so that the time of access makes
no difference. Mistakes raise `ValueError`: they are the host's, not a guest's.
"""

from __future__ import annotations

from collections.abc import Callable

from wasmsand.kernel.flags import S_IFCHR, S_IFLNK, S_IFREG
from wasmsand.kernel.limits import NAME_MAX
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.image_data import ImageData, Sliceable
from wasmsand.kernel.vfs.inode import (
    DirectoryInode,
    Entries,
    FileInode,
    Inode,
    SpecialInode,
    SymlinkInode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree, SharedTree, new_shared_root
from wasmsand.kernel.vfs.model import device_number


class ImageBuilder:
    """Collects files; `build` freezes them. Paths are absolute and are not resolved through
    symbolic links: use the real paths of files."""

    def __init__(self, time_ns: int = 0, root_ino: int = ROOT_INO) -> None:
        self._time = time_ns
        self._inodes: dict[int, Inode] = {}
        self._by_path: dict[bytes, int] = {}
        self._next_ino = root_ino + 1
        root = DirectoryInode(0o755, 0, 0, time_ns)
        root.parent = root_ino
        self._inodes[root_ino] = root
        self._by_path[b"/"] = root_ino

    def add_dir(self, path: bytes, mode: int = 0o755, uid: int = 0, gid: int = 0) -> None:
        """Create a directory, or set the mode and owner of an existing one."""
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
            raise ValueError(f"{path!r} exists and is not a directory")

    def add_dir_later(
        self, path: bytes, fill: Callable[[ImageBuilder], None], *, inodes: int, subdirs: int
    ) -> None:
        """Create a directory (0755) whose content `fill` adds when it is first accessed.

        `inodes` is the number of inodes in it, `subdirs` the number of directories directly in it.
        `fill` receives a builder that knows only this directory, under its full path.
        """
        path = _normal(path)
        directory = DirectoryInode(0o755, 0, 0, self._time)
        directory.nlink += subdirs
        self._add(path, directory)
        self._parent_of(path).nlink += 1
        first = self._next_ino
        self._next_ino += inodes
        ino = self._by_path[path]

        def read() -> Entries:
            part = ImageBuilder(self._time)
            stand_in = DirectoryInode(0o755, 0, 0, self._time)
            part._inodes = {ino: stand_in}
            part._by_path = {path: ino}
            part._next_ino = first
            fill(part)
            if part._next_ino != first + inodes or stand_in.nlink != 2 + subdirs:
                raise ValueError(f"{path!r} does not have the announced content")
            del part._inodes[ino]
            # Two sandboxes may read it at the same time: they get the same, and one result is kept.
            for number, inode in part._inodes.items():
                self._inodes.setdefault(number, inode)
            directory.next_cookie = stand_in.next_cookie
            return stand_in.entries

        directory.unread = read

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
        memory_key: str | None = None,
    ) -> None:
        """Create a file. If `content` is a callable, it is called when a sandbox first reads the
        file, and `size` is required. `content_key` identifies the content (a sha256) without
        reading it, and `memory_key` the memory with which this program starts."""
        if size is None:
            if callable(content):
                raise ValueError(f"{path!r}: content that is loaded later needs a size")
            size = len(content)
        data = FileContent(ImageData(size, content), content_key, memory_key)
        self._add(_normal(path), FileInode(mode | S_IFREG, uid, gid, self._time, data))

    def add_symlink(self, path: bytes, target: bytes, uid: int = 0, gid: int = 0) -> None:
        """Create a symbolic link."""
        if not target:
            raise ValueError(f"{path!r}: a symbolic link needs a target")
        self._add(_normal(path), SymlinkInode(S_IFLNK | 0o777, uid, gid, self._time, target))

    def add_device(
        self, path: bytes, major: int, minor: int, mode: int = 0o666, uid: int = 0, gid: int = 0
    ) -> None:
        """Create a character device."""
        rdev = device_number(major, minor)
        self._add(_normal(path), SpecialInode(mode | S_IFCHR, uid, gid, self._time, rdev))

    def add_link(self, path: bytes, existing: bytes) -> None:
        """Add another name for `existing` (a hard link)."""
        ino = self._by_path.get(_normal(existing))
        if ino is None or isinstance(self._inodes[ino], DirectoryInode):
            raise ValueError(f"{existing!r} is not a file of this image")
        path = _normal(path)
        directory, name = self._place(path)
        directory.add(name, ino)
        self._by_path[path] = ino
        self._inodes[ino].nlink += 1

    def __contains__(self, path: bytes) -> bool:
        return _normal(path) in self._by_path

    def build(self) -> FrozenTree:
        """Freeze what was added. The builder must not be used afterwards."""
        return FrozenTree((self._inodes,), self._next_ino, self._next_ino)

    @classmethod
    def for_shared_tree(cls, time_ns: int = 0) -> ImageBuilder:
        """A builder whose result can be attached to other trees: see `build_shared`."""
        return cls(time_ns, new_shared_root())

    def build_shared(self) -> SharedTree:
        """Freeze what was added, as a shared tree. The builder must not be used afterwards."""
        return SharedTree(self._inodes, self._by_path[b"/"])

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
        """The directory and the name of a new path; creates missing directories."""
        name = path.rpartition(b"/")[2]
        if path in self._by_path:
            raise ValueError(f"{path!r} exists already")
        if len(name) > NAME_MAX:
            raise ValueError(f"{path!r}: the name is too long")
        if _dirname(path) not in self._by_path:
            self.add_dir(_dirname(path))
        return self._parent_of(path), name

    def _parent_of(self, path: bytes) -> DirectoryInode:
        parent = self._inodes[self._by_path[_dirname(path)]]
        if not isinstance(parent, DirectoryInode):
            raise ValueError(f"{_dirname(path)!r} is not a directory")
        return parent


def _normal(path: bytes) -> bytes:
    parts = [part for part in path.split(b"/") if part]
    if not path.startswith(b"/") or b"." in parts or b".." in parts or b"\0" in path:
        raise ValueError(f"{path!r} is not a plain absolute path")
    return b"/" + b"/".join(parts)


def _dirname(path: bytes) -> bytes:
    return path.rpartition(b"/")[0] or b"/"
