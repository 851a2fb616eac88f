"""The base image: the file system every sandbox starts from.

Owns finding the built user space and making one frozen tree of it: of the directory that this
package carries and, if it is installed, of the one of the package `wasmsand_packages`. Rules: the
tree is made once per host process; program files are read only when needed; a second directory that
was built for another first one is refused.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from wasmsand.engine.forking import renewed_in_child
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine.image_directory import (
    ImageDirectory,
    ImageMissing,
    Listing,
    ProgramFile,
    read_image,
    read_part,
    tree_listing,
)
from wasmsand.machine.wasm_programs import WasmProgram

IMAGE_DIRECTORY: Final = Path(__file__).resolve().parent.parent / "_image"
PACKAGES: Final = "wasmsand_packages"
"""The Python package with the second directory."""
WASM_PROGRAM_DIRECTORY: Final = "/usr/local/bin/"


@cache
def image_directories() -> tuple[Path, ...]:
    """The directories that the base image is made of."""
    found = find_spec(PACKAGES)
    places = () if found is None else found.submodule_search_locations or ()
    further = (Path(place, IMAGE_DIRECTORY.name) for place in places)
    return (IMAGE_DIRECTORY, *(path for path in further if (path / "manifest.json").is_file()))


def image_programs(directory: Path | None = None) -> tuple[ProgramFile, ...]:
    """The programs of the base image, or of one directory. Raises `ImageMissing`."""
    images = _base_directories() if directory is None else [read_image(directory)]
    return tuple(program for image in images for program in image.programs)


def _base_directories() -> list[ImageDirectory]:
    return _matching(image_directories())


def _matching(directories: Sequence[Path]) -> list[ImageDirectory]:
    """Directories that were built for the first of them."""
    base, *further = images = [read_image(directory) for directory in directories]
    present = {program.name: program.sha256 for program in base.programs}
    for image in further:
        if any(present.get(name) != key for name, key in image.base.items()):
            raise _mismatch(image, base)
    return images


def _mismatch(image: ImageDirectory, base: ImageDirectory) -> ImageMissing:
    return ImageMissing(
        f"{image.contents.parent} was built for another user space than {base.contents.parent}: "
        "install the same version of wasmsand and of wasmsand-packages; in a source checkout run "
        "'make packages' again, or remove the first directory"
    )


_lock = threading.Lock()
renewed_in_child(globals(), "_lock")
_base: FrozenTree | None = None


def base_image() -> FrozenTree:
    """The tree that all sandboxes of this process share."""
    global _base
    with _lock:
        if _base is None:
            _base = _build(_base_directories())
        return _base


def image_at(*directories: Path) -> FrozenTree:
    """The tree of an image in other directories, as written by the builder: the base, and what was
    built for it."""
    return _build(_matching(directories))


@lru_cache(maxsize=4)
def image_with_wasm_programs(programs: tuple[WasmProgram, ...]) -> FrozenTree:
    """The base tree with the programs of `wasm_dir` in a directory that comes first in PATH."""
    return _build(_base_directories(), programs)


def _build(images: Sequence[ImageDirectory], extra: tuple[WasmProgram, ...] = ()) -> FrozenTree:
    builder = ImageBuilder()
    standard_tree(builder)
    for added in extra:
        path = os.fsencode(WASM_PROGRAM_DIRECTORY + added.name)
        builder.add_file(path, added.read, 0o755, size=added.size, content_key=added.sha256)
    base, *further = images
    _add_image(builder, base)
    for image in further:
        try:
            _add_image(builder, image)
        except ValueError:  # both have the same file
            raise _mismatch(image, base) from None
    return builder.build()


def _add_image(builder: ImageBuilder, image: ImageDirectory) -> None:
    for program in image.programs:
        _add_program(builder, program, program.names, None)
        if program.prepared is not None:
            prepared = program.prepared
            _add_program(builder, program, prepared.names, prepared.memory.sha256)
    _add(builder, image.contents, image.listing)
    for tree in image.trees:
        fill = partial(_add_tree, contents=image.contents, tree=tree)
        path = tree["path"].encode()
        builder.add_dir_later(path, fill, inodes=tree["inodes"], subdirs=tree["subdirs"])


def _add_program(
    builder: ImageBuilder, program: ProgramFile, names: tuple[str, ...], memory_key: str | None
) -> None:
    first, *others = (name.encode() for name in names)
    builder.add_file(
        first,
        program.open,
        program.mode,
        size=program.size,
        content_key=program.sha256,
        memory_key=memory_key,
    )
    for name in others:
        builder.add_link(name, first)


def _add_tree(builder: ImageBuilder, contents: Path, tree: Mapping[str, Any]) -> None:
    _add(builder, contents, tree_listing(contents, tree))


def _add(builder: ImageBuilder, contents: Path, listing: Listing) -> None:
    for path, owner in listing["directories"]:
        builder.add_dir(path.encode(), uid=owner, gid=owner)
    for path, mode, offset, size in listing["files"]:
        read = partial(read_part, contents, offset, size)
        builder.add_file(path.encode(), read, mode, size=size)
    for path, target in listing["links"]:
        builder.add_symlink(path.encode(), target.encode())
