"""Namespace: every operation on a path, with Linux's rules and order of errors.

Owns `Namespace`, which the rest of the kernel uses for all files. Rules: `base` is the directory at
which a relative path starts. Only `resolver` walks paths. Permissions are checked before changes. A
method that fails has changed nothing. The order of checks is Linux's, because programs (and their
test suites) depend on the errno.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import (
    MS_NODEV,
    O_ACCMODE,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOATIME,
    O_NOFOLLOW,
    O_PATH,
    O_TMPFILE_BIT,
    O_TRUNC,
    PERMISSION_BITS,
    R_OK,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
    S_ISVTX,
    W_OK,
    X_OK,
)
from wasmsand.kernel.limits import NAME_MAX, PATH_MAX, SYMLINK_DEPTH_MAX
from wasmsand.kernel.vfs import permissions
from wasmsand.kernel.vfs.filesystem import Attributes, FileSystem, Node
from wasmsand.kernel.vfs.model import Credentials, is_directory
from wasmsand.kernel.vfs.nodes import NodeOperations
from wasmsand.kernel.vfs.resolver import Walked

_ACCESS_OF_OPEN = (R_OK, W_OK, R_OK | W_OK, R_OK | W_OK)
_NO_NAME = (b"", b".", b"..")
"""Last components that do not name a directory entry."""


class Namespace(NodeOperations):
    """The files of one sandbox."""

    _unnamed = 0
    """Number for the temporary name of an unnamed file; incremented past names that exist."""

    # Opening.

    def open_node(
        self,
        cred: Credentials,
        base: Node,
        path: bytes,
        flags: int,
        mode: int = 0,
        umask: int = 0,
    ) -> Node:
        """Find or create what open(2) opens; check access; truncate. The node is not retained. A
        FIFO, device or descriptor (`fd_reference`) is returned as it is: the kernel decides what
        opening it means."""
        if flags & O_PATH:
            node = self.resolve(cred, base, path, follow=not flags & O_NOFOLLOW)
            if flags & O_DIRECTORY and not is_directory(node.fs.attributes(node.ino).mode):
                raise KernelError(Errno.ENOTDIR)
            return node
        if flags & O_TMPFILE_BIT:
            raise KernelError(Errno.EOPNOTSUPP)
        if not flags & O_CREAT:
            node = self.resolve(cred, base, path, follow=not flags & O_NOFOLLOW)
        elif flags & O_DIRECTORY:
            raise KernelError(Errno.EINVAL)
        else:
            node, created = self._find_or_create(cred, base, path, flags, mode, umask)
            if created:
                return node
        self.reopen(cred, node, flags)
        return node

    def reopen(self, cred: Credentials, node: Node, flags: int) -> None:
        """The part of open(2) for an existing object: check its type and permissions, and
        truncate."""
        fs, ino = node.fs, node.ino
        attributes = fs.attributes(ino)
        kind = attributes.mode & S_IFMT
        wanted = _ACCESS_OF_OPEN[flags & O_ACCMODE]
        if flags & O_TRUNC:
            wanted |= W_OK
        if kind != S_IFREG:
            self._require_openable(fs, kind, flags, wanted)
        elif flags & O_DIRECTORY:
            raise KernelError(Errno.ENOTDIR)
        elif wanted & W_OK:
            self._require_writable(fs)
        permissions.require(cred, attributes, wanted)
        if flags & O_NOATIME and not permissions.owns(cred, attributes):
            raise KernelError(Errno.EPERM)
        if kind == S_IFSOCK:
            raise KernelError(Errno.ENXIO)
        if flags & O_TRUNC and kind == S_IFREG:
            self.resize(cred, node, 0)

    def _require_openable(self, fs: FileSystem, kind: int, flags: int, wanted: int) -> None:
        """Refuse flags that do not fit the type of an object that is not a regular file."""
        if flags & O_CREAT and kind == S_IFDIR:
            raise KernelError(Errno.EISDIR)
        if flags & O_DIRECTORY and kind != S_IFDIR:
            raise KernelError(Errno.ENOTDIR)
        if kind == S_IFLNK:
            raise KernelError(Errno.ELOOP)
        if kind == S_IFDIR and wanted & W_OK:
            raise KernelError(Errno.EISDIR)
        if kind in (S_IFCHR, S_IFBLK) and self._flags(fs) & MS_NODEV:
            raise KernelError(Errno.EACCES)

    def _find_or_create(
        self, cred: Credentials, base: Node, path: bytes, flags: int, mode: int, umask: int
    ) -> tuple[Node, bool]:
        """What O_CREAT finds, or the regular file that it creates; True if it created one."""
        links = depth = 0
        while True:
            fs, ino, name, slash, links, depth = self._walk(
                cred, base, path, False, True, links, depth
            )
            if name in _NO_NAME:
                node = self.resolve(cred, Node(fs, ino), name or b"/")
                break
            if slash:
                raise KernelError(Errno.EISDIR)
            child = fs.lookup(ino, name)
            if child is None:
                return self._create(cred, fs, ino, name, mode, umask), True
            mount = self._mount_of.get(fs)
            node = Node(*self._down(fs, child, mount)[:2])
            if node.fs.attributes(node.ino).mode & S_IFMT != S_IFLNK or flags & O_NOFOLLOW:
                break
            if flags & O_EXCL:
                break
            links += 1
            if links > SYMLINK_DEPTH_MAX:
                raise KernelError(Errno.ELOOP)
            target = fs.follow(child)
            if isinstance(target, Node):
                # Let the walk apply its rule for magic links.
                return self.resolve(cred, type(base)(fs, ino), name), False
            base, path = type(base)(fs, ino), target
        if flags & O_EXCL:
            raise KernelError(Errno.EEXIST)
        return node, False

    def _create(
        self, cred: Credentials, fs: FileSystem, parent: int, name: bytes, mode: int, umask: int
    ) -> Node:
        if len(name) > NAME_MAX or b"\0" in name:
            raise _bad_name(name)
        directory = self._may_create(cred, fs, parent)
        mode, uid, gid = permissions.owner_of_new(
            cred, directory, mode & PERMISSION_BITS, umask, is_directory=False
        )
        return Node(fs, fs.create(parent, name, mode, uid, gid))

    def make_unnamed(self, cred: Credentials, directory: Node, mode: int, umask: int = 0) -> Node:
        """Create a regular file without a name (O_TMPFILE) on the file system of `directory`. It is
        returned retained: its last `release` removes it."""
        fs, parent = directory.fs, directory.ino
        if not is_directory(fs.attributes(parent).mode):
            raise KernelError(Errno.ENOTDIR)
        if not fs.has_unnamed_files:
            raise KernelError(Errno.EOPNOTSUPP)
        while fs.lookup(parent, name := b".unnamed-%d" % self._unnamed) is not None:
            self._unnamed += 1
        node = self._create(cred, fs, parent, name, mode, umask)
        self.retain(node)
        fs.unlink(parent, name)
        return node

    # Creating names.

    def mkdir(self, cred: Credentials, base: Node, path: bytes, mode: int, umask: int = 0) -> Node:
        """mkdir(2)."""
        fs, parent, name = self._new_name(cred, base, path, is_directory=True)
        directory = self._may_create(cred, fs, parent)
        mode, uid, gid = permissions.owner_of_new(
            cred, directory, mode & (0o777 | S_ISVTX), umask, is_directory=True
        )
        return Node(fs, fs.mkdir(parent, name, mode, uid, gid))

    def mknod(
        self,
        cred: Credentials,
        base: Node,
        path: bytes,
        mode: int,
        rdev: int = 0,
        umask: int = 0,
    ) -> Node:
        """mknod(2): everyone may create FIFOs, sockets and regular files; only root devices."""
        kind = mode & S_IFMT or S_IFREG
        if kind == S_IFDIR:
            raise KernelError(Errno.EPERM)
        if kind not in (S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK):
            raise KernelError(Errno.EINVAL)
        fs, parent, name = self._new_name(cred, base, path)
        directory = self._may_create(cred, fs, parent)
        if kind in (S_IFCHR, S_IFBLK) and cred.uid:
            raise KernelError(Errno.EPERM)
        mode, uid, gid = permissions.owner_of_new(
            cred, directory, mode & PERMISSION_BITS, umask, is_directory=False
        )
        if kind == S_IFREG:
            return Node(fs, fs.create(parent, name, mode, uid, gid))
        if kind not in (S_IFCHR, S_IFBLK):
            rdev = 0
        return Node(fs, fs.mknod(parent, name, kind | mode, rdev, uid, gid))

    def symlink(self, cred: Credentials, target: bytes, base: Node, path: bytes) -> Node:
        """symlink(2): create `path` as a symbolic link to `target`."""
        if not target:
            raise KernelError(Errno.ENOENT)
        if len(target) >= PATH_MAX:
            raise KernelError(Errno.ENAMETOOLONG)
        if b"\0" in target:
            raise KernelError(Errno.EINVAL, "NUL in a symbolic link's target")
        fs, parent, name = self._new_name(cred, base, path)
        directory = self._may_create(cred, fs, parent)
        _, uid, gid = permissions.owner_of_new(cred, directory, 0o777, 0, is_directory=False)
        return Node(fs, fs.symlink(parent, name, target, uid, gid))

    def link(self, cred: Credentials, node: Node, base: Node, path: bytes) -> None:
        """link(2): give `node` the name `path`."""
        fs, parent, name = self._new_name(cred, base, path)
        if fs is not node.fs:
            raise KernelError(Errno.EXDEV)
        self._may_create(cred, fs, parent)
        if is_directory(fs.attributes(node.ino).mode):
            raise KernelError(Errno.EPERM)
        fs.link(node.ino, parent, name)

    def _new_name(
        self, cred: Credentials, base: Node, path: bytes, *, is_directory: bool = False
    ) -> tuple[FileSystem, int, bytes]:
        """The directory and the name for a new object; EEXIST if it exists."""
        walked = self._walk(cred, base, path, False, True)
        fs, ino, name = walked.fs, walked.ino, walked.name
        if name in _NO_NAME or fs.lookup(ino, name) is not None:
            raise KernelError(Errno.EEXIST)
        if len(name) > NAME_MAX or b"\0" in name:
            raise _bad_name(name)
        if walked.slash and not is_directory:
            raise KernelError(Errno.ENOENT)
        self._require_writable(fs)
        return fs, ino, name

    def _may_create(self, cred: Credentials, fs: FileSystem, parent: int) -> Attributes:
        """The attributes of a directory, after checking that the caller may create names in it."""
        self._require_writable(fs)
        directory = fs.attributes(parent)
        permissions.require(cred, directory, W_OK | X_OK)
        return directory

    # Removing names.

    def unlink(self, cred: Credentials, base: Node, path: bytes) -> None:
        """unlink(2). EISDIR for a directory, as on Linux."""
        walked = self._walk(cred, base, path, False, True)
        if walked.name in _NO_NAME:
            raise KernelError(Errno.EISDIR)
        fs = walked.fs
        self._require_writable(fs)
        child = self._existing(walked)
        victim = fs.attributes(child)
        if walked.slash:
            raise KernelError(Errno.EISDIR if is_directory(victim.mode) else Errno.ENOTDIR)
        permissions.require_removal(cred, fs.attributes(walked.ino), victim)
        if is_directory(victim.mode):
            raise KernelError(Errno.EISDIR)
        if self._is_mount_point(fs, child):
            raise KernelError(Errno.EBUSY)
        fs.unlink(walked.ino, walked.name)

    def rmdir(self, cred: Credentials, base: Node, path: bytes) -> None:
        """rmdir(2)."""
        walked = self._walk(cred, base, path, False, True)
        if walked.name in _NO_NAME:
            errors = {b"": Errno.EBUSY, b".": Errno.EINVAL, b"..": Errno.ENOTEMPTY}
            raise KernelError(errors[walked.name])
        fs = walked.fs
        self._require_writable(fs)
        child = self._existing(walked)
        victim = fs.attributes(child)
        permissions.require_removal(cred, fs.attributes(walked.ino), victim)
        if not is_directory(victim.mode):
            raise KernelError(Errno.ENOTDIR)
        if self._is_mount_point(fs, child):
            raise KernelError(Errno.EBUSY)
        fs.rmdir(walked.ino, walked.name)

    def _existing(self, walked: Walked) -> int:
        child = walked.fs.lookup(walked.ino, walked.name)
        if child is None:
            long = len(walked.name) > NAME_MAX
            raise KernelError(Errno.ENAMETOOLONG if long else Errno.ENOENT)
        return child

    # Renaming.

    def rename(
        self,
        cred: Credentials,
        base: Node,
        path: bytes,
        new_base: Node,
        new_path: bytes,
        flags: int = 0,
    ) -> None:
        """renameat2(2) with RENAME_NOREPLACE and RENAME_EXCHANGE."""
        exchange = bool(flags & RENAME_EXCHANGE)
        if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) or (exchange and flags & RENAME_NOREPLACE):
            raise KernelError(Errno.EINVAL)
        old = self._walk(cred, base, path, False, True)
        new = self._walk(cred, new_base, new_path, False, True)
        if old.fs is not new.fs:
            raise KernelError(Errno.EXDEV)
        if old.name in _NO_NAME:
            raise KernelError(Errno.EBUSY)
        if new.name in _NO_NAME:
            raise KernelError(Errno.EEXIST if flags & RENAME_NOREPLACE else Errno.EBUSY)
        fs = old.fs
        self._require_writable(fs)
        ino = self._existing(old)
        target = fs.lookup(new.ino, new.name)
        if target is None and (len(new.name) > NAME_MAX or b"\0" in new.name):
            raise _bad_name(new.name)
        if target is None and exchange:
            raise KernelError(Errno.ENOENT)
        if target is not None and flags & RENAME_NOREPLACE:
            raise KernelError(Errno.EEXIST)
        self._check_rename_shape(old, ino, new, target, exchange)
        if ino == target:
            return
        self._check_rename_permission(cred, old, ino, new, target, exchange)
        if exchange:
            fs.exchange(old.ino, old.name, new.ino, new.name)
        else:
            fs.rename(old.ino, old.name, new.ino, new.name)

    def _check_rename_shape(
        self, old: Walked, ino: int, new: Walked, target: int | None, exchange: bool
    ) -> None:
        """Check trailing slashes, and that neither end is inside the other."""
        fs = old.fs
        moves_directory = is_directory(fs.attributes(ino).mode)
        meets_directory = target is not None and is_directory(fs.attributes(target).mode)
        if exchange and new.slash and not meets_directory:
            raise KernelError(Errno.ENOTDIR)
        if not moves_directory and (old.slash or (new.slash and not exchange)):
            raise KernelError(Errno.ENOTDIR)
        if moves_directory and fs.contains(ino, new.ino):
            raise KernelError(Errno.EINVAL)
        if target is not None and meets_directory and fs.contains(target, old.ino):
            raise KernelError(Errno.EINVAL if exchange else Errno.ENOTEMPTY)

    def _check_rename_permission(
        self,
        cred: Credentials,
        old: Walked,
        ino: int,
        new: Walked,
        target: int | None,
        exchange: bool,
    ) -> None:
        fs = old.fs
        source = fs.attributes(ino)
        source_directory, target_directory = fs.attributes(old.ino), fs.attributes(new.ino)
        permissions.require_removal(cred, source_directory, source)
        if target is None:
            permissions.require(cred, target_directory, W_OK | X_OK)
        else:
            victim = fs.attributes(target)
            permissions.require_removal(cred, target_directory, victim)
            if not exchange and is_directory(source.mode) != is_directory(victim.mode):
                raise KernelError(Errno.ENOTDIR if is_directory(source.mode) else Errno.EISDIR)
            if exchange and old.ino != new.ino and is_directory(victim.mode):
                permissions.require(cred, victim, W_OK)
        if old.ino != new.ino and is_directory(source.mode):
            # Its '..' entry changes.
            permissions.require(cred, source, W_OK)
        if self._is_mount_point(fs, ino) or (
            target is not None and self._is_mount_point(fs, target)
        ):
            raise KernelError(Errno.EBUSY)


def _bad_name(name: bytes) -> KernelError:
    """The error for an invalid name: too long, or with a NUL."""
    if len(name) > NAME_MAX:
        return KernelError(Errno.ENAMETOOLONG)
    return KernelError(Errno.EINVAL, "NUL in a name")
