"""Changes of one directory of the host, by its handle.

Owns `WritableDirectory`. Every method blocks. Rules: as in `host_directory`; a change is made in a
directory handle, by name, without following a link. It is counted in the quota first. Modes never
have set-id bits. A file with further names that this sandbox has not made is not written: these
names may be outside of the mounted directory.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.vfs.outside import Facts, Key, Move, Place
from wasmsand.machine.mounts.beneath import (
    HANDLE,
    O_PATH,
    OPEN_DIRECTORY,
    exchange_names,
    valid_name,
)
from wasmsand.machine.mounts.host_directory import HostDirectory, errors
from wasmsand.machine.mounts.quota import WriteQuota

_MODE_BITS: Final = 0o1777
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WritableDirectory(HostDirectory):
    """A directory of the host that a sandbox may change."""

    is_writable = True

    def __init__(self, path: str, uid: int, gid: int, quota: WriteQuota) -> None:
        super().__init__(path, uid, gid)
        self.quota = quota

    # New names.

    def _add(self, parent: Place, name: bytes, make: Callable[[int], None]) -> Facts:
        """Count a name, create it by `make`, and return its facts."""
        _require_name(name)
        self.quota.take_name()
        try:
            with errors(), self._opened(parent, HANDLE) as directory:
                make(directory)
                facts = self._look(directory, name)
                if facts is None:
                    raise KernelError(Errno.ESTALE, "removed on the host")
        except KernelError:
            self.quota.give_name()
            raise
        self.quota.made(facts.key)
        return facts

    def create(self, parent: Place, name: bytes, mode: int) -> Facts:
        """See `OutsideTree`."""

        def make(directory: int) -> None:
            fd = os.open(name, _NEW, mode & _MODE_BITS, dir_fd=directory)
            try:
                os.fchmod(fd, mode & _MODE_BITS)  # whatever the host process's umask is
            finally:
                os.close(fd)

        return self._add(parent, name, make)

    def mkdir(self, parent: Place, name: bytes, mode: int) -> Facts:
        """See `OutsideTree`."""

        def make(directory: int) -> None:
            os.mkdir(name, 0o700, dir_fd=directory)
            fd = os.open(name, OPEN_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(fd, mode & _MODE_BITS)
            finally:
                os.close(fd)

        return self._add(parent, name, make)

    def symlink(self, parent: Place, name: bytes, target: bytes) -> Facts:
        """See `OutsideTree`."""
        return self._add(parent, name, lambda fd: os.symlink(target, name, dir_fd=fd))

    def link(self, place: Place, parent: Place, name: bytes) -> Facts:
        """See `OutsideTree`."""
        if modes.S_IFMT(place.facts.mode) not in (modes.S_IFREG, modes.S_IFLNK):
            raise KernelError(Errno.EPERM)

        def make(directory: int) -> None:
            with self._above(place) as (source, old):
                self._require(source, old, place.facts.key)
                os.link(
                    old, name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False
                )  # fmt: skip

        return self._add(parent, name, make)

    def _require(self, directory: int, name: bytes, key: Key) -> Facts:
        facts = self._look(directory, name)
        if facts is None or facts.key != key:
            raise KernelError(Errno.ESTALE, "replaced on the host")
        return facts

    # Removing and moving names.

    def unlink(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """See `OutsideTree`."""
        with errors(), self._opened(parent, HANDLE) as directory:
            facts = self._require(directory, name, victim.facts.key)
            if facts.nlink == 1:
                self._keep_open(victim)
            os.unlink(name, dir_fd=directory)
            self.quota.removed(facts.key, last=facts.nlink == 1)
            return self._facts_of(os.fstat(directory))

    def rmdir(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """See `OutsideTree`."""
        with errors(), self._opened(parent, HANDLE) as directory:
            self._require(directory, name, victim.facts.key)
            os.rmdir(name, dir_fd=directory)
            self.quota.removed(victim.facts.key, last=True)
            return self._facts_of(os.fstat(directory))

    def _keep_open(self, victim: Place) -> None:
        """A file that is open in the sandbox is about to lose its last name."""
        with self._lock:
            if victim not in self._retained or not modes.S_ISREG(victim.facts.mode):
                return
            self._nameless.add(victim)
        with self._file(victim):
            pass

    def rename(self, move: Move) -> Facts:
        """See `OutsideTree`."""
        old, name, replaced = move.name, move.new_name, move.replaced
        _require_name(name)
        with (
            errors(),
            self._opened(move.parent, HANDLE) as source,
            self._opened(move.new_parent, HANDLE) as target,
        ):
            self._require(source, old, move.place.facts.key)
            there = self._look(target, name)
            if (there is None) != (replaced is None):
                raise KernelError(Errno.ESTALE, "changed on the host")
            if there is not None and replaced is not None:
                if there.key != replaced.facts.key:
                    raise KernelError(Errno.ESTALE, "replaced on the host")
                if not move.exchange and there.nlink == 1:
                    self._keep_open(replaced)
            if move.exchange:
                exchange_names(source, old, target, name)
            else:
                os.rename(old, name, src_dir_fd=source, dst_dir_fd=target)
                if there is not None:
                    is_last = there.nlink == 1 or modes.S_ISDIR(there.mode)
                    self.quota.removed(there.key, last=is_last)
            facts = self._look(target, name)
            if facts is None:
                raise KernelError(Errno.ESTALE, "removed on the host")
            return facts

    # Attributes and content.

    def set_attributes(
        self, place: Place, mode: int | None, atime: int | None, mtime: int | None
    ) -> Facts:
        """See `OutsideTree`."""
        with errors():
            if mode is not None:
                if modes.S_ISREG(place.facts.mode):
                    self._require_own_names(place)
                self._chmod(place, mode & _MODE_BITS)
            if atime is not None or mtime is not None:
                self._set_times(place, atime, mtime)
            return self.facts(place)

    def _chmod(self, place: Place, mode: int) -> None:
        with self._lock:
            is_open = place in self._files
        if is_open:
            with self._file(place) as fd:
                os.fchmod(fd, mode)
            return
        with self._opened(place, O_PATH or os.O_RDONLY) as handle:
            if modes.S_ISLNK(os.fstat(handle).st_mode):
                raise KernelError(Errno.EOPNOTSUPP)
            if O_PATH:
                os.chmod(f"/proc/self/fd/{handle}", mode)
            else:
                os.fchmod(handle, mode)

    def _set_times(self, place: Place, atime: int | None, mtime: int | None) -> None:
        now = time.time_ns()
        before = self.facts(place)
        times = (
            before.atime_ns if atime is None else now if atime == -1 else atime,
            before.mtime_ns if mtime is None else now if mtime == -1 else mtime,
        )
        if place in self._files:
            with self._file(place) as fd:
                os.utime(fd, ns=times)
        elif place.parent is None:
            with self._opened(place, OPEN_DIRECTORY) as fd:
                os.utime(fd, ns=times)
        else:
            with self._above(place) as (directory, name):
                self._require(directory, name, place.facts.key)
                os.utime(name, ns=times, dir_fd=directory, follow_symlinks=False)

    def _require_own_names(self, place: Place) -> None:
        self._check_names(self.facts(place).nlink, place.facts.key)

    def _check_names(self, nlink: int, key: Key) -> None:
        """Refuse to change a file that may have a name outside of the mounted directory."""
        if nlink - self.quota.names_made(key) > 1:
            raise KernelError(
                Errno.EPERM, "the host's file has several names (hard links); copy it first"
            )

    def write(self, place: Place, offset: int, data: Data) -> tuple[int, Facts]:
        """See `OutsideTree`."""
        with errors(), self._file(place, to_write=True) as fd:
            found = os.fstat(fd)
            key = (found.st_dev, found.st_ino)
            self._check_names(found.st_nlink, key)
            view = memoryview(data)
            grows = max(0, offset + len(view) - found.st_size)
            if grows:
                room = self.quota.room(grows)
                if room < grows:
                    view = view[: max(0, len(view) - (grows - room))]
                    if not view:
                        self.quota.grow(key, grows)  # raises ENOSPC
                grows = max(0, offset + len(view) - found.st_size)
                self.quota.grow(key, grows)
            written = 0
            try:
                while written < len(view):
                    written += os.pwrite(fd, view[written:], offset + written)
            except OSError:
                if not written:
                    self.quota.shrink(key, grows)
                    raise
            return written, self._facts_of(os.fstat(fd))

    def truncate(self, place: Place, size: int) -> Facts:
        """See `OutsideTree`."""
        with errors(), self._file(place, to_write=True) as fd:
            found = os.fstat(fd)
            key = (found.st_dev, found.st_ino)
            self._check_names(found.st_nlink, key)
            self.quota.grow(key, size - found.st_size)
            try:
                os.ftruncate(fd, size)
            except OSError:
                self.quota.shrink(key, size - found.st_size)
                raise
            self.quota.shrink(key, found.st_size - size)
            return self._facts_of(os.fstat(fd))


def _require_name(name: bytes) -> None:
    """The kernel has checked names; a host call must never get anything else."""
    if not valid_name(name):
        raise KernelError(Errno.EINVAL)
