"""The disk image of `wasm-sandbox`: a file that stores the sandbox's files permanently.

Rules: a missing disk image means an empty one, which `save` creates; `save` replaces the file
atomically, so a failure leaves the old one intact; every failure is a `DiskError` that names
the file.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.errors import CommandError, DiskImageError


class DiskError(Exception):
    """The disk image cannot be read or written."""


class Disk:
    """One disk image."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, backend: Backend) -> None:
        """Load the disk image into a new sandbox."""
        try:
            with self._path.open("rb") as stream:
                backend.load_disk(stream)
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                raise DiskError(f"{self._path}: the directory does not exist") from None
        except DiskImageError as error:
            raise DiskError(f"{self._path}: {error}") from None
        except OSError as error:
            raise DiskError(f"{self._path}: {error.strerror}") from None

    def save(self, backend: Backend) -> None:
        """Save the sandbox's files to the disk image."""
        target = self._path.resolve()  # keep a symbolic link: replace its target
        try:
            with tempfile.NamedTemporaryFile(
                dir=target.parent, prefix=f".{target.name}.", delete=False
            ) as stream:
                try:
                    backend.save_disk(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
                    os.replace(stream.name, target)
                except BaseException:
                    os.unlink(stream.name)
                    raise
        except CommandError as error:  # a machine that was lost
            raise DiskError(f"{self._path}: not written: {error}") from None
        except OSError as error:
            raise DiskError(f"{self._path}: {error.strerror}") from None
