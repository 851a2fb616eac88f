"""Compiled modules on disk, and the memory with which prepared programs start.

Owns the cache directory. Rules: an entry is named by the module's content key and the engine's
fingerprint, a copy of stored memory by its hash. Files of installed packages that were checked are
remembered by their identity. An entry appears completely or not at all (it is
written under another name, flushed, then renamed), so any number of processes may write at once. An
entry is machine code that we run, so a directory that others can write to is not used. Without a
usable directory, modules are kept in memory only, and one warning says so. Transient entries
(modules that guests made) have a directory of their own, from which the least recently used are
removed: guests can neither fill the disk nor evict the entries of the user space.
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
_CHECKED = "checked"
"""The directory that remembers which files of installed packages were checked."""
UNNAMED = "unnamed"
"""The directory for unnamed files. A confined process may write there and nowhere else."""
_SUFFIX = ".cwasm"
_MEMORY_SUFFIX = ".memory"
_UNFINISHED = ".tmp"

logger = logging.getLogger("wasmsand.engine")


def default_directory() -> Path:
    """`$WASMSAND_CACHE/modules`, or the same below the user's cache directory."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen, "modules")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "wasmsand", "modules")


class NewEntry:
    """An entry that is being written. `commit` makes it visible to others; otherwise nothing is
    left at the end of the `with` block."""

    def __init__(self, cache: CompileCache, temporary: Path, descriptor: int, path: Path) -> None:
        self.temporary = temporary
        """Where its content is before `commit`."""
        self._cache = cache
        self._path = path
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._failure: OSError | None = None

    def __enter__(self) -> NewEntry:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        with contextlib.suppress(OSError):  # already renamed
            self.temporary.unlink()

    def write(self, content: bytes) -> None:
        """Append to the entry. `finish` and `commit` report failures."""
        if self._failure is None:
            try:
                view = memoryview(content)
                while view:
                    view = view[self._file.write(view) :]
            except OSError as error:
                self._failure = error

    def finish(self) -> bool:
        """Flush the entry to disk. True if `temporary` now has all of its content."""
        try:
            if self._failure is not None:
                raise self._failure
            if not self._file.closed:
                os.fsync(self._file.fileno())
                self._file.close()
        except OSError as error:
            self._failure = error
            self._cache.failed(error)
            return False
        return True

    def commit(self) -> Path | None:
        """Rename the entry to its final name; None if it could not be written."""
        if not self.finish():
            return None
        try:
            os.replace(self.temporary, self._path)
        except OSError as error:
            self._cache.failed(error)
            return None
        self._cache.written(self._path)
        return self._path


class CompileCache:
    """The compiled modules for one engine configuration."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._directory = directory
        self._fingerprint = fingerprint
        self._warned = False

    def find(self, key: str) -> Path | None:
        """The file of this compiled module, if it is in the cache."""
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
                os.utime(path)  # mark it as recently used
        return path

    def keep(self, key: str) -> None:
        """If this module is only a transient entry, because a guest had the same program first,
        keep it for good."""
        path, transient = self._path(key), self._transient_path(key)
        with contextlib.suppress(OSError):  # usually there is no transient entry
            if not path.exists() and not self._distrust(transient.parent):
                os.link(transient, path)

    def store(self, key: str, content: bytes) -> Path | None:
        """Write an entry, replacing an old one; None if the cache is not writable."""
        entry = self.begin(key)
        if entry is None:
            return None
        with entry:
            entry.write(content)
            return entry.commit()

    def begin(self, key: str, *, transient: bool = False) -> NewEntry | None:
        """A new entry to write to; None if the cache is not writable."""
        return self._begin(key, self._transient_path(key) if transient else self._path(key))

    def find_memory(self, key: str) -> Path | None:
        """The copy of this file with stored memory, if it is in the cache."""
        path = self._memory_path(key)
        if not path.is_file():
            return None
        if reason := self._distrust(path.parent):
            self._warn(reason)
            return None
        return path

    def begin_memory(self, key: str) -> NewEntry | None:
        """A new copy of a file with stored memory; None if the cache is not writable."""
        return self._begin(key, self._memory_path(key))

    def remember(self, key: str, identity: str) -> None:
        """Note that the file with this identity was checked: its content has the hash `key`."""
        entry = self._begin(key, self._identity_path(key))
        if entry is not None:
            with entry:
                entry.write(identity.encode())
                entry.commit()

    def remembered(self, key: str) -> str | None:
        """The identity of the file that was last found to have the hash `key`."""
        path = self._identity_path(key)
        try:
            if self._distrust(path.parent):
                return None
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _begin(self, key: str, path: Path) -> NewEntry | None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if reason := self._distrust(path.parent):
                self._warn(reason)
                return None
            descriptor, temporary = tempfile.mkstemp(
                dir=path.parent, prefix=f".{key[:8]}-", suffix=_UNFINISHED
            )
        except OSError as error:
            self._warn(str(error))
            return None
        return NewEntry(self, Path(temporary), descriptor, path)

    def written(self, path: Path) -> None:
        """An entry was committed."""
        if path.parent.name == _TRANSIENT:
            self._drop_oldest(path)

    def failed(self, error: OSError) -> None:
        """An entry could not be written."""
        self._warn(str(error))

    def _drop_oldest(self, newest: Path) -> None:
        """Remove transient entries beyond the limits. Open files stay usable."""
        found = []
        for entry in newest.parent.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # another process may remove it too
                status = entry.stat()
                found.append((status.st_mtime_ns, status.st_size, entry))
        found.sort(reverse=True)
        room, entries = TRANSIENT_BYTES_MAX, TRANSIENT_ENTRIES_MAX
        for _, size, entry in found:
            room, entries = room - size, entries - 1
            if (room < 0 or entries < 0) and entry != newest:
                self.discard(entry)

    def unnamed_file(self) -> int:
        """A new file in the directory without a name, which disappears with its last descriptor and
        mapping. Raises `OSError`, also where unnamed files are not supported."""
        if not hasattr(os, "O_TMPFILE"):
            raise OSError(errno.EOPNOTSUPP, "unnamed files are not supported")
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

    def _memory_path(self, key: str) -> Path:
        return self._directory / f"{key}{_MEMORY_SUFFIX}"

    def _identity_path(self, key: str) -> Path:
        return self._directory / _CHECKED / key

    def _transient_path(self, key: str) -> Path:
        return self._directory / _TRANSIENT / f"{key}-{self._fingerprint}{_SUFFIX}"

    def _distrust(self, directory: Path) -> str | None:
        """Why files in a directory must not be run, or None."""
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
