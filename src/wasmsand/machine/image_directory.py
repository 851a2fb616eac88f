"""A directory with built programs and files, as the builder writes it.

Owns reading its manifest. Rules: a directory is read once per host process; program files, stored
memory and the lists of files in large directories are read only when needed; the error for a
missing directory says which command to run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from wasmsand.engine.protocol import Start
from wasmsand.engine.stored_memory import StoredMemory
from wasmsand.kernel.errno import Errno, KernelError

MANIFEST_FORMAT: Final = 4
_FORMATS: Final = (3, MANIFEST_FORMAT)
"""Format 3 has the lists of all directories in the manifest."""
_BEGINNING_BYTES: Final = 4096
_WASM_PAGE: Final = 65536


class ImageMissing(Exception):
    """No usable user space was found; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PreparedStart:
    """How a program starts if its names are these."""

    names: tuple[str, ...]
    """Absolute paths of the file and of its hard links."""
    memory: StoredMemory


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
    mode: int
    """Permissions; 0o4755 for a program that runs as root."""
    prepared: PreparedStart | None
    """The same program with prepared memory, under other names."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every path by which the program can be started."""
        return self.names if self.prepared is None else self.names + self.prepared.names

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
        return read_part(self._path, start, stop - start)


def read_part(path: Path, start: int, count: int) -> bytes:
    """A part of a file of the image. Raises `KernelError`: EIO for the guest, if the file cannot be
    read or is too short."""
    content = b""
    try:
        # Without a buffer, which would read more than is wanted: a page fetches what is read.
        with path.open("rb", buffering=0) as stream:
            stream.seek(start)
            while len(content) < count and (piece := stream.read(count - len(content))):
                content += piece
    except OSError as error:
        raise KernelError(Errno.EIO, f"the image's file {path.name}: {error}") from error
    if len(content) != count:
        raise KernelError(Errno.EIO, f"the image's file {path.name} is too short")
    return content


listing_wanted: list[Callable[[Path, int, int], None]] = []
"""Called before the list of a directory is read, with the file and the part that has it. A host
that has to fetch it may raise `WouldBlock`."""


Listing = dict[str, Any]
"""`files`: path, mode, offset and size in the contents file; `links`: path and target;
`directories`: path and owner."""


@dataclass(frozen=True, slots=True)
class ImageDirectory:
    """The manifest, and the file that holds the contents of all other files."""

    programs: tuple[ProgramFile, ...]
    contents: Path
    listing: Listing
    """The files that every new sandbox knows."""
    trees: list[dict[str, Any]]
    """Directories with a listing of their own; `tree_listing` reads it."""
    base: Mapping[str, str]
    """The programs of the image that this one completes, by name: their hashes."""


_names: dict[str, str] = {}
"""The names of programs, by the hash of their module: of all directories that were read."""


def program_name(key: str) -> str | None:
    """The name of the program with this module, if it is in a directory that was read."""
    return _names.get(key)


_prepared: dict[str, ProgramFile] = {}
"""Programs that start prepared, by the hash of their memory: of all directories that were read."""


def prepared_program(memory_key: str) -> ProgramFile:
    """The program that starts with this memory."""
    return _prepared[memory_key]


@cache
def read_image(directory: Path) -> ImageDirectory:
    """Read a directory. Raises `ImageMissing`."""
    manifest = directory / "manifest.json"
    try:
        document = json.loads(manifest.read_text("utf-8"))
    except FileNotFoundError:
        raise ImageMissing(
            f"no user space at {directory}: in a source checkout run 'make build' "
            "(or 'wasmsand build'); an installed wheel carries it, so reinstall wasmsand"
        ) from None
    if document.get("format") not in _FORMATS:
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
            mode=entry.get("mode", 0o755),
            prepared=_prepared_start(directory, entry.get("prepared")),
        )
        for entry in document["programs"]
    )
    for program in programs:
        _names[program.sha256] = program.name
        if program.prepared is not None:
            _prepared[program.prepared.memory.sha256] = program
    contents = directory / document["contents"]["file"]
    return ImageDirectory(programs, contents, document, document["trees"], document.get("base", {}))


def tree_listing(contents: Path, tree: Mapping[str, Any]) -> Listing:
    """The listing of one of an image's trees."""
    if "listing" not in tree:
        return dict(tree)
    for wanted in listing_wanted:
        wanted(contents, *tree["listing"])
    listing: Listing = json.loads(read_part(contents, *tree["listing"]))
    return listing


def _prepared_start(directory: Path, entry: Mapping[str, Any] | None) -> PreparedStart | None:
    if entry is None:
        return None
    start = Start(entry["entry"], entry["memory_size"], dict(entry["variables"]))
    memory = StoredMemory(
        path=directory / entry["file"],
        sha256=entry["sha256"],
        size=entry["size"],
        first=entry["first"],
        start=start,
    )
    # The file is mapped over the memory of an instance, and must not reach beyond it.
    in_pages = not any(part % _WASM_PAGE for part in (memory.first, memory.size, start.memory_size))
    if not in_pages or not 0 <= memory.first <= start.memory_size - memory.size:
        raise ImageMissing(f"{memory.path} does not fit into its program: reinstall wasmsand")
    return PreparedStart(tuple(entry["names"]), memory)
