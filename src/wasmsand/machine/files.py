"""Host-side access to a sandbox's files.

Owns `SandboxFiles`. Rules: the host acts as root, but the files that it creates belong to the
sandbox's user. Every method may raise `KernelError`. Each hold of the lock does bounded work (see
`host_access`). The cost of an operation depends on the data that files hold, not on their size
with holes. A write replaces the whole content in one step or leaves the file unchanged.
"""

from __future__ import annotations

import builtins
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import FALLOC_FL_KEEP_SIZE, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import HOST_LISTING_BYTES, IO_CHUNK, PATH_MAX, PROC_FILE_MAX
from wasmsand.kernel.vfs import ROOT, FileContent, Namespace, Node, Stat
from wasmsand.machine import trees
from wasmsand.machine.host_access import HostAccess

if TYPE_CHECKING:
    from wasmsand.machine.host_access import HostedMachine

_CREATE_NEW: Final = 0o1 | 0o100 | 0o200
"""O_WRONLY, O_CREAT, O_EXCL."""
_TYPES: Final = {
    S_IFREG: "file",
    S_IFDIR: "dir",
    S_IFLNK: "symlink",
    0o010000: "fifo",
    0o020000: "device",
    0o140000: "socket",
}


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the host sees it."""

    name: str
    type: str
    size: int
    mode: int
    mtime_ns: int
    path: str
    """The absolute path by which it was found."""


class SandboxFiles:
    """The files of one sandbox. Relative paths start at /."""

    def __init__(self, machine: HostedMachine) -> None:
        self._machine = machine

    def _access(self) -> HostAccess:
        return HostAccess(self._machine)

    # Content.

    def read(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """A file's content, or a part of it, as it is at one moment.

        EFBIG if the holes in that part are larger than the sandbox's file system.
        """
        with self._access() as namespace:
            node = _resolve(namespace, path)
            _require_regular(namespace, node, path)
            stat = namespace.stat(node)
            # Files in /proc report size 0.
            rest = max(0, stat.size - offset) if stat.size else PROC_FILE_MAX
            wanted = rest if count is None else min(count, rest)
            if wanted > stat.blocks * 512:
                self.require_few_holes(wanted - stat.blocks * 512, path)
            content = namespace.share_content(node) if wanted > IO_CHUNK else None
            if content is None:
                return namespace.read(node, offset, min(wanted, max(IO_CHUNK, PROC_FILE_MAX)))
        # Shared content is immutable, so copying the bytes needs no lock.
        return content.read(offset, wanted)

    def require_few_holes(self, holes: int, path: str) -> None:
        """EFBIG if the holes exceed the file system's size: holes cost the guest nothing, but the
        reader needs memory for them."""
        limit = self._machine.kernel.limits.fs_limit_bytes
        if holes > max(limit, PROC_FILE_MAX):
            raise KernelError(
                Errno.EFBIG,
                f"{path} has {holes} bytes of holes; read it in parts with files.read_stream",
            )

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Replace a file's content; create the file and its directories if necessary.

        An existing file keeps its owner, and its mode unless `mode` is given. Symbolic links are
        followed.
        """
        access = self._access()
        if len(data) > access.limits.fs_limit_bytes:  # before it is copied
            raise self._machine.kernel.root.space.full()
        content = trees.content_of(data)
        try:
            with access as namespace:
                _put(namespace, access, path, content, mode)
        except KernelError as error:
            if error.errno is not Errno.ENOENT:
                raise
            _make_parents(access, path)
            with access as namespace:
                _put(namespace, access, path, content, mode)

    def keep(self, path: str) -> FileContent:
        """The content of a regular file, for `write_kept`. It shares memory with the file."""
        with self._access() as namespace:
            node = _resolve(namespace, path)
            _require_regular(namespace, node, path)
            content = namespace.share_content(node)
        return trees.content_of(self.read(path)) if content is None else content

    def write_kept(self, path: str, content: FileContent, mode: int) -> None:
        """Give a file the content that `keep` has returned."""
        access = self._access()
        with access as namespace:
            _put(namespace, access, path, content, mode)

    def append(self, path: str, data: bytes) -> None:
        """Append to a file; create the file and its directories if necessary. Either all of `data`
        is appended or nothing. Data longer than IO_CHUNK is appended in pieces, between which
        programs may append their own."""
        access = self._access()
        with access as namespace:
            node = _find(namespace, path)
            if node is not None:
                _require_regular(namespace, node, path)
                if len(data) <= IO_CHUNK:
                    _append_whole(namespace, node, data)
                    return
                size = namespace.size(node)
                namespace.fallocate(ROOT, node, FALLOC_FL_KEEP_SIZE, size, len(data))
                namespace.retain(node)
        if node is None:
            self.write(path, data)
            return
        try:
            _append_pieces(access, node, size, data)
        finally:
            with self._machine.lock:
                self._machine.kernel.namespace.release(node)

    # Directories.

    def mkdir(self, path: str, *, parents: bool = True) -> None:
        """Create a directory. With `parents`, also create those above; an existing one is no
        error."""
        access = self._access()
        if parents:
            _make_directories(access, _bytes(path))
        else:
            with access as namespace:
                _make_directory(namespace, access, namespace.root, _bytes(path))

    def list(self, path: str) -> list[FileEntry]:
        """The entries of a directory, sorted by name. EFBIG if the paths are too long (see
        `tree`)."""
        access = self._access()
        return _listed(path, trees.entries(access, _directory(access, path)))

    def tree(self, path: str) -> builtins.list[FileEntry]:
        """Everything below a directory: each directory before its entries, sorted by name.

        EFBIG if all paths together are longer than HOST_LISTING_BYTES: a guest pays for each name
        once, but a listing repeats it in every path below.
        """
        access = self._access()
        return _listed(path, trees.walk(access, _directory(access, path), into_mounts=True))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive`, a whole tree."""
        where = _bytes(path)
        access = self._access()
        with access as namespace:
            root = namespace.root
            node = namespace.resolve(ROOT, root, where, follow=False)
            if namespace.stat(node).mode & S_IFMT != S_IFDIR:
                namespace.unlink(ROOT, root, where)
                return
            if not recursive:
                namespace.rmdir(ROOT, root, where)
                return
        trees.remove(access, where)

    def rename(self, source: str, target: str) -> None:
        """Like rename(2)."""
        with self._access() as namespace:
            root = namespace.root
            namespace.rename(ROOT, root, _bytes(source), root, _bytes(target))

    def copy(self, source: str, target: str) -> None:
        """Copy a file, a symbolic link or a tree to the path `target`, with its modes."""
        access = self._access()
        _make_parents(access, target)
        trees.copy(access, _bytes(source), _bytes(target))

    # Attributes and links.

    def chmod(self, path: str, mode: int) -> None:
        """Set the permission bits. Symbolic links are followed."""
        with self._access() as namespace:
            namespace.chmod(ROOT, _resolve(namespace, path), mode)

    def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link."""
        access = self._access()
        _make_parents(access, path)
        with access as namespace:
            node = namespace.symlink(ROOT, _bytes(target), namespace.root, _bytes(path))
            namespace.chown(ROOT, node, access.uid, access.gid)

    def read_link(self, path: str) -> str:
        """The target of a symbolic link."""
        with self._access() as namespace:
            node = _resolve(namespace, path, follow=False)
            if namespace.stat(node).mode & S_IFMT != S_IFLNK:
                raise KernelError(Errno.EINVAL, f"not a symbolic link: {path}")
            return namespace.readlink(node).decode("utf-8", "surrogateescape")

    def stat(self, path: str, *, follow: bool = True) -> FileEntry:
        """A file's type, size, mode and time."""
        with self._access() as namespace:
            stat = namespace.stat(_resolve(namespace, path, follow=follow))
        return _entry(path, b"", stat)

    def exists(self, path: str) -> bool:
        """Whether the path leads to an existing file."""
        try:
            self.stat(path)
        except KernelError as error:
            if error.errno in (Errno.ENOENT, Errno.ENOTDIR, Errno.ELOOP):
                return False
            raise
        return True


# The functions below that take a namespace run in one step, with the lock held.


def _resolve(namespace: Namespace, path: str, *, follow: bool = True) -> Node:
    return namespace.resolve(ROOT, namespace.root, _bytes(path), follow=follow)


def _find(namespace: Namespace, path: str) -> Node | None:
    try:
        return _resolve(namespace, path)
    except KernelError as error:
        if error.errno is not Errno.ENOENT:
            raise
    return None


def _require_regular(namespace: Namespace, node: Node, path: str) -> None:
    kind = namespace.stat(node).mode & S_IFMT
    if kind == S_IFDIR:
        raise KernelError(Errno.EISDIR, path)
    if kind != S_IFREG:
        raise KernelError(Errno.EINVAL, f"not a regular file: {path}")


def _put(
    namespace: Namespace, access: HostAccess, path: str, content: FileContent, mode: int | None
) -> None:
    """Make `content` the content of the file at `path`; ENOENT if its directory is missing."""
    node = _find(namespace, path)
    if node is None:
        _create(namespace, access, _bytes(path), content, 0o644 if mode is None else mode)
        return
    _require_regular(namespace, node, path)
    stat = namespace.stat(node)
    if mode is None:
        mode = stat.mode & 0o7777
    if stat.nlink > 1 or not content.size:  # its other names must show the change too
        namespace.replace_content(node, content)
        if mode != stat.mode & 0o7777:
            namespace.chmod(ROOT, node, mode)
        return
    # Processes that have the file open keep the old content.
    target = namespace.path_of(node)
    temporary = target.rpartition(b"/")[0] + b"/" + trees.temporary_name()
    fresh = _create(namespace, access, temporary, content, mode)
    namespace.chown(ROOT, fresh, stat.uid, stat.gid)
    namespace.chmod(ROOT, fresh, mode)
    namespace.rename(ROOT, namespace.root, temporary, namespace.root, target)


def _create(
    namespace: Namespace, access: HostAccess, path: bytes, content: FileContent, mode: int
) -> Node:
    node = namespace.open_node(ROOT, namespace.root, path, _CREATE_NEW, mode)
    namespace.chown(ROOT, node, access.uid, access.gid)
    try:
        namespace.replace_content(node, content)
    except KernelError:
        namespace.unlink(ROOT, namespace.root, path)
        raise
    return node


def _append_whole(namespace: Namespace, node: Node, data: bytes) -> None:
    size = namespace.size(node)
    done = 0
    try:
        while done < len(data):
            done += namespace.write(ROOT, node, size + done, data[done:])
    except KernelError:
        namespace.resize(ROOT, node, size)
        raise


def _append_pieces(access: HostAccess, node: Node, size: int, data: bytes) -> None:
    """Append to a file of `size` bytes for which space is already reserved."""
    for start in range(0, len(data), IO_CHUNK):
        with access as namespace:
            try:
                _append_whole(namespace, node, data[start : start + IO_CHUNK])
            except KernelError:
                if namespace.size(node) == size + start:  # nobody else has appended
                    namespace.resize(ROOT, node, size)
                raise


def _make_parents(access: HostAccess, path: str) -> None:
    parent = _bytes(path).rstrip(b"/").rpartition(b"/")[0]
    if parent:
        _make_directories(access, parent)


def _make_directories(access: HostAccess, path: bytes) -> None:
    with access as namespace:
        node = namespace.root
        if not path.strip(b"/"):
            return
    if len(path) >= PATH_MAX:
        raise KernelError(Errno.ENAMETOOLONG)
    made = b""
    # One name per step: each name may be a symbolic link to a long path.
    for part in path.strip(b"/").split(b"/"):
        made += b"/" + part
        try:
            with access as namespace:
                node = _enter_or_make(namespace, access, node, part or b".")
        except KernelError as error:
            if error.errno is Errno.ESRCH:
                raise
            raise KernelError(error.errno, made.decode("utf-8", "replace")) from None


def _enter_or_make(namespace: Namespace, access: HostAccess, base: Node, name: bytes) -> Node:
    try:
        node = namespace.resolve(ROOT, base, name)
    except KernelError as error:
        if error.errno is not Errno.ENOENT:
            raise
        return _make_directory(namespace, access, base, name)
    if namespace.stat(node).mode & S_IFMT != S_IFDIR:
        raise KernelError(Errno.ENOTDIR)
    return node


def _make_directory(namespace: Namespace, access: HostAccess, base: Node, path: bytes) -> Node:
    node = namespace.mkdir(ROOT, base, path, 0o755)
    namespace.chown(ROOT, node, access.uid, access.gid)
    return node


def _directory(access: HostAccess, path: str) -> Node:
    with access as namespace:
        node = _resolve(namespace, path)
        if namespace.stat(node).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, path)
        return node


def _listed(path: str, found: Iterable[trees.Found]) -> list[FileEntry]:
    listed = []
    left = HOST_LISTING_BYTES
    for entry in found:
        left -= len(path) + len(entry.path)
        if left < 0:
            raise KernelError(
                Errno.EFBIG,
                f"the paths below {path} take more than {HOST_LISTING_BYTES} bytes in total; "
                "list its directories one by one",
            )
        listed.append(_entry(path, entry.path, entry.stat))
    return listed


def _entry(base: str, relative: bytes, stat: Stat) -> FileEntry:
    path = base
    if relative:
        path = posixpath.join(base, relative.decode("utf-8", "surrogateescape"))
    name = path.rstrip("/").rpartition("/")[2] or "/"
    kind = _TYPES.get(stat.mode & S_IFMT, "device")
    size = 0 if kind == "dir" else stat.size
    return FileEntry(name, kind, size, stat.mode & 0o7777, stat.mtime_ns, path)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
