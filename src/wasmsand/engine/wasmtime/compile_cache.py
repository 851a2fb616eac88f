"""Compiled modules on disk.

Owns the cache directory. Rules: an entry's name is the module's content key and the
engine's fingerprint; an entry appears whole or not at all (written beside, flushed, then
renamed), so any number of processes may write at once; an entry is machine code that we
will run, so a directory that others can write to is not used. Where there is no usable
directory, modules live in memory only, and one warning says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from pathlib import Path

VARIABLE = "WASMSAND_CACHE"

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
            return None
        if reason := self._distrust():
            self._warn(reason)
            return None
        return path

    def store(self, key: str, content: bytes) -> Path | None:
        """Write an entry, replacing an old one; None if there is nowhere to write."""
        path = self._path(key)
        temporary: str | None = None
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if reason := self._distrust():
                self._warn(reason)
                return None
            descriptor, temporary = tempfile.mkstemp(
                dir=self._directory, prefix=f".{key[:8]}-", suffix=".tmp"
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
        return path

    def discard(self, path: Path) -> None:
        """Remove a damaged entry, if possible."""
        with contextlib.suppress(OSError):
            path.unlink()

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}-{self._fingerprint}.cwasm"

    def _distrust(self) -> str | None:
        """Why files of the directory must not be run, if so."""
        if os.name != "posix":
            return None
        status = self._directory.stat()
        if status.st_uid not in (0, os.geteuid()):
            return f"{self._directory} belongs to another user"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others may write to {self._directory}"
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
