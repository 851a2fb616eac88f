"""The host's hands in a sandbox's files.

Owns `HostFiles`. Rules: the host acts as root but what it makes belongs to the
sandbox's user; every method holds the sandbox's lock and raises `KernelError`; a
write replaces the file's content in one step or leaves what was there.
"""

from __future__ import annotations

import builtins
import posixpath
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import MIB
from wasmsand.kernel.vfs import ROOT, Node, Stat
from wasmsand.machine import trees

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_PROC_FILE_MAX: Final = 1 * MIB
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
    """The absolute path that it was found by."""


class HostFiles:
    """Files of one sandbox, by absolute path (or relative to /)."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = machine.lock
        self._namespace = machine.kernel.namespace

    def _resolve(self, path: str, *, follow: bool = True) -> Node:
        return self._namespace.resolve(ROOT, self._namespace.root, _bytes(path), follow=follow)

    def read(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """The content of a file, or a part of it.

        EFBIG if so much of it is holes that it is larger than what the sandbox can hold.
        """
        with self._lock:
            node = self._resolve(path)
            self._require_regular(node, path)
            stat = self._namespace.stat(node)
            # Files of /proc say that they are empty.
            rest = max(0, stat.size - offset) if stat.size else _PROC_FILE_MAX
            wanted = rest if count is None else min(count, rest)
            if wanted > stat.blocks * 512:
                self.require_few_holes(wanted - stat.blocks * 512, path)
            return self._namespace.read(node, offset, wanted)

    def require_few_holes(self, holes: int, path: str) -> None:
        """EFBIG for more than the file system's size: holes cost the guest nothing, but whoever
        reads them needs room for them."""
        limit = self._machine.kernel.limits.fs_limit_bytes
        if holes > max(limit, _PROC_FILE_MAX):
            raise KernelError(Errno.EFBIG, f"{path} has {holes} bytes of holes; read it in parts")

    def _require_regular(self, node: Node, path: str) -> None:
        kind = self._namespace.stat(node).mode & S_IFMT
        if kind == S_IFDIR:
            raise KernelError(Errno.EISDIR, path)
        if kind != S_IFREG:
            raise KernelError(Errno.EINVAL, f"not a regular file: {path}")

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Replace the content of a file, making it (and its directories) if need be.

        An existing file keeps its owner, and its mode unless one is given; a symbolic link is
        followed.
        """
        with self._lock:
            node = self._find_or_make_parents(path)
            if node is None:
                self._replace(path, None, data, 0o644 if mode is None else mode)
                return
            self._require_regular(node, path)
            old_mode = self._namespace.stat(node).mode & 0o7777
            self._replace(path, node, data, old_mode)
            if mode is not None and mode != old_mode:
                self._namespace.chmod(ROOT, self._resolve(path), mode)

    def _find_or_make_parents(self, path: str) -> Node | None:
        """The file at a path, or None, and then the directories above it are there."""
        try:
            return self._resolve(path)
        except KernelError as error:
            if error.errno is not Errno.ENOENT:
                raise
        self._make_parents(path)
        return None

    def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file, making it (and its directories) if need be: all of `data`
        or nothing."""
        with self._lock:
            node = self._find_or_make_parents(path)
            if node is None:
                self._replace(path, None, data, 0o644)
                return
            self._require_regular(node, path)
            size = self._namespace.size(node)
            try:
                self._write_all(node, data, size)
            except KernelError:
                self._namespace.resize(ROOT, node, size)
                raise

    def _replace(self, path: str, node: Node | None, data: bytes, mode: int) -> None:
        """Write beside the file first, so that a full disk leaves the old content."""
        target = _bytes(path) if node is None else self._namespace.path_of(node)
        if node is None:
            fresh = self._create(target, mode)
            self._fill(fresh, target, data)
            return
        stat = self._namespace.stat(node)
        if stat.nlink > 1 or not data:  # other names must see the change: write in place
            self._write_in_place(node, data)
            return
        # Beside the target, but a name that a guest can neither guess nor make too long.
        temporary = target.rpartition(b"/")[0] + b"/." + secrets.token_hex(16).encode()
        fresh = self._create(temporary, mode)
        self._fill(fresh, temporary, data)
        self._namespace.chown(ROOT, fresh, stat.uid, stat.gid)
        self._namespace.chmod(ROOT, fresh, mode)
        root = self._namespace.root
        self._namespace.rename(ROOT, root, temporary, root, target)

    def _create(self, path: bytes, mode: int) -> Node:
        root = self._namespace.root
        node = self._namespace.open_node(ROOT, root, path, 0o101 | 0o200, mode)
        self._namespace.chown(ROOT, node, self._machine.identity.uid, self._machine.identity.gid)
        return node

    def _fill(self, node: Node, path: bytes, data: bytes) -> None:
        try:
            self._write_all(node, data)
        except KernelError:
            self._namespace.unlink(ROOT, self._namespace.root, path)
            raise

    def _write_in_place(self, node: Node, data: bytes) -> None:
        old = self._namespace.read(node, 0, self._namespace.size(node))
        self._namespace.resize(ROOT, node, 0)
        try:
            self._write_all(node, data)
        except KernelError:
            self._namespace.resize(ROOT, node, 0)
            self._write_all(node, old)
            raise

    def _write_all(self, node: Node, data: bytes, offset: int = 0) -> None:
        done = 0
        view = memoryview(data)
        while done < len(data):
            done += self._namespace.write(ROOT, node, offset + done, view[done:])

    def _make_parents(self, path: str) -> None:
        parent = _bytes(path).rstrip(b"/").rpartition(b"/")[0]
        if parent:
            self._make_directories(parent)

    def _make_directories(self, path: bytes) -> None:
        root = self._namespace.root
        made = b""
        for part in path.strip(b"/").split(b"/"):
            made += b"/" + part
            try:
                node = self._namespace.resolve(ROOT, root, made)
            except KernelError as error:
                if error.errno is not Errno.ENOENT:
                    raise
                self._make_directory(made)
            else:
                if self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
                    raise KernelError(Errno.ENOTDIR, made.decode("utf-8", "replace"))

    def _make_directory(self, path: bytes) -> None:
        node = self._namespace.mkdir(ROOT, self._namespace.root, path, 0o755)
        identity = self._machine.identity
        self._namespace.chown(ROOT, node, identity.uid, identity.gid)

    def mkdir(self, path: str, *, parents: bool = True) -> None:
        """Make a directory; with `parents` also those above it, and an existing one is fine."""
        with self._lock:
            if parents:
                self._make_directories(_bytes(path))
            else:
                self._make_directory(_bytes(path))

    def list(self, path: str) -> list[FileEntry]:
        """The entries of a directory, by name."""
        with self._lock:
            found = trees.entries(self._namespace, self._directory(path))
            stats = [(name, self._namespace.stat(node)) for name, node in found]
        return [_entry(path, name, stat) for name, stat in stats]

    def tree(self, path: str) -> builtins.list[FileEntry]:
        """Everything below a directory: each directory before its entries, sorted by name."""
        with self._lock:
            found = list(trees.walk(self._namespace, self._directory(path)))
        return [_entry(path, entry.path, entry.stat) for entry in found]

    def _directory(self, path: str) -> Node:
        node = self._resolve(path)
        if self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, path)
        return node

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive` a whole tree."""
        where = _bytes(path)
        with self._lock:
            root = self._namespace.root
            node = self._namespace.resolve(ROOT, root, where, follow=False)
            if self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
                self._namespace.unlink(ROOT, root, where)
                return
            if recursive:
                trees.remove_below(self._namespace, node)
            self._namespace.rmdir(ROOT, root, where)

    def rename(self, source: str, target: str) -> None:
        """As rename(2)."""
        with self._lock:
            root = self._namespace.root
            self._namespace.rename(ROOT, root, _bytes(source), root, _bytes(target))

    def copy(self, source: str, target: str) -> None:
        """Copy a file, a link or a tree to the path `target`, with modes."""
        with self._lock:
            identity = self._machine.identity
            self._make_parents(target)
            top = self._resolve(source, follow=False)
            trees.copy(self._namespace, top, _bytes(target), identity.uid, identity.gid)

    def chmod(self, path: str, mode: int) -> None:
        """Set permission bits; a symbolic link is followed."""
        with self._lock:
            self._namespace.chmod(ROOT, self._resolve(path), mode)

    def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link."""
        with self._lock:
            self._make_parents(path)
            root, identity = self._namespace.root, self._machine.identity
            node = self._namespace.symlink(ROOT, _bytes(target), root, _bytes(path))
            self._namespace.chown(ROOT, node, identity.uid, identity.gid)

    def read_link(self, path: str) -> str:
        """What a symbolic link holds."""
        with self._lock:
            node = self._resolve(path, follow=False)
            if self._namespace.stat(node).mode & S_IFMT != S_IFLNK:
                raise KernelError(Errno.EINVAL, f"not a symbolic link: {path}")
            return self._namespace.readlink(node).decode("utf-8", "surrogateescape")

    def stat(self, path: str, *, follow: bool = True) -> FileEntry:
        """A file's type, size, mode and time."""
        with self._lock:
            stat = self._namespace.stat(self._resolve(path, follow=follow))
        return _entry(path, b"", stat)

    def exists(self, path: str) -> bool:
        """Whether a path leads to something."""
        try:
            self.stat(path)
        except KernelError as error:
            if error.errno in (Errno.ENOENT, Errno.ENOTDIR, Errno.ELOOP):
                return False
            raise
        return True


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
