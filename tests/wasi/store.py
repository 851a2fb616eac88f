"""A store for files that are costly to make: outside the repository, beside the build cache.

Only `kept` writes to it. A file is made once, appears complete or not at all, and has a name that
identifies what it was made from.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def directory() -> Path:
    """`$WASMSAND_CACHE/tests`, or `wasmsand/tests` in the user's cache directory."""
    if chosen := os.environ.get("WASMSAND_CACHE"):
        return Path(chosen, "tests")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "wasmsand", "tests")


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The file `name`; if it is missing, `make` writes it to a given path."""
    path = directory() / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as folder:
            made = Path(folder, path.name)
            make(made)
            os.replace(made, path)
    return path
