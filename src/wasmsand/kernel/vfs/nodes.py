"""Operations on a node that was already found: attributes, content, lifetime.

Owns `NodeOperations`. Rules: the caller has resolved the path, which checked search permission.
These methods check the object's own permissions, its type, and read-only mounts. Reading and
writing check no permission bits: as on Linux, these were checked when the file was opened.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import (
    FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE,
    FALLOC_FL_ZERO_RANGE,
    MS_NOEXEC,
    PERMISSION_BITS,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_ISGID,
    S_ISUID,
    W_OK,
    X_OK,
)
from wasmsand.kernel.limits import FILE_SIZE_MAX
from wasmsand.kernel.vfs import permissions
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Data, Node
from wasmsand.kernel.vfs.model import (
    NOW,
    Credentials,
    DirEntry,
    FileTime,
    Stat,
    StatFs,
    device_major,
    device_minor,
)
from wasmsand.kernel.vfs.resolver import Resolver

_SPECIAL_CHARACTERS = {ord(c): b"\\%03o" % ord(c) for c in " \t\n\\"}


class NodeOperations(Resolver):
    """The operations on nodes."""

    # Lifetime.

    def retain(self, node: Node) -> None:
        """Keep an object alive even without a name: an open description, a working directory."""
        node.fs.retain(node.ino)

    def release(self, node: Node) -> None:
        """Undo one `retain`; the last release of an object without a name frees it."""
        node.fs.release(node.ino)

    # Queries.

    def stat(self, node: Node) -> Stat:
        """fstat."""
        return node.fs.stat(node.ino)

    def statfs(self, node: Node) -> StatFs:
        """fstatfs, with the flags of the mount."""
        return node.fs.statfs()._replace(flags=self._flags(node.fs))

    def readlink(self, node: Node) -> bytes:
        """The target of a symbolic link; EINVAL for anything else."""
        if node.fs.attributes(node.ino).mode & S_IFMT != S_IFLNK:
            raise KernelError(Errno.EINVAL)
        return node.fs.readlink(node.ino)

    def readdir(self, node: Node, cookie: int = 0, limit: int = 1024) -> list[DirEntry]:
        """At most `limit` entries after `cookie` (0: from the start); empty at the end."""
        if node.fs.attributes(node.ino).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR)
        entries = node.fs.readdir(node.ino, cookie, limit)
        if cookie < 2 and node.ino == node.fs.root_ino and node != self.root:
            # '..' of a mounted root is in the file system below.
            outside = self._up(node.fs, node.ino, self._mount_of.get(node.fs))[1]
            entries = [e._replace(ino=outside) if e.name == b".." else e for e in entries]
        return entries

    def access(self, cred: Credentials, node: Node, mask: int) -> None:
        """access: `mask` of R_OK, W_OK, X_OK; EACCES or EROFS if it is not granted."""
        attributes = node.fs.attributes(node.ino)
        kind = attributes.mode & S_IFMT
        if mask & X_OK and kind == S_IFREG and self._flags(node.fs) & MS_NOEXEC:
            raise KernelError(Errno.EACCES)
        permissions.require(cred, attributes, mask)
        if mask & W_OK and kind in (S_IFREG, S_IFDIR, S_IFLNK):
            self._require_writable(node.fs)

    def content_key(self, node: Node) -> str | None:
        """The hash of a file's content, if the image or `keep_content_key` provided it and the file
        was not written since."""
        return node.fs.content_key(node.ino)

    def is_of_image(self, node: Node) -> bool:
        """Whether a file's content has a hash and is unchanged from the image."""
        return node.fs.is_of_image(node.ino)

    def memory_key(self, node: Node) -> str | None:
        """The hash of the memory with which the program in this file starts. None if it starts
        with its own data, as does every file that is not unchanged from the image."""
        return node.fs.memory_key(node.ino)

    def keep_content_key(self, node: Node, key: str, read_at: Stat) -> None:
        """Store the hash of content that was read when `read_at` was the file's metadata. Does
        nothing if the file has changed since or was removed."""
        try:
            now = node.fs.stat(node.ino)
        except KernelError:
            return
        if (now.ctime_ns, now.mtime_ns, now.size) == (
            read_at.ctime_ns,
            read_at.mtime_ns,
            read_at.size,
        ) and not node.fs.is_of_image(node.ino):
            node.fs.set_content_key(node.ino, key)

    def fd_reference(self, node: Node) -> tuple[int, int] | None:
        """(pid, fd) if a path through /proc/PID/fd led to an object outside any file system: the
        kernel then opens that object again."""
        return node.fs.fd_reference(node.ino)

    def mounts_text(self) -> bytes:
        """/proc/mounts: one line per mount."""
        lines = []
        for mount in self.mounts():
            path = self.path_of(mount.point) if mount.point is not None else b"/"
            fields = (mount.source, path, mount.fs.type_name.encode(), mount.options())
            lines.append(b" ".join([_escape(field) for field in fields]) + b" 0 0\n")
        return b"".join(lines)

    def mountinfo_text(self) -> bytes:
        """/proc/self/mountinfo: the same with device numbers, which also serve as mount ids."""
        lines = []
        for mount in self.mounts():
            path, above = b"/", 1
            if mount.point is not None:
                path, above = self.path_of(mount.point), mount.point.fs.dev
            head = b"%d %d %d:%d /" % (mount.fs.dev, above, *_split_device(mount.fs.dev))
            kind = mount.fs.type_name.encode()
            fields = (head, _escape(path), mount.options(), b"-", kind, _escape(mount.source))
            lines.append(b" ".join(fields) + (b" ro\n" if mount.read_only else b" rw\n"))
        return b"".join(lines)

    # Content.

    def read(self, node: Node, offset: int, size: int) -> bytes:
        """pread of a regular file."""
        return node.fs.read(node.ino, offset, size)

    def write(self, cred: Credentials, node: Node, offset: int, data: Data) -> int:
        """pwrite to a regular file: writes as much as fits, ENOSPC if nothing does."""
        fs = node.fs
        self._require_writable(fs)
        written = fs.write(node.ino, offset, data)
        if cred.uid and fs.attributes(node.ino).mode & (S_ISUID | S_ISGID):
            self._drop_set_id(cred, node)
        return written

    def share_content(self, node: Node) -> FileContent | None:
        """A regular file's current content: see `FileSystem.share_content`."""
        return node.fs.share_content(node.ino)

    def replace_content(self, node: Node, content: FileContent) -> None:
        """Replace the content of a regular file, in one step or not at all."""
        if node.fs.attributes(node.ino).mode & S_IFMT != S_IFREG:
            raise KernelError(Errno.EINVAL)
        self._require_writable(node.fs)
        node.fs.replace_content(node.ino, content)

    def size(self, node: Node) -> int:
        """st_size, faster than stat."""
        return node.fs.size(node.ino)

    def seek_data(self, node: Node, offset: int) -> int:
        """lseek with SEEK_DATA."""
        if offset < 0 or offset >= node.fs.size(node.ino):
            raise KernelError(Errno.ENXIO)
        return node.fs.seek_data(node.ino, offset)

    def seek_hole(self, node: Node, offset: int) -> int:
        """lseek with SEEK_HOLE."""
        if offset < 0 or offset >= node.fs.size(node.ino):
            raise KernelError(Errno.ENXIO)
        return node.fs.seek_hole(node.ino, offset)

    def truncate(self, cred: Credentials, node: Node, size: int) -> None:
        """truncate(2): checks that the caller may write the file."""
        if size < 0:
            raise KernelError(Errno.EINVAL)
        attributes = node.fs.attributes(node.ino)
        kind = attributes.mode & S_IFMT
        if kind != S_IFREG:
            raise KernelError(Errno.EISDIR if kind == S_IFDIR else Errno.EINVAL)
        self._require_writable(node.fs)
        permissions.require(cred, attributes, W_OK)
        if size == node.fs.size(node.ino):
            # Nothing changes, so the times stay, but set-id bits are cleared as for a write.
            self._drop_set_id(cred, node)
        else:
            self.resize(cred, node, size)

    def resize(self, cred: Credentials, node: Node, size: int) -> None:
        """ftruncate of a file that was opened for writing."""
        if size < 0 or node.fs.attributes(node.ino).mode & S_IFMT != S_IFREG:
            raise KernelError(Errno.EINVAL)
        if size > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        self._require_writable(node.fs)
        node.fs.truncate(node.ino, size)
        if cred.uid:
            self._drop_set_id(cred, node)

    def fallocate(self, cred: Credentials, node: Node, mode: int, offset: int, length: int) -> None:
        """fallocate of a file that was opened for writing: allocate, keep the size, punch a hole,
        zero a range."""
        if offset < 0 or length <= 0:
            raise KernelError(Errno.EINVAL)
        if mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE):
            raise KernelError(Errno.EOPNOTSUPP)
        punch, zero = mode & FALLOC_FL_PUNCH_HOLE, mode & FALLOC_FL_ZERO_RANGE
        keep_size = bool(mode & FALLOC_FL_KEEP_SIZE)
        if (punch and zero) or (punch and not keep_size):
            raise KernelError(Errno.EOPNOTSUPP)
        kind = node.fs.attributes(node.ino).mode & S_IFMT
        if kind != S_IFREG:
            errors = {S_IFDIR: Errno.EISDIR, S_IFIFO: Errno.ESPIPE}
            raise KernelError(errors.get(kind, Errno.ENODEV))
        if offset + length > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        self._require_writable(node.fs)
        if punch or zero:
            node.fs.punch_hole(node.ino, offset, length)
        if not punch:
            node.fs.allocate(node.ino, offset, length, keep_size=keep_size)
        if cred.uid:
            self._drop_set_id(cred, node)

    def _drop_set_id(self, cred: Credentials, node: Node) -> None:
        """Clear the set-id bits of a file written by a user other than root."""
        attributes = node.fs.attributes(node.ino)
        if attributes.mode & (S_ISUID | S_ISGID) and cred.uid:
            mode = permissions.without_set_id(cred, attributes)
            if mode != attributes.mode & PERMISSION_BITS:
                node.fs.set_attributes(node.ino, mode=mode)

    # Attributes.

    def chmod(self, cred: Credentials, node: Node, mode: int) -> None:
        """fchmod. EOPNOTSUPP for a symbolic link, as on Linux."""
        self._require_writable(node.fs)
        attributes = node.fs.attributes(node.ino)
        if attributes.mode & S_IFMT == S_IFLNK:
            raise KernelError(Errno.EOPNOTSUPP)
        if not permissions.owns(cred, attributes):
            raise KernelError(Errno.EPERM)
        if cred.uid and not cred.in_group(attributes.gid):
            mode &= ~S_ISGID
        node.fs.set_attributes(node.ino, mode=mode & PERMISSION_BITS)

    def chown(self, cred: Credentials, node: Node, uid: int, gid: int) -> None:
        """fchown; -1 leaves an id unchanged. Clears set-id bits of a file."""
        self._require_writable(node.fs)
        attributes = node.fs.attributes(node.ino)
        if cred.uid:
            owner = cred.uid == attributes.uid
            if uid != -1 and not (owner and uid == attributes.uid):
                raise KernelError(Errno.EPERM)
            if gid != -1 and not (owner and (gid == attributes.gid or cred.in_group(gid))):
                raise KernelError(Errno.EPERM)
        mode = None
        if attributes.mode & S_IFMT != S_IFDIR and attributes.mode & (S_ISUID | S_ISGID):
            mode = permissions.without_set_id(cred, attributes)
            changes = mode != attributes.mode & PERMISSION_BITS
            if changes and not permissions.owns(cred, attributes):
                raise KernelError(Errno.EPERM)
        node.fs.set_attributes(
            node.ino,
            mode=mode,
            uid=uid if uid != -1 else None,
            gid=gid if gid != -1 else None,
        )

    def utimens(
        self,
        cred: Credentials,
        node: Node,
        atime: FileTime | None,
        mtime: FileTime | None,
    ) -> None:
        """futimens. None leaves a time unchanged. Write permission suffices to set both to NOW."""
        if atime is None and mtime is None:
            return
        self._require_writable(node.fs)
        attributes = node.fs.attributes(node.ino)
        if not permissions.owns(cred, attributes):
            if not (atime is NOW and mtime is NOW):
                raise KernelError(Errno.EPERM)
            permissions.require(cred, attributes, W_OK)
        node.fs.set_attributes(node.ino, atime=atime, mtime=mtime)


def _split_device(dev: int) -> tuple[int, int]:
    return device_major(dev), device_minor(dev)


def _escape(field: bytes) -> bytes:
    """Escape white space in octal, to keep the columns of /proc/mounts apart."""
    return b"".join([_SPECIAL_CHARACTERS.get(byte, bytes((byte,))) for byte in field])
