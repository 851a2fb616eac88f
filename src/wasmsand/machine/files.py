"""The host's hands in a sandbox's files.

Owns `HostFiles`. Rules: the host acts as root but what it makes belongs to the
sandbox's user; every method holds the sandbox's lock and raises `KernelError`; a
write replaces the file's content in one step or leaves what was there.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.vfs import ROOT, Node, Stat

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_TYPES: Final = {
    S_IFREG: "file",
    S_IFDIR: "dir",
    S_IFLNK: "symlink",
    0o010000: "fifo",
    0o020000: "device",
    0o140000: "socket",
}
_LIST_STEP: Final = 1024


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file as the host sees it."""

    name: str
    type: str
    size: int
    mode: int
    mtime_ns: int


class HostFiles:
    """Files of one sandbox, by absolute path (or relative to /)."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = machine.lock
        self._namespace = machine.kernel.namespace

    def _resolve(self, path: str, *, follow: bool = True) -> Node:
        return self._namespace.resolve(ROOT, self._namespace.root, _bytes(path), follow=follow)

    def _entry(self, name: str, stat: Stat) -> FileEntry:
        kind = _TYPES.get(stat.mode & S_IFMT, "device")
        size = 0 if kind == "dir" else stat.size
        return FileEntry(name, kind, size, stat.mode & 0o7777, stat.mtime_ns)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self._lock:
            node = self._resolve(path)
            self._require_regular(node, path)
            return self._namespace.read(node, 0, self._namespace.size(node))

    def _require_regular(self, node: Node, path: str) -> None:
        kind = self._namespace.stat(node).mode & S_IFMT
        if kind == S_IFDIR:
            raise KernelError(Errno.EISDIR, path)
        if kind != S_IFREG:
            raise KernelError(Errno.EINVAL, f"not a regular file: {path}")

    def write(
        self, path: str, data: bytes, *, mode: int = 0o644, make_parents: bool = True
    ) -> None:
        """Replace the content of a file, making it (and its directories) if need be.

        An existing file keeps its mode and owner; a symbolic link is followed.
        """
        with self._lock:
            if make_parents:
                self._make_parents(path)
            try:
                node = self._resolve(path)
            except KernelError as error:
                if error.errno is not Errno.ENOENT:
                    raise
                node = None
            if node is not None:
                self._require_regular(node, path)
                mode = self._namespace.stat(node).mode & 0o7777
            self._replace(path, node, data, mode)

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

    def _write_all(self, node: Node, data: bytes) -> None:
        done = 0
        view = memoryview(data)
        while done < len(data):
            done += self._namespace.write(ROOT, node, done, view[done:])

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
            node = self._resolve(path)
            if self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
                raise KernelError(Errno.ENOTDIR, path)
            entries = []
            cookie = 0
            while step := self._namespace.readdir(node, cookie, _LIST_STEP):
                cookie = step[-1].cookie
                for item in step:
                    if item.name not in (b".", b".."):
                        child = self._namespace.resolve(ROOT, node, item.name, follow=False)
                        name = item.name.decode("utf-8", "surrogateescape")
                        entries.append(self._entry(name, self._namespace.stat(child)))
            return sorted(entries, key=lambda entry: entry.name)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive` a whole tree."""
        with self._lock:
            self._remove(_bytes(path), recursive)

    def _remove(self, path: bytes, recursive: bool) -> None:
        root = self._namespace.root
        node = self._namespace.resolve(ROOT, root, path, follow=False)
        if self._namespace.stat(node).mode & S_IFMT != S_IFDIR:
            self._namespace.unlink(ROOT, root, path)
            return
        if recursive:
            while True:
                names = [
                    entry.name
                    for entry in self._namespace.readdir(node, 0, _LIST_STEP)
                    if entry.name not in (b".", b"..")
                ]
                if not names:
                    break
                for name in names:
                    self._remove(path.rstrip(b"/") + b"/" + name, True)
        self._namespace.rmdir(ROOT, root, path)

    def stat(self, path: str) -> FileEntry:
        """A file's type, size, mode and time; a symbolic link is followed."""
        with self._lock:
            stat = self._namespace.stat(self._resolve(path))
        return self._entry(path.rstrip("/").rpartition("/")[2] or "/", stat)

    def exists(self, path: str) -> bool:
        """Whether a path leads to something."""
        try:
            self.stat(path)
        except KernelError as error:
            if error.errno in (Errno.ENOENT, Errno.ENOTDIR, Errno.ELOOP):
                return False
            raise
        return True


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
