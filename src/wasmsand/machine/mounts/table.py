"""The mounts of one machine.

Owns `MachineMounts`: mounting, unmounting, what is mounted, and what a state at rest records.
Rules: only the host mounts; a guest has no call for it. Every mount is nosuid and nodev. The guest
does not learn the host's path. A directory of the host is opened once, when it is mounted; what its
path names later does not matter.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import MS_NODEV, MS_NOSUID, MS_RDONLY
from wasmsand.kernel.vfs import ROOT, FrozenTree, TreeFs
from wasmsand.kernel.vfs.inode import DirectoryInode
from wasmsand.kernel.vfs.layers import ROOT_INO
from wasmsand.kernel.vfs.lazy_tree import LazyTree
from wasmsand.kernel.vfs.overlay import OverlayState, OverlayTree
from wasmsand.kernel.vfs.write_through import WriteThroughTree
from wasmsand.machine.mounts.asking import AskedTree, HostWork
from wasmsand.machine.mounts.quota import WriteQuota

if TYPE_CHECKING:
    from wasmsand.kernel.process.identity import Identity
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.mounts.host_directory import HostDirectory

MountMode = Literal["read-only", "read-write", "overlay", "memory"]
MountContent = OverlayState | FrozenTree | None
MODES: Final = ("read-only", "read-write", "overlay", "memory")
_MOUNTS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class MountRequest:
    """What to mount where."""

    path: str
    """The absolute path in the sandbox."""
    source: str | None
    """The directory of the host; None for `memory`."""
    mode: MountMode = "read-only"
    limit_bytes: int | None = None
    """How many bytes a guest may add (`read-write`), or store (`memory`)."""
    max_inodes: int | None = None


@dataclass(frozen=True, slots=True)
class MountState:
    """A mount in a state at rest."""

    request: MountRequest
    content: MountContent = None
    """The changes of an overlay, or the files of a mount in memory."""


class MountProblem(Exception):
    """The host's directory cannot be mounted."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A mount of a machine."""

    request: MountRequest
    tree: TreeFs
    directory: HostDirectory | None
    quota: WriteQuota | None


class MachineMounts:
    """The mounts of a machine, in the order they were made."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._work: HostWork | None = None
        self.entries: dict[str, Mounted] = {}
        """By path. Changed with the sandbox's lock held."""

    def look_again(self) -> None:
        """The host is about to act: what guests saw of its directories before counts as old."""
        if self._work is not None:
            self._work.look_again()

    @property
    def work(self) -> HostWork:
        """The threads that ask the host."""
        if self._work is None:
            self._work = HostWork(self._machine.lock, self._machine.kernel)
        return self._work

    def mount(self, request: MountRequest, content: MountContent = None) -> None:
        """Mount a directory. Raises `MountProblem` if the host's directory cannot be used, and
        `KernelError`: EBUSY if something is mounted there."""
        path = posixpath.normpath(request.path)
        if path in self.entries:
            raise KernelError(Errno.EBUSY, f"something is mounted on {path}")
        if len(self.entries) >= _MOUNTS_MAX:
            raise KernelError(Errno.ENOSPC, f"a sandbox has at most {_MOUNTS_MAX} mounts")
        machine = self._machine
        mounted = self._make(request, content)
        flags = MS_NOSUID | MS_NODEV | (MS_RDONLY if request.mode == "read-only" else 0)
        source = b"tmpfs" if request.source is None else b"host"
        try:
            machine.files.mkdir(path)
            with machine.lock:
                namespace = machine.kernel.namespace
                node = namespace.resolve(ROOT, namespace.root, os.fsencode(path))
                namespace.mount(node, mounted.tree, flags, source)
                self.entries[path] = mounted
        except BaseException:
            if mounted.directory is not None:
                mounted.directory.close()
            raise

    def _make(self, request: MountRequest, content: MountContent) -> Mounted:
        kernel, identity = self._machine.kernel, self._machine.identity
        limits, now = kernel.limits, kernel.clock.realtime
        if request.mode == "memory":
            base = content if isinstance(content, FrozenTree) else _empty_tree(identity, now())
            tree = TreeFs(base, limits, now)
            tree.space.limit_bytes = request.limit_bytes or limits.fs_limit_bytes
            tree.space.limit_blocks = tree.space.limit_bytes // 4096
            tree.space.max_inodes = request.max_inodes or limits.max_inodes
            return Mounted(request, tree, None, None)
        assert request.source is not None
        quota = WriteQuota(
            request.limit_bytes or limits.fs_limit_bytes, request.max_inodes or limits.max_inodes
        )
        directory = _open(request, identity.uid, identity.gid, quota)
        outside = AskedTree(directory, self.work)
        if request.mode == "overlay":
            state = content if isinstance(content, OverlayState) else None
            space = kernel.root.space
            overlay = OverlayTree(outside, limits, now, space, state)
            return Mounted(request, overlay, directory, None)
        if request.mode == "read-write":
            return Mounted(request, WriteThroughTree(outside, limits, now), directory, quota)
        return Mounted(request, LazyTree(outside, limits, now), directory, None)

    def unmount(self, path: str, *, force: bool = False) -> None:
        """Unmount. EINVAL if nothing is mounted there; EBUSY if a process uses it, unless `force`
        is set, or if something else is mounted inside. The changes of an overlay are lost."""
        machine = self._machine
        with machine.lock:
            path = posixpath.normpath(path)
            mounted = self.entries.get(path)
            if mounted is None:
                raise KernelError(Errno.EINVAL, f"nothing is mounted on {path}")
            if mounted.tree.is_used and not force:
                raise KernelError(Errno.EBUSY, f"a process uses {path}; unmount with force=True")
            machine.kernel.namespace.unmount(mounted.tree)
            del self.entries[path]
            if isinstance(mounted.tree, OverlayTree):
                mounted.tree.give_back_space()
        if mounted.directory is not None:
            mounted.directory.close()

    def overlay(self, path: str) -> tuple[Mounted, OverlayTree]:
        """The overlay that is mounted on a path. EINVAL if there is none."""
        mounted = self.entries.get(posixpath.normpath(path))
        if mounted is None:
            raise KernelError(Errno.EINVAL, f"nothing is mounted on {path}")
        if not isinstance(mounted.tree, OverlayTree):
            raise KernelError(Errno.EINVAL, f"{path} is not an overlay; mount it with overlay mode")
        return mounted, mounted.tree

    def states(self) -> tuple[MountState, ...]:
        """What a state at rest records. Needs the lock."""
        found = []
        for mounted in self.entries.values():
            content: MountContent = None
            if isinstance(mounted.tree, OverlayTree):
                content = mounted.tree.overlay_state()
            elif mounted.directory is None:
                content = mounted.tree.freeze()
            found.append(MountState(mounted.request, content))
        return tuple(found)

    def close(self) -> None:
        """The machine was closed: let go of the host's directories."""
        for mounted in list(self.entries.values()):
            if mounted.directory is not None:
                mounted.directory.close()


def _open(request: MountRequest, uid: int, gid: int, quota: WriteQuota) -> HostDirectory:
    if os.name != "posix":
        raise MountProblem("directories of the host can be mounted on Linux and macOS only")
    # Imported here, because these need a POSIX system, and most sandboxes have no mounts.
    from wasmsand.machine.mounts.host_changes import WritableDirectory
    from wasmsand.machine.mounts.host_directory import HostDirectory

    assert request.source is not None
    try:
        if request.mode == "read-write":
            return WritableDirectory(request.source, uid, gid, quota)
        return HostDirectory(request.source, uid, gid)
    except OSError as error:
        raise MountProblem(f"cannot mount {request.source}: {error.strerror or error}") from None


def _empty_tree(identity: Identity, now: int) -> FrozenTree:
    root = DirectoryInode(0o755, identity.uid, identity.gid, now)
    root.parent = ROOT_INO
    return FrozenTree(({ROOT_INO: root},), ROOT_INO + 1, ROOT_INO + 1)
