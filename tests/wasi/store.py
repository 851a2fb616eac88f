"""Where tests keep what is costly to get: outside the repository, beside the build cache.

`kept` is the one way in: a file is made once, appears whole or not at all, and is found by
a name that says what it was made of.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def directory() -> Path:
    """`$WASMSAND_CACHE/tests`, or the same below the user's cache directory."""
    if chosen := os.environ.get("WASMSAND_CACHE"):
        return Path(chosen, "tests")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "wasmsand", "tests")


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The file `name`; if it is not there, `make` has to write it to the path it is given."""
    path = directory() / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as folder:
            made = Path(folder, path.name)
            make(made)
            os.replace(made, path)
    return path
