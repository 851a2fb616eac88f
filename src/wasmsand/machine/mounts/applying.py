"""Writing the changes of an overlay to the host.

Owns `apply_overlay`. Only the caller of the API does this, never a guest. Rules: everything is
checked before anything is written. A path that the host has changed meanwhile is a conflict. A
symbolic link that leads outside of the directory is refused, because programs of the host would
follow it. Everything happens beneath the mounted directory's handle. New files are all written to a
directory of their own first, and then moved: if the host's disk is full, nothing has changed.
"""

from __future__ import annotations

import os
import secrets
import stat as modes
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine.host_access import HostAccess
from wasmsand.machine.mounts.beneath import HANDLE, OPEN_DIRECTORY, open_beneath
from wasmsand.machine.mounts.differences import Difference, content_of, differences
from wasmsand.machine.mounts.host_directory import errors

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ApplyConflict(Exception):
    """The host has changed files that the sandbox has changed too."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"changed on the host meanwhile: {', '.join(paths[:10])}")
        self.paths = paths


def apply_overlay(machine: Machine, path: str, *, force: bool = False) -> list[Difference]:
    """Write the changes of the overlay on `path` to the host's directory, and return them. Raises
    `ApplyConflict` (unless `force` is set, which overwrites), EPERM for a link that leads
    outside."""
    found = differences(machine, path, take_moved=True)
    conflicts = [_text(each.path) for each in found if each.is_conflict]
    if conflicts and not force:
        raise ApplyConflict(conflicts)
    mounted, _ = machine.mounts.overlay(path)
    assert mounted.directory is not None
    access = HostAccess(machine)
    targets: dict[bytes, bytes] = {}
    for each in found:
        if each.new is not None and each.node is not None and modes.S_ISLNK(each.new.mode):
            with access as namespace:
                target = namespace.readlink(each.node)
            if leads_outside(each.path, target):
                raise KernelError(
                    Errno.EPERM, f"{_text(each.path)} links outside of the directory; remove it"
                )
            targets[each.path] = target
    with errors(), mounted.directory.handle() as root, _Stage(root) as stage:
        # First everything that may fail for lack of space, and that may be in a place which is
        # removed below.
        for each in found:
            stage.prepare(each, access, targets)
        for each in reversed(found):  # what is in a directory before the directory
            if each.old is not None and (each.new is None or _is_other_type(each)):
                _remove(root, each)
        for each in found:
            if each.new is not None:
                stage.put(root, each)
    return found


def leads_outside(path: bytes, target: bytes) -> bool:
    """Whether a symbolic link at `path`, relative to a directory, may lead outside of it."""
    if target.startswith(b"/"):
        return True
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    up = 0
    while up < len(names) and names[up] == b"..":
        up += 1
    # After a name, '..' may lead anywhere: the name may be a link itself.
    return up > path.count(b"/") or b".." in names[up:]


def _is_other_type(each: Difference) -> bool:
    assert each.old is not None
    assert each.new is not None
    return modes.S_IFMT(each.old.mode) != modes.S_IFMT(each.new.mode)


def _remove(root: int, each: Difference) -> None:
    assert each.old is not None
    above = open_beneath(root, each.names[:-1], HANDLE)
    try:
        if modes.S_ISDIR(each.old.mode):
            os.rmdir(each.names[-1], dir_fd=above)
        else:
            os.unlink(each.names[-1], dir_fd=above)
    finally:
        os.close(above)


class _Stage:
    """A directory of the host in which new files wait until all are written."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._name = b".wasmsand-" + secrets.token_hex(16).encode()
        self._waiting: dict[bytes, bytes] = {}
        """By path: the name in the stage."""

    def __enter__(self) -> _Stage:
        os.mkdir(self._name, 0o700, dir_fd=self._root)
        self._handle = open_beneath(self._root, (self._name,), HANDLE)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            for name in self._waiting.values():
                os.unlink(name, dir_fd=self._handle)
        finally:
            os.close(self._handle)
            os.rmdir(self._name, dir_fd=self._root)

    def prepare(self, each: Difference, access: HostAccess, targets: dict[bytes, bytes]) -> None:
        """Write a new file or link to the stage."""
        if each.new is None or each.node is None or modes.S_ISDIR(each.new.mode):
            return
        name = b"%d" % len(self._waiting)
        if modes.S_ISLNK(each.new.mode):
            os.symlink(targets[each.path], name, dir_fd=self._handle)
            self._waiting[each.path] = name
            return
        content = content_of(access, each.node)
        with open(os.open(name, _NEW, 0o600, dir_fd=self._handle), "wb") as stream:
            self._waiting[each.path] = name
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), each.new.mode & 0o777)

    def put(self, root: int, each: Difference) -> None:
        """Create or replace one file, link or directory."""
        assert each.new is not None
        name = each.names[-1]
        above = open_beneath(root, each.names[:-1], HANDLE)
        try:
            if not modes.S_ISDIR(each.new.mode):
                os.rename(self._waiting[each.path], name, src_dir_fd=self._handle, dst_dir_fd=above)
                del self._waiting[each.path]
                return
            if each.old is None or _is_other_type(each):
                os.mkdir(name, 0o700, dir_fd=above)
            fd = os.open(name, OPEN_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
            try:
                os.fchmod(fd, each.new.mode & 0o777)
            finally:
                os.close(fd)
        finally:
            os.close(above)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
