"""A wheel that cannot be written as a whole leaves nothing.

Owns what is removed if pip fails while it writes the files of a wheel, for example because the disk
is full: pip itself would leave a part of the package, which could be imported but not uninstalled.
Rules: only what did not exist before is removed; nothing is imported here while pip installs,
because pip forbids it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Any

_DATA = ".data"


def remove_incomplete_wheels() -> None:
    """Change pip's function that installs a wheel, for this process."""
    wheels: Any = import_module("pip._internal.operations.install.wheel")
    usual = wheels._install_wheel

    @wraps(usual)
    def install(**options: Any) -> None:
        record = options["record"]
        names = options["wheel_zip"].namelist()
        paths = set(_targets(names, record.lib_dir, options["scheme"]))
        folders = {folder for path in paths for folder in _folders(path)}
        new = {path for path in paths if not os.path.lexists(path)}
        new_folders = {folder for folder in folders if not os.path.lexists(folder)}
        try:
            usual(**options)
        except (OSError, KeyboardInterrupt):
            _remove(new | _generated(record, paths), new_folders)
            raise

    wheels._install_wheel = install


def _targets(names: list[str], library: str, scheme: Any) -> Iterator[str]:
    """Where the files of a wheel go."""
    for name in names:
        first, *rest = name.split("/")
        if name.endswith("/") or ".." in (first, *rest):
            continue
        if first.endswith(_DATA) and len(rest) > 1:
            if folder := getattr(scheme, rest[0], None):
                yield os.path.join(folder, *rest[1:])
        else:
            yield os.path.join(library, name)


def _generated(record: Any, paths: set[str]) -> set[str]:
    """What pip has made besides: commands, and compiled files."""
    return {path for path in record.written_paths() if path not in paths}


def _folders(path: str) -> Iterator[str]:
    """The directories above a path; those that exist already are no concern of the caller."""
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _remove(paths: set[str], folders: set[str]) -> None:
    for path in paths:
        with suppress(OSError):
            os.unlink(path)
    for folder in sorted(folders, key=len, reverse=True):
        compiled = os.path.join(folder, "__pycache__")
        for place in (compiled, folder):
            with suppress(OSError):
                os.rmdir(place)
