"""Files of a sandbox, from outside: `sandbox.files`.

Rules: paths are the guest's, never the host's; permissions do not bind the host, and
what it makes belongs to the sandbox's user; every failure is a `FileError` with its
errno and path.
"""

from __future__ import annotations

import builtins
import os
import posixpath
from typing import TYPE_CHECKING

from wasmsand.sdk import arguments
from wasmsand.sdk.errors import file_errors
from wasmsand.sdk.handle import Handle
from wasmsand.sdk.results import FileInfo

if TYPE_CHECKING:
    from wasmsand.machine import FileEntry


class Files:
    """Read and write a sandbox's files without running a command.

    A relative path starts at the sandbox's working directory.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def read(self, path: str | os.PathLike[str]) -> bytes:
        """The whole content of a file."""
        guest = self._path(path)
        with file_errors(guest):
            return self._handle.machine.files.read(guest)

    def write(self, path: str | os.PathLike[str], data: bytes | str) -> None:
        """Make or replace a file; text is encoded as UTF-8, missing directories are made.

        Raises `NoSpaceError`, and changes nothing, if it would not fit `fs_limit_bytes`.
        """
        guest = self._path(path)
        payload = arguments.content("data", data)
        with file_errors(guest):
            self._handle.machine.files.write(guest, payload)

    def list(self, path: str | os.PathLike[str] = ".") -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name, without `.` and `..`."""
        guest = self._path(path)
        with file_errors(guest):
            entries = self._handle.machine.files.list(guest)
        return sorted((_info(entry) for entry in entries), key=lambda info: info.name)

    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Make a directory and those above it. Raises `AlreadyExistsError` if the path
        exists."""
        guest = self._path(path)
        above = posixpath.dirname(guest.rstrip("/"))
        with file_errors(guest):
            self._handle.machine.files.mkdir(above or "/", parents=True)
            self._handle.machine.files.mkdir(guest, parents=False)

    def rm(self, path: str | os.PathLike[str], *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; with `recursive`, a directory with all it
        holds."""
        guest = self._path(path)
        with file_errors(guest):
            self._handle.machine.files.remove(guest, recursive=bool(recursive))

    def stat(self, path: str | os.PathLike[str]) -> FileInfo:
        """What is at a path; symbolic links are followed."""
        guest = self._path(path)
        with file_errors(guest):
            return _info(self._handle.machine.files.stat(guest))

    def exists(self, path: str | os.PathLike[str]) -> bool:
        """Whether `stat` would find something."""
        guest = self._path(path)
        with file_errors(guest):
            return self._handle.machine.files.exists(guest)

    def _path(self, path: object) -> str:
        self._handle.check_open()
        return arguments.guest_path("path", path, self._handle.cwd)


def _info(entry: FileEntry) -> FileInfo:
    return FileInfo(
        name=entry.name,
        type=entry.type,
        size=entry.size,
        mode=entry.mode,
        mtime_ns=entry.mtime_ns,
    )
