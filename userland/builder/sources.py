"""Fetches and unpacks the sources of recipes.

Rules: a source is stored under its sha256, after its content was checked; only sources that are
not stored are fetched; a source can be in several places (the Debian archive or Python package
indexes, upstream, Debian's archive of old versions), and the first file with the right hash is
used; a tree is unpacked anew for every build.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO

from userland.builder.cache import Cache, disk_errors
from userland.builder.commands import Commands
from userland.builder.debian import DebianArchive
from userland.builder.errors import BuildError, FetchError, HashMismatch
from userland.builder.keys import file_digest
from userland.builder.python_index import PythonIndexes
from userland.builder.recipe import Source


def is_stored(source: Source, cache: Cache) -> bool:
    """Whether the tarball is in the cache."""
    return _place(source, cache).is_file()


def fetch(source: Source, cache: Cache, commands: Commands) -> Path:
    """The tarball, from the cache or from one of its places."""
    stored = _place(source, cache)
    if stored.is_file():
        return stored
    # One download at a time: they share the private apt state, and bandwidth is the limit.
    with cache.lock("apt", commands.stopped), disk_errors(cache.root):
        if stored.is_file():
            return stored
        with cache.scratch(f"source-{source.sha256[:16]}") as scratch:
            received = scratch / source.file
            registry = (
                PythonIndexes(commands) if source.pypi else DebianArchive(cache.apt, commands)
            )
            _receive(source, registry, received)
            stored.parent.mkdir(parents=True, exist_ok=True)
            received.replace(stored)
    return stored


def _place(source: Source, cache: Cache) -> Path:
    return cache.sources / source.sha256 / source.file


def _receive(source: Source, registry: DebianArchive | PythonIndexes, received: Path) -> None:
    """Fetch from the first place that has the file with the right content.

    If no place has it, raises the first place's error, with the names of the others.
    """
    first: FetchError | None = None
    tried = []
    for name, fetch_to in registry.places(source):
        try:
            fetch_to(received)
            actual = file_digest(received)
            if actual == source.sha256:
                return
            received.unlink()
            raise HashMismatch(f"{source.file} ({source.origin})", source.sha256, actual)
        except FetchError as error:
            first = first or error
            tried.append(name)
    if first is None:
        raise FetchError(
            f"{source.file} ({source.origin}): there is no place to fetch it from",
            "pip is configured with `no-index`, and no directory of `find-links` has the file.",
        )
    if len(tried) > 1:
        first.advice += " Also tried, in vain: " + ", ".join(tried[1:]) + "."
    raise first


def unpack(tarball: Path, target: Path, commands: Commands, log: IO[bytes]) -> Path:
    """Unpack into the empty directory `target`.

    Returns the only directory in it, or `target` itself if the tarball has its files at the top.
    """
    target.mkdir()
    if tarball.suffix in (".whl", ".zip"):
        unpacked = _unzip(tarball, target)
    else:
        argv = ["tar", "--extract", "--no-same-owner", f"--file={tarball}"]
        unpacked = commands.run([*argv, f"--directory={target}"], output=log) == 0
    trees = list(target.iterdir())
    if not unpacked or not trees:
        raise BuildError(
            f"{tarball.name} could not be unpacked", f"Remove {tarball}, then build again."
        )
    return trees[0] if len(trees) == 1 and trees[0].is_dir() else target


def _unzip(archive: Path, target: Path) -> bool:
    """Unpack a wheel or another zip file; False if it is damaged."""
    try:
        with zipfile.ZipFile(archive) as members:
            members.extractall(target)
    except zipfile.BadZipFile:
        return False
    return True
