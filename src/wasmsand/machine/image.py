"""The base image: the file system every sandbox starts from.

Owns finding the built user space and making one frozen tree of it. Rules: made once
per host process; program files are read only when somebody reads them; a missing
image is an error that says what to type.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wasmsand.kernel.vfs import ImageBuilder, Snapshot, standard_tree

IMAGE_DIRECTORY: Final = Path(__file__).resolve().parent.parent / "_image"
MANIFEST_FORMAT: Final = 1
_PROGRAM_DIRECTORY: Final = b"/usr/bin/"


class ImageMissing(Exception):
    """There is no usable user space; the message says what to do."""


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

    def read(self) -> bytes:
        """The module's bytes."""
        return self.path.read_bytes()


@cache
def image_programs(directory: Path = IMAGE_DIRECTORY) -> tuple[ProgramFile, ...]:
    """What the manifest lists, or ImageMissing."""
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
    return tuple(
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


_lock = threading.Lock()
_base: Snapshot | None = None


def base_image() -> Snapshot:
    """The tree that all sandboxes of this process share."""
    global _base
    with _lock:
        if _base is None:
            _base = _build(image_programs())
        return _base


def _build(programs: tuple[ProgramFile, ...]) -> Snapshot:
    builder = ImageBuilder()
    standard_tree(builder)
    for program in programs:
        first, *others = (_PROGRAM_DIRECTORY + name.encode() for name in program.names)
        builder.add_file(
            first, _reader(program), 0o755, size=program.size, content_key=program.sha256
        )
        for name in others:
            builder.add_link(name, first)
    return builder.build()


def _reader(program: ProgramFile) -> Callable[[], bytes]:
    return program.read
