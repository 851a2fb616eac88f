"""Which file system is mounted where.

Owns `Mount` and `MountTable`. Rules: a file system is mounted at most once in a namespace, so a
node determines its mount. A mount point is retained and cannot be removed or renamed. Nothing can
be mounted on the root.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RDONLY, S_IFMT
from wasmsand.kernel.vfs.filesystem import FileSystem, Node

_FIRST_DEV: Final = 0x20


class Mount:
    """One mounted file system. `covered` maps inode numbers of this file system to the mounts on
    them."""

    __slots__ = ("covered", "flags", "fs", "point", "source")

    def __init__(self, fs: FileSystem, point: Node | None, flags: int, source: bytes) -> None:
        self.fs = fs
        self.point = point
        self.flags = flags
        self.source = source
        self.covered: dict[int, Mount] = {}

    @property
    def read_only(self) -> bool:
        return bool(self.flags & MS_RDONLY)

    def options(self) -> bytes:
        """The options in /proc/mounts."""
        words = [b"ro" if self.read_only else b"rw"]
        for flag, word in ((MS_NOSUID, b"nosuid"), (MS_NODEV, b"nodev"), (MS_NOEXEC, b"noexec")):
            if self.flags & flag:
                words.append(word)
        return b",".join((*words, b"relatime"))


class MountTable:
    """The mounts of one sandbox. `root` is where absolute paths start."""

    def __init__(self, root_fs: FileSystem, flags: int = 0, source: bytes = b"root") -> None:
        self.root = Node(root_fs, root_fs.root_ino)
        self._next_dev = _FIRST_DEV
        self._mount_of: dict[FileSystem, Mount] = {}
        self._register(Mount(root_fs, None, flags, source))

    def mount(self, node: Node, fs: FileSystem, flags: int = 0, source: bytes = b"none") -> None:
        """Mount `fs` on a directory (or, if its root is a file, on a file)."""
        if fs in self._mount_of or node == self.root:
            raise KernelError(Errno.EBUSY)
        if (node.fs.attributes(node.ino).mode ^ fs.attributes(fs.root_ino).mode) & S_IFMT:
            raise KernelError(Errno.ENOTDIR)
        below = self._mount_of[node.fs]
        if node.ino in below.covered:
            raise KernelError(Errno.EBUSY)
        node.fs.retain(node.ino)
        mount = Mount(fs, node, flags, source)
        self._register(mount)
        below.covered[node.ino] = mount
        node.fs.mounts_changed()

    def unmount(self, fs: FileSystem) -> None:
        """Unmount a file system; EBUSY while something is mounted inside it. Nodes of it that are
        still in use keep working."""
        mount = self._mount_of.get(fs)
        if mount is None:
            raise KernelError(Errno.EINVAL)
        if mount.point is None or mount.covered:
            raise KernelError(Errno.EBUSY)
        del self._mount_of[fs]
        del self._mount_of[mount.point.fs].covered[mount.point.ino]
        mount.point.fs.mounts_changed()
        mount.point.fs.release(mount.point.ino)

    def mounts(self) -> list[Mount]:
        """All mounts in the order they were made, the root first."""
        return list(self._mount_of.values())

    def _register(self, mount: Mount) -> None:
        self._mount_of[mount.fs] = mount
        mount.fs.dev = self._next_dev
        self._next_dev += 1

    def _flags(self, fs: FileSystem) -> int:
        """Mount flags; 0 for an object outside every mount (a pipe)."""
        mount = self._mount_of.get(fs)
        return mount.flags if mount is not None else 0

    def honours_set_ids(self, node: Node) -> bool:
        """Whether set-id bits of a file have an effect; not if it is in a mount of the host."""
        return not self._flags(node.fs) & MS_NOSUID

    def _is_mount_point(self, fs: FileSystem, ino: int) -> bool:
        mount = self._mount_of.get(fs)
        return mount is not None and ino in mount.covered

    def _require_writable(self, fs: FileSystem) -> None:
        mount = self._mount_of.get(fs)
        if mount is not None and mount.flags & MS_RDONLY:
            raise KernelError(Errno.EROFS)
