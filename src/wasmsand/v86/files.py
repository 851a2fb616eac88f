"""File operations in the guest, made of system calls.

Owns `GuestFiles`. Rules: the host acts as root, but the files that it creates belong to the user;
a file is replaced by renaming a complete one; names and sizes that the guest reports are checked.
Every method may raise `KernelError` and `MachineLost`.
"""

from __future__ import annotations

import posixpath
import secrets
import stat as modes
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.sdk.results import FileInfo
from wasmsand.v86 import linux
from wasmsand.v86.agent import Agent
from wasmsand.v86.command import USER_IDS

_LINKS_MAX: Final = 40
_KERNEL_FILE_MAX: Final = 4 << 20
"""How much is read of a file of /proc, which says that it is empty."""
_ENTRIES_MAX: Final = 1 << 17
_TYPES: Final = {
    modes.S_IFREG: "file",
    modes.S_IFDIR: "dir",
    modes.S_IFLNK: "symlink",
    modes.S_IFIFO: "fifo",
    modes.S_IFSOCK: "socket",
}


def guest_path(path: str) -> bytes:
    """A path as bytes."""
    return path.encode("utf-8", "surrogateescape")


def host_text(data: bytes) -> str:
    """Bytes of the guest as text, with surrogate escapes."""
    return data.decode("utf-8", "surrogateescape")


class GuestFiles:
    """The files of one machine."""

    def __init__(self, agent: Callable[[], Agent], most_bytes: int) -> None:
        """`agent` returns the agent of the running machine."""
        self._agent = agent
        self._most_bytes = most_bytes

    def read(self, path: str, offset: int, count: int | None) -> bytes:
        """See `Backend.read_file`."""
        agent, name = self._agent(), guest_path(path)
        found = linux.stat(agent, name)
        _require_file(found)
        rest = max(0, found.size - offset) if found.size else _KERNEL_FILE_MAX
        wanted = rest if count is None else min(count, rest)
        if wanted > found.blocks * 512 + self._most_bytes:
            raise KernelError(
                Errno.EFBIG, f"{path} has holes; read it in parts with files.read_stream"
            )
        fd = linux.open_file(agent, name)
        pieces: list[bytes] = []
        try:
            while wanted:
                piece = linux.read_at(agent, fd, wanted, offset)
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                wanted -= len(piece)
        finally:
            linux.close(agent, fd)
        return b"".join(pieces)

    def write(self, path: str, data: bytes, mode: int | None) -> None:
        """See `Backend.write_file`."""
        if len(data) > self._most_bytes:
            raise KernelError(Errno.ENOSPC)
        agent = self._agent()
        target, found = self._place(agent, guest_path(path))
        if found is not None:
            _require_file(found)
        elif target.endswith(b"/"):
            raise KernelError(Errno.EISDIR)
        beside = posixpath.dirname(target) + b"/.wasmsand-" + secrets.token_hex(8).encode()
        flags = linux.O_WRONLY | linux.O_CREAT | linux.O_EXCL
        try:
            fd = linux.open_file(agent, beside, flags, 0o600)
        except KernelError as error:
            if error.errno is not Errno.ENOENT:
                raise
            self._make_parents(agent, target)
            fd = linux.open_file(agent, beside, flags, 0o600)
        owner = USER_IDS if found is None else (found.uid, found.gid)
        if mode is None:
            mode = 0o644 if found is None else found.mode & 0o7777
        try:
            try:
                linux.write_all(agent, fd, data)
                linux.fchown(agent, fd, *owner)
                linux.fchmod(agent, fd, mode)
            finally:
                linux.close(agent, fd)
            linux.rename(agent, beside, target)
        except KernelError:
            with suppress(KernelError):
                linux.unlink(agent, beside)
            raise

    def _place(self, agent: Agent, path: bytes) -> tuple[bytes, linux.Status | None]:
        """Where a write to `path` goes: links at its end are followed."""
        for _ in range(_LINKS_MAX):
            try:
                found = linux.stat(agent, path, follow=False)
            except KernelError as error:
                if error.errno is not Errno.ENOENT:
                    raise
                return path, None
            if modes.S_IFMT(found.mode) != modes.S_IFLNK:
                return path, found
            path = posixpath.join(posixpath.dirname(path), linux.read_link(agent, path))
        raise KernelError(Errno.ELOOP)

    def _make_parents(self, agent: Agent, path: bytes) -> None:
        parent = posixpath.dirname(path.rstrip(b"/"))
        missing: list[bytes] = []
        while parent not in (b"", b"/"):
            try:
                linux.mkdir(agent, parent)
            except KernelError as error:
                if error.errno is Errno.EEXIST:
                    break
                if error.errno is not Errno.ENOENT:
                    raise
                missing.append(parent)
                parent = posixpath.dirname(parent)
                continue
            linux.lchown(agent, parent, *USER_IDS)
            break
        for each in reversed(missing):
            linux.mkdir(agent, each)
            linux.lchown(agent, each, *USER_IDS)

    def append(self, path: str, data: bytes) -> None:
        """See `Backend.append_file`."""
        agent, name = self._agent(), guest_path(path)
        try:
            found = linux.stat(agent, name)
        except KernelError as error:
            if error.errno is not Errno.ENOENT:
                raise
            self.write(path, data, None)
            return
        _require_file(found)
        fd = linux.open_file(agent, name, linux.O_WRONLY | linux.O_APPEND)
        try:
            try:
                linux.write_all(agent, fd, data)
            except KernelError:
                linux.ftruncate(agent, fd, found.size)
                raise
        finally:
            linux.close(agent, fd)

    def entries(self, path: str, *, recursive: bool) -> list[FileInfo]:
        """See `Backend.list_directory`."""
        agent = self._agent()
        waiting, found = [path], []
        while waiting:
            folder = waiting.pop()
            for name in self._names(agent, guest_path(folder)):
                place = posixpath.join(folder, host_text(name))
                try:
                    info = _info(linux.stat(agent, guest_path(place), follow=False), place)
                except KernelError as error:
                    if error.errno is Errno.ENOENT:  # removed meanwhile
                        continue
                    raise
                found.append(info)
                if len(found) > _ENTRIES_MAX:
                    raise KernelError(Errno.EFBIG, f"{path} has too many entries")
                if recursive and info.type == "dir":
                    waiting.append(place)
        return sorted(found, key=lambda info: info.path)

    def _names(self, agent: Agent, path: bytes) -> list[bytes]:
        fd = linux.open_file(agent, path, linux.O_DIRECTORY)
        try:
            return linux.entries(agent, fd)
        finally:
            linux.close(agent, fd)

    def make_directory(self, path: str, *, parents: bool) -> None:
        """See `Backend.make_directory`."""
        agent, name = self._agent(), guest_path(path)
        try:
            linux.mkdir(agent, name)
        except KernelError as error:
            if parents and error.errno is Errno.EEXIST:
                if modes.S_ISDIR(linux.stat(agent, name).mode):
                    return
                raise
            if not parents or error.errno is not Errno.ENOENT:
                raise
            self._make_parents(agent, name)
            linux.mkdir(agent, name)
        linux.lchown(agent, name, *USER_IDS)

    def remove(self, path: str, *, recursive: bool) -> None:
        """See `Backend.remove`."""
        agent, name = self._agent(), guest_path(path)
        if not modes.S_ISDIR(linux.stat(agent, name, follow=False).mode):
            linux.unlink(agent, name)
            return
        if recursive:
            for entry in reversed(self.entries(path, recursive=True)):
                remove = linux.rmdir if entry.type == "dir" else linux.unlink
                remove(agent, guest_path(entry.path))
        linux.rmdir(agent, name)

    def rename(self, source: str, target: str) -> None:
        """See `Backend.rename`."""
        linux.rename(self._agent(), guest_path(source), guest_path(target))

    def stat(self, path: str, *, follow: bool) -> FileInfo:
        """See `Backend.stat`."""
        return _info(linux.stat(self._agent(), guest_path(path), follow=follow), path)

    def chmod(self, path: str, mode: int) -> None:
        """See `Backend.chmod`."""
        linux.chmod(self._agent(), guest_path(path), mode)

    def symlink(self, target: str, path: str) -> None:
        """See `Backend.symlink`."""
        agent = self._agent()
        linux.symlink(agent, guest_path(target), guest_path(path))
        linux.lchown(agent, guest_path(path), *USER_IDS)

    def read_link(self, path: str) -> str:
        """See `Backend.read_link`."""
        return host_text(linux.read_link(self._agent(), guest_path(path)))


def _require_file(found: linux.Status) -> None:
    kind = modes.S_IFMT(found.mode)
    if kind == modes.S_IFDIR:
        raise KernelError(Errno.EISDIR)
    if kind != modes.S_IFREG:
        raise KernelError(Errno.EINVAL, "not a regular file")


def _info(found: linux.Status, path: str) -> FileInfo:
    kind = _TYPES.get(modes.S_IFMT(found.mode), "device")
    size = found.size if kind in ("file", "symlink") else 0
    name = posixpath.basename(path.rstrip("/")) or "/"
    return FileInfo(name, kind, size, found.mode & 0o7777, found.mtime_ns, path)
