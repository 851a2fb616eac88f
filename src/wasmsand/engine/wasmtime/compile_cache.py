"""Compiled modules on disk.

Owns the cache directory. Rules: an entry's name is the module's content key and the
engine's fingerprint; an entry appears whole or not at all (written beside, flushed, then
renamed), so any number of processes may write at once; an entry is machine code that we
will run, so a directory that others can write to is not used. Where there is no usable
directory, modules live in memory only, and one warning says so. Transient entries, of modules
that guests made, are in a directory of their own, where the least recently used are dropped:
guests can neither fill the disk nor push out the entries of the user space.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import tempfile
from pathlib import Path

VARIABLE = "WASMSAND_CACHE"
TRANSIENT_BYTES_MAX = 1 << 30
TRANSIENT_ENTRIES_MAX = 256
_TRANSIENT = "guests"
UNNAMED = "unnamed"
"""The directory of files without a name. A confined process may write there and nowhere else."""
_SUFFIX = ".cwasm"

logger = logging.getLogger("wasmsand.engine")


def default_directory() -> Path:
    """`$WASMSAND_CACHE/modules`, or the same below the user's cache directory."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen, "modules")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "wasmsand", "modules")


class CompileCache:
    """Files of compiled modules that fit one engine."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._directory = directory
        self._fingerprint = fingerprint
        self._warned = False

    def find(self, key: str) -> Path | None:
        """The file that should hold this module, if it is there."""
        path = self._path(key)
        if not path.is_file():
            path = self._transient_path(key)
            if not path.is_file():
                return None
        if reason := self._distrust(path.parent):
            self._warn(reason)
            return None
        if path.parent != self._directory:
            with contextlib.suppress(OSError):
                os.utime(path)  # used just now
        return path

    def store(self, key: str, content: bytes, *, transient: bool = False) -> Path | None:
        """Write an entry, replacing an old one; None if there is nowhere to write."""
        path = self._transient_path(key) if transient else self._path(key)
        temporary: str | None = None
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if reason := self._distrust(path.parent):
                self._warn(reason)
                return None
            descriptor, temporary = tempfile.mkstemp(
                dir=path.parent, prefix=f".{key[:8]}-", suffix=".tmp"
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            self._warn(str(error))
            return None
        if transient:
            self._drop_oldest(path)
        return path

    def _drop_oldest(self, newest: Path) -> None:
        """Bring the transient entries back to their limits. Whoever has one open keeps it."""
        found = []
        for entry in newest.parent.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # another process may drop it too
                status = entry.stat()
                found.append((status.st_mtime_ns, status.st_size, entry))
        found.sort(reverse=True)
        room, entries = TRANSIENT_BYTES_MAX, TRANSIENT_ENTRIES_MAX
        for _, size, entry in found:
            room, entries = room - size, entries - 1
            if (room < 0 or entries < 0) and entry != newest:
                self.discard(entry)

    def unnamed_file(self) -> int:
        """A new file that is in the directory but has no name, so that it goes with its last
        descriptor and mapping; raises `OSError`, also where there are no such files."""
        if not hasattr(os, "O_TMPFILE"):
            raise OSError(errno.EOPNOTSUPP, "no files without a name here")
        directory = self._directory / UNNAMED
        with contextlib.suppress(OSError):
            directory.mkdir(mode=0o700, exist_ok=True)
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def discard(self, path: Path) -> None:
        """Remove an entry, if possible."""
        with contextlib.suppress(OSError):
            path.unlink()

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}-{self._fingerprint}{_SUFFIX}"

    def _transient_path(self, key: str) -> Path:
        return self._directory / _TRANSIENT / f"{key}-{self._fingerprint}{_SUFFIX}"

    def _distrust(self, directory: Path) -> str | None:
        """Why files of a directory must not be run, if so."""
        if os.name != "posix":
            return None
        for checked in {directory, self._directory}:
            status = checked.stat()
            if status.st_uid not in (0, os.geteuid()):
                return f"{checked} belongs to another user"
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return f"others may write to {checked}"
        return None

    def _warn(self, reason: str) -> None:
        if self._warned:
            return
        self._warned = True
        logger.warning(
            "compiled modules cannot be cached (%s): they will be compiled again by each "
            "process; set %s to a directory that only you can write to",
            reason,
            VARIABLE,
        )
