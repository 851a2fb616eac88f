"""Open regular files and directories.

Owns `NodeFile` (the common base, and the description for O_PATH), `RegularFile` and
`DirectoryFile`. Rules: the node is retained while the file is open. The position belongs to the
description. With O_APPEND, writes go to the end of the file whatever the position.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import (
    O_APPEND,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
    SEEK_CUR,
    SEEK_DATA,
    SEEK_END,
    SEEK_HOLE,
    SEEK_SET,
)
from wasmsand.kernel.limits import FILE_SIZE_MAX
from wasmsand.kernel.vfs import Credentials, DirEntry, Namespace, Node, Stat


class NodeFile(OpenFile):
    """A description of an inode. O_PATH uses this class itself."""

    __slots__ = ("_fs", "_ino", "_namespace", "_node", "credentials", "position")

    def __init__(
        self, flags: int, namespace: Namespace, node: Node, credentials: Credentials
    ) -> None:
        super().__init__(flags)
        self._namespace = namespace
        self._node = node
        self.credentials = credentials
        """The opener's credentials: a write by an unprivileged opener clears set-id bits."""
        self.position = 0
        """Offset of the next read or write; for a directory, the cookie of the last entry read."""
        self._fs = fs = node.fs
        self._ino = ino = node.ino
        fs.retain(ino)

    @property
    def node(self) -> Node | None:
        return self._node

    def poll(self) -> int:
        return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM

    def stat(self) -> Stat:
        return self._fs.stat(self._ino)

    def sync(self) -> None:
        pass

    def release(self) -> None:
        self._fs.release(self._ino)


class RegularFile(NodeFile):
    """An open regular file."""

    __slots__ = ()

    def read(self, count: int) -> bytes:
        data = self._fs.read(self._ino, self.position, count)
        self.position += len(data)
        return data

    def read_until(self, count: int, delimiter: int) -> bytes:
        data = self._fs.read(self._ino, self.position, count) if count else b""
        data = data[: data.find(delimiter) + 1 or len(data)]
        self.position += len(data)
        return data

    def write(self, data: bytes) -> int:
        if self.flags & O_APPEND:
            self.position = self._fs.size(self._ino)
        written = self._namespace.write(self.credentials, self._node, self.position, data)
        self.position += written
        return written

    def read_at(self, count: int, offset: int) -> bytes:
        return self._fs.read(self._ino, offset, count)

    def write_at(self, data: bytes, offset: int) -> int:
        if self.flags & O_APPEND:  # as on Linux, although POSIX says otherwise
            offset = self._fs.size(self._ino)
        return self._namespace.write(self.credentials, self._node, offset, data)

    def seek(self, offset: int, whence: int) -> int:
        if whence == SEEK_SET:
            position = offset
        elif whence == SEEK_CUR:
            position = self.position + offset
        elif whence == SEEK_END:
            position = self._fs.size(self._ino) + offset
        elif whence in (SEEK_DATA, SEEK_HOLE):
            if not 0 <= offset < self._fs.size(self._ino):
                raise KernelError(Errno.ENXIO)
            if whence == SEEK_DATA:
                position = self._namespace.seek_data(self._node, offset)
            else:
                position = self._namespace.seek_hole(self._node, offset)
        else:
            raise KernelError(Errno.EINVAL)
        if not 0 <= position <= FILE_SIZE_MAX:
            raise KernelError(Errno.EINVAL)
        self.position = position
        return position

    def truncate(self, length: int) -> None:
        self._namespace.resize(self.credentials, self._node, length)

    def write_limit(self) -> int:
        """Offset of the next write (for RLIMIT_FSIZE)."""
        if self.flags & O_APPEND:
            return self._fs.size(self._ino)
        return self.position


class DirectoryFile(NodeFile):
    """An open directory."""

    __slots__ = ()

    def read(self, count: int) -> bytes:
        raise KernelError(Errno.EISDIR)

    def read_at(self, count: int, offset: int) -> bytes:
        raise KernelError(Errno.EISDIR)

    def entries(self, limit: int) -> list[DirEntry]:
        """The next entries. The caller advances `position` past those it used."""
        return self.entries_after(self.position, limit)

    @property
    def lists_fully(self) -> bool:
        """Whether fewer entries than the limit mean the end of the directory."""
        return self._fs.lists_fully

    def entries_after(self, cookie: int, limit: int) -> list[DirEntry]:
        """The entries after the one with `cookie`; 0 means from the start."""
        return self._namespace.readdir(self._node, cookie, limit)

    def seek(self, offset: int, whence: int) -> int:
        if whence == SEEK_CUR:
            offset += self.position
        elif whence != SEEK_SET:
            raise KernelError(Errno.EINVAL)
        if offset < 0:
            raise KernelError(Errno.EINVAL)
        self.position = offset
        return offset
