"""Unpacked wheels on the host's disk, and the trees that sandboxes share.

Owns the directory `wheels` beside the cache of compiled modules. An entry is named by the sha256 of
the wheel, and consists of the contents of its files, one after another, and a list of them. Rules:
an entry appears completely or not at all, so any number of processes may add entries at once; a
wheel is checked and unpacked once, and its modules are compiled once, in a sandbox; a file's
content is read when a sandbox first reads it. The cache is bounded: the entries that were not used
for the longest time are removed, and sandboxes that use them are not disturbed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from wasmsand.engine.choosing import host_cache
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs import ImageBuilder, SharedTree
from wasmsand.machine.packages.metadata import (
    PYTHON_VERSION,
    PackageMetadata,
    parse_metadata,
)
from wasmsand.machine.packages.wheels import BadWheel, Wheel

_FORMAT: Final = 1
_CONTENTS: Final = "contents.bin"
_LISTING: Final = "listing.json"
_INSTALLER: Final = b"wasmsand\n"
_TREES_KEPT: Final = 64
ENTRIES_MAX: Final = 2000
BYTES_MAX: Final = 8 << 30
"""The most wheels, and bytes of them, that the cache keeps."""
_UNFINISHED: Final = ".tmp"
_UNFINISHED_SECONDS: Final = 24 * 3600.0

CompiledFiles = dict[str, bytes]
"""Compiled modules by their path in the package's directory."""
Compile = Callable[[SharedTree, str], CompiledFiles]
"""Compiles the modules of a tree, which belongs to the package with this normalised name."""


class NotCached(Exception):
    """The cache has no such wheel."""


@dataclass(frozen=True, slots=True)
class CachedWheel:
    """A wheel of the cache."""

    sha256: str
    metadata: PackageMetadata
    tree: SharedTree


def wheel_directory() -> Path:
    """Where unpacked wheels are kept."""
    return host_cache() / "wheels" / f"{PYTHON_VERSION}-{_FORMAT}"


def is_cached(sha256: str) -> bool:
    """Whether the cache has the wheel with this hash."""
    return (wheel_directory() / sha256 / _LISTING).is_file()


def add_wheel(file: Path, compile_modules: Compile) -> str:
    """Check a wheel and add it to the cache; returns its hash. Raises `BadWheel`, `OSError`."""
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if is_cached(sha256):
        return sha256
    directory = wheel_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{sha256}.", suffix=_UNFINISHED, dir=directory))
    try:
        with Wheel(file) as wheel:
            listing = _unpack(wheel, fresh)
        _write_listing(fresh, listing)
        compiled = compile_modules(_tree(fresh, listing), wheel.metadata.key)
        with (fresh / _CONTENTS).open("ab") as contents:
            for path, content in sorted(compiled.items()):
                listing["files"].append([path, 0o644, contents.tell(), len(content)])
                contents.write(content)
        _write_listing(fresh, listing)
        try:
            fresh.rename(directory / sha256)
        except OSError:
            if not is_cached(sha256):  # otherwise another process was faster
                raise
        _evict(directory)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return sha256


def _unpack(wheel: Wheel, target: Path) -> dict[str, Any]:
    """Write the contents of a wheel's files; returns the list of them."""
    files: list[list[object]] = []
    info = ""
    with (target / _CONTENTS).open("wb") as contents:
        for member in wheel.members:
            top, _, name = member.path.partition("/")
            if top.endswith(".dist-info"):
                info = top
                if name in ("INSTALLER", "native.txt", "direct_url.json", "REQUESTED"):
                    continue
            offset = contents.tell()
            size = wheel.write(member, contents)
            files.append([member.path, member.mode, offset, size])
        files.append([f"{info}/INSTALLER", 0o644, contents.tell(), len(_INSTALLER)])
        contents.write(_INSTALLER)
    return {"format": _FORMAT, "info": info, "files": files}


def _write_listing(directory: Path, listing: dict[str, Any]) -> None:
    with (directory / _LISTING).open("w", encoding="utf-8") as stream:
        json.dump(listing, stream)
        stream.flush()
        os.fsync(stream.fileno())


@lru_cache(maxsize=_TREES_KEPT)
def load_wheel(sha256: str) -> CachedWheel:
    """The wheel with this hash, whose tree all sandboxes of this process share. Raises
    `NotCached`."""
    return load_fresh(sha256)


def load_fresh(sha256: str) -> CachedWheel:
    """Like `load_wheel`, with a tree that no other sandbox uses."""
    if not (len(sha256) == 64 and sha256.isalnum()):
        raise NotCached(sha256[:64])
    directory = wheel_directory() / sha256
    try:
        listing = json.loads((directory / _LISTING).read_text("utf-8"))
        tree = _tree(directory, listing)
        metadata = _read_metadata(directory, listing)
        _mark_used(directory)
    except (OSError, ValueError, KeyError, TypeError):
        raise NotCached(sha256) from None
    return CachedWheel(sha256, metadata, tree)


def _mark_used(directory: Path) -> None:
    try:
        os.utime(directory)
    except OSError:
        pass  # a confined process may only read


def _tree(directory: Path, listing: dict[str, Any]) -> SharedTree:
    builder = ImageBuilder.for_shared_tree()
    contents = _Contents(directory / _CONTENTS)
    for path, mode, offset, size in listing["files"]:
        read = partial(contents.read, offset, size)
        builder.add_file(b"/" + path.encode(), read, mode, size=size)
    return builder.build_shared()


def _read_metadata(directory: Path, listing: dict[str, Any]) -> PackageMetadata:
    info, contents = listing["info"], _Contents(directory / _CONTENTS)
    places = {path: (offset, size) for path, _, offset, size in listing["files"]}

    def content(name: str) -> bytes:
        place = places.get(f"{info}/{name}")
        return b"" if place is None else contents.read(*place)

    return parse_metadata(content("METADATA"), content("entry_points.txt"))


class _Contents:
    """The open file with the contents of a wheel's files. It stays readable even if another process
    removes the entry from the cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stream = path.open("rb", buffering=0)
        weakref.finalize(self, self._stream.close).atexit = False

    def read(self, offset: int, size: int) -> bytes:
        """One file. EIO if the host cannot read it."""
        try:
            if hasattr(os, "pread"):  # needs no lock, so that it works after a fork too
                content = os.pread(self._stream.fileno(), size, offset)
            else:
                with self._lock:
                    self._stream.seek(offset)
                    content = self._stream.read(size)
        except OSError as error:
            raise KernelError(Errno.EIO, f"{self._path}: {error.strerror}") from None
        if len(content) != size:
            raise KernelError(Errno.EIO, f"{self._path} is too short")
        return content


def _evict(directory: Path) -> None:
    """Remove the entries that were not used for the longest time while there are too many, and what
    processes that died have left behind."""
    now, total = time.time(), 0
    entries = []
    for entry in directory.iterdir():
        try:
            used, size = entry.stat().st_mtime, (entry / _CONTENTS).stat().st_size
        except OSError:
            used, size = 0.0, 0
        if entry.suffix == _UNFINISHED:
            if now - used > _UNFINISHED_SECONDS:
                shutil.rmtree(entry, ignore_errors=True)
            continue
        entries.append((used, size, entry))
    for count, (_, size, entry) in enumerate(sorted(entries, reverse=True)):
        total += size
        if count and (count >= ENTRIES_MAX or total > BYTES_MAX):
            shutil.rmtree(entry, ignore_errors=True)


__all__ = [
    "BadWheel",
    "CachedWheel",
    "NotCached",
    "add_wheel",
    "is_cached",
    "load_fresh",
    "load_wheel",
    "wheel_directory",
]
