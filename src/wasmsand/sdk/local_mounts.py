"""`LocalMounts`: the mounts of a sandbox whose machine runs in this process.

A part of `LocalBackend`. Rules: what compares and applies overlays is imported when it is used; the
errors of the machine become public exceptions here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wasmsand.machine.mounts.table import Mounted, MountProblem, MountRequest
from wasmsand.sdk.errors import MountConflictError, MountError, file_errors
from wasmsand.sdk.results import MountDiff, MountInfo

if TYPE_CHECKING:
    from wasmsand.machine import Machine
    from wasmsand.machine.mounts.differences import Difference
    from wasmsand.sdk.mounts import Mount


def mount_request(path: str, mount: Mount) -> MountRequest:
    """A mount, as the machine wants it."""
    source = None if mount.source is None else os.fspath(mount.source)
    return MountRequest(path, source, mount.mode, mount.limit_bytes, mount.max_inodes)


class LocalMounts:
    """The mounts of a machine."""

    _machine: Machine

    def mount(self, path: str, mount: Mount) -> MountInfo:
        """See `Backend`."""
        request = mount_request(path, mount)
        try:
            with file_errors(path):
                self._machine.change(lambda: self._machine.mounts.mount(request))
        except MountProblem as problem:
            raise MountError(str(problem), path) from None
        return next(info for info in self.mounts() if info.path == path)

    def unmount(self, path: str, *, force: bool = False) -> None:
        """See `Backend`."""
        with file_errors(path):
            self._machine.change(lambda: self._machine.mounts.unmount(path, force=force))

    def mounts(self) -> list[MountInfo]:
        """See `Backend`."""
        with self._machine.lock:
            return [_info(path, each) for path, each in self._machine.mounts.entries.items()]

    def mount_diff(self, path: str, *, patch: bool) -> MountDiff:
        """See `Backend`."""
        from wasmsand.machine.mounts.differences import differences
        from wasmsand.machine.mounts.patches import patch_of

        with file_errors(path):
            found = differences(self._machine, path)
            return _diff(path, found, patch_of(self._machine, path, found) if patch else "")

    def apply_mount(self, path: str, *, force: bool = False) -> MountDiff:
        """See `Backend`."""
        from wasmsand.machine.mounts.applying import ApplyConflict, apply_overlay

        try:
            with file_errors(path):
                return _diff(path, apply_overlay(self._machine, path, force=force), "")
        except ApplyConflict as conflict:
            raise MountConflictError(str(conflict), path, tuple(conflict.paths)) from None


def _info(path: str, mounted: Mounted) -> MountInfo:
    request, quota = mounted.request, mounted.quota
    return MountInfo(
        path=path,
        source=request.source,
        mode=request.mode,
        written_bytes=0 if quota is None else quota.used_bytes,
        written_inodes=0 if quota is None else quota.used_inodes,
    )


def _diff(path: str, found: list[Difference], patch: str) -> MountDiff:
    def paths(kind: str) -> tuple[str, ...]:
        return tuple(_name(each) for each in found if each.kind == kind)

    return MountDiff(
        path=path,
        added=paths("added"),
        changed=paths("changed"),
        removed=paths("removed"),
        conflicts=tuple(_name(each) for each in found if each.is_conflict),
        patch=patch,
    )


def _name(each: Difference) -> str:
    name = each.path.decode("utf-8", "surrogateescape")
    return name + "/" if each.is_directory else name
