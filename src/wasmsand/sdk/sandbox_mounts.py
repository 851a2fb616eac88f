"""`SandboxMounts`: directories of this machine in a sandbox.

A part of `Sandbox`. Rules: paths are checked here; what a mount may do is decided by the backend.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wasmsand.sdk.results import MountDiff, MountInfo

if TYPE_CHECKING:
    from wasmsand.sdk.attachment import Attachment
    from wasmsand.sdk.mounts import MountMode


class SandboxMounts:
    """The mounts of a sandbox."""

    _attachment: Attachment

    def mount(
        self,
        path: str,
        source: str | os.PathLike[str] | None = None,
        *,
        mode: MountMode | None = None,
        read_only: bool = True,
        limit_bytes: int | None = None,
        max_inodes: int | None = None,
    ) -> MountInfo:
        """Make a directory of this machine appear at `path`. This takes the same time for any
        size: files are read when a program uses them.

        Example:
            sandbox.mount("/mnt/data", "data")
            sandbox.mount("/mnt/out", "out", read_only=False, limit_bytes=10_000_000)
            sandbox.mount("/mnt/repo", ".", mode="overlay")
            sandbox.mount("/mnt/scratch", mode="memory")

        `mode` is `"read-only"`, `"read-write"`, `"overlay"` (changes stay in the sandbox, see
        `diff` and `apply`) or `"memory"`; without it, `read_only` decides. `limit_bytes` and
        `max_inodes` bound what the sandbox may write (`read-write`) or store (`memory`); the
        default is that of the sandbox's own files. Raises `MountError`, `FileError`;
        `UnsupportedError` for a sandbox in a process of its own or on a server.
        """
        from wasmsand.sdk.mounts import mount_of, mount_point

        mount = mount_of(source, mode, read_only, limit_bytes, max_inodes)
        return self._attachment.backend.mount(mount_point("path", path), mount)

    def unmount(self, path: str, *, force: bool = False) -> None:
        """Remove a mount. The changes of an overlay and the files of a mount in memory are lost.

        Example:
            sandbox.unmount("/mnt/data")

        Raises `FileError` (EBUSY) if a process uses it; with `force`, its files fail from then on.
        """
        from wasmsand.sdk.mounts import mount_point

        self._attachment.backend.unmount(mount_point("path", path), force=force)

    @property
    def mounts(self) -> list[MountInfo]:
        """What was mounted, oldest first."""
        return self._attachment.backend.mounts()

    def diff(self, path: str | None = None, *, patch: bool = True) -> MountDiff:
        """Compare an overlay with the directory of this machine.

        Example:
            diff = sandbox.diff("/mnt/repo")
            print(diff.added, diff.changed, diff.removed)
            print(diff.patch)

        Without `path`, the only overlay is meant. With `patch=False`, no patch is made, which is
        faster.
        """
        return self._attachment.backend.mount_diff(self._overlay(path), patch=patch)

    def apply(self, path: str | None = None, *, force: bool = False) -> MountDiff:
        """Write the changes of an overlay to the directory of this machine, and return them.

        Example:
            sandbox.apply("/mnt/repo")

        Raises `MountConflictError`, and writes nothing, if files were changed on this machine too;
        `force` replaces them. A symbolic link that leads outside of the directory is refused.
        """
        return self._attachment.backend.apply_mount(self._overlay(path), force=force)

    def _overlay(self, path: str | None) -> str:
        from wasmsand.sdk.mounts import mount_point

        if path is not None:
            return mount_point("path", path)
        overlays = [mount.path for mount in self.mounts if mount.mode == "overlay"]
        if len(overlays) != 1:
            raise ValueError(f"path is needed: the sandbox has {len(overlays)} overlays")
        return overlays[0]
