"""The base image: the file system every sandbox starts from.

Owns finding the built user space and making one frozen tree of it. Rules: the tree is made once per
host process; program files are read only when needed; the error for a missing image says which
command to run.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from wasmsand.engine.forking import renewed_in_child
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine.wasm_programs import WasmProgram

IMAGE_DIRECTORY: Final = Path(__file__).resolve().parent.parent / "_image"
MANIFEST_FORMAT: Final = 2
WASM_PROGRAM_DIRECTORY: Final = "/usr/local/bin/"
_PLAIN: Final = "-plain"
_BEGINNING_BYTES: Final = 4096


class ImageMissing(Exception):
    """No usable user space was found; the message says what to do."""


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """One built program of the image."""

    name: str
    version: str
    licence: str
    source: str
    path: Path
    sha256: str
    size: int
    names: tuple[str, ...]
    """Absolute paths of the file and of its hard links."""

    def read(self) -> bytes:
        """The module's bytes."""
        return self.path.read_bytes()

    def open(self) -> _ProgramBytes:
        """The module's bytes, read from the file on demand."""
        return _ProgramBytes(self.path, self.size)


class _ProgramBytes:
    """The content of a program's file. Programs run from their compiled form, so most reads are
    of the first bytes, at each exec: only these are kept in memory."""

    __slots__ = ("_beginning", "_path", "_size")

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._beginning = self._read(0, min(size, _BEGINNING_BYTES))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        start, stop, _ = part.indices(self._size)
        if stop <= len(self._beginning):
            return self._beginning[start:stop]
        return self._read(start, stop)

    def _read(self, start: int, stop: int) -> bytes:
        with self._path.open("rb") as stream:
            stream.seek(start)
            content = stream.read(stop - start)
        if len(content) != stop - start:
            raise ValueError(f"{self._path} is shorter than {self._size} bytes")
        return content


@dataclass(frozen=True, slots=True)
class _Image:
    """The manifest, and the file that holds the contents of all other files."""

    programs: tuple[ProgramFile, ...]
    contents: Path
    listing: _Listing
    """The files that every new sandbox knows."""
    trees: list[dict[str, Any]]
    """Directories with a listing of their own, which is read on first access."""


_Listing = dict[str, Any]
"""`files`: path, mode, offset and size in the contents file; `links`: path and target."""


def image_programs(directory: Path = IMAGE_DIRECTORY) -> tuple[ProgramFile, ...]:
    """The programs in the manifest. Raises `ImageMissing`."""
    return _read_image(directory).programs


@cache
def prepared_programs(directory: Path = IMAGE_DIRECTORY) -> Mapping[str, ProgramFile]:
    """The programs that start prepared: module key to the program `NAME-plain`, the same code
    without prepared memory. Empty if the image is missing."""
    try:
        programs = {program.name: program for program in image_programs(directory)}
    except ImageMissing:
        return {}
    return {
        programs[stored].sha256: plain
        for name, plain in programs.items()
        if (stored := name.removesuffix(_PLAIN)) != name and stored in programs
    }


@cache
def _read_image(directory: Path) -> _Image:
    manifest = directory / "manifest.json"
    try:
        document = json.loads(manifest.read_text("utf-8"))
    except FileNotFoundError:
        raise ImageMissing(
            f"no user space at {directory}: in a source checkout run 'make build' "
            "(or 'wasmsand build'); an installed wheel carries it, so reinstall wasmsand"
        ) from None
    if document.get("format") != MANIFEST_FORMAT:
        raise ImageMissing(
            f"{manifest} has format {document.get('format')!r}, not {MANIFEST_FORMAT}: "
            "run 'wasmsand build' again"
        )
    programs = tuple(
        ProgramFile(
            name=entry["name"],
            version=entry["version"],
            licence=entry["licence"],
            source=entry["source"],
            path=directory / entry["file"],
            sha256=entry["sha256"],
            size=entry["size"],
            names=tuple(entry["names"]),
        )
        for entry in document["programs"]
    )
    contents = directory / document["contents"]["file"]
    return _Image(programs, contents, document, document["trees"])


_lock = threading.Lock()
renewed_in_child(globals(), "_lock")
_base: FrozenTree | None = None


def base_image() -> FrozenTree:
    """The tree that all sandboxes of this process share."""
    global _base
    with _lock:
        if _base is None:
            _base = _build(_read_image(IMAGE_DIRECTORY))
        return _base


def image_at(directory: Path) -> FrozenTree:
    """The tree of an image in another directory, as written by the builder."""
    return _build(_read_image(directory))


@lru_cache(maxsize=4)
def image_with_wasm_programs(programs: tuple[WasmProgram, ...]) -> FrozenTree:
    """The base tree with the programs of `wasm_dir` in a directory that comes first in PATH."""
    return _build(_read_image(IMAGE_DIRECTORY), programs)


def _build(image: _Image, extra: tuple[WasmProgram, ...] = ()) -> FrozenTree:
    builder = ImageBuilder()
    standard_tree(builder)
    for added in extra:
        path = os.fsencode(WASM_PROGRAM_DIRECTORY + added.name)
        builder.add_file(path, added.read, 0o755, size=added.size, content_key=added.sha256)
    for program in image.programs:
        first, *others = (name.encode() for name in program.names)
        builder.add_file(first, program.open, 0o755, size=program.size, content_key=program.sha256)
        for name in others:
            builder.add_link(name, first)
    _add(builder, image.contents, image.listing)
    for tree in image.trees:
        fill = partial(_add, contents=image.contents, listing=tree)
        path = tree["path"].encode()
        builder.add_dir_later(path, fill, inodes=tree["inodes"], subdirs=tree["subdirs"])
    return builder.build()


def _add(builder: ImageBuilder, contents: Path, listing: _Listing) -> None:
    for path, mode, offset, size in listing["files"]:
        builder.add_file(path.encode(), _reader(contents, offset, size), mode, size=size)
    for path, target in listing["links"]:
        builder.add_symlink(path.encode(), target.encode())


def _reader(contents: Path, offset: int, size: int) -> Callable[[], bytes]:
    """A function that reads one file from the contents file."""

    def read() -> bytes:
        with contents.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    return read
