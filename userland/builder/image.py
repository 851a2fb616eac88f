"""The image: the directory of built programs that the package and its wheel carry.

    manifest.json        what there is, and where it goes in the file system
    NAME.wasm            programs
    NAME.image           the memory with which a prepared program starts
    files.bin            the contents of all other files, one after another, and the lists of the
                         files in large directories
    licences/RECIPE/     the texts that programs must be passed on with
    LICENCES.md          the list of them, with where each source comes from

Rules: the directory is made whole beside its place and moved there, so a reader sees
the old one or the new one; every module is checked against the hash it had when it was
built; no file names the builder's directories; nothing in it depends on file modes or
symbolic links, which wheels do not keep.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from userland.builder.cache import LICENCES, Entry, disk_errors, remove_tree
from userland.builder.errors import BuildError
from userland.builder.features import MANIFEST_KEY
from userland.builder.image_contents import ImageContents, check_paths
from userland.builder.keys import file_digest
from userland.builder.licences import licence_list
from userland.builder.recipe import Program, Recipe, installed_path
from userland.builder.target import FILES

MANIFEST = "manifest.json"
CONTENTS = "files.bin"
LICENCE_LIST = "LICENCES.md"
FORMAT = 4
_USUAL_MODE = 0o755
"""The permissions of a program of which the manifest says nothing."""
MEMORY_FACTS = "memory.json"
"""Beside the memory in the cache: what the manifest says of it."""


def write_image(
    image: Path,
    built: Iterable[tuple[Recipe, Entry]],
    stored: Mapping[str, Entry] | None = None,
    *,
    added: Mapping[str, bytes] | None = None,
    base: Mapping[str, str] | None = None,
    packages: Sequence[str] | None = None,
) -> bool:
    """Make `image` hold exactly these programs and files; False if it did already.

    `stored` is the memory of programs at their checkpoint, by name (see `preinitialise`). `added`
    are further files. `base`: this image completes another one, which has these programs, by name
    and hash. `packages` are the native packages in it (see `features`).
    """
    pairs = sorted(built, key=lambda pair: pair[0].name)
    programs: list[dict[str, Any]] = []
    modules: dict[str, Path] = {}
    for recipe, entry in pairs:
        for program in recipe.programs:
            memory = (stored or {}).get(program.name)
            programs.append(_describe(recipe, program, entry, memory))
            modules[program.file] = entry.folder / program.file
            if memory is not None:
                modules[memory_file(program)] = memory.folder / memory_file(program)
    licences = {
        recipe.name: entry.folder / LICENCES
        for recipe, entry in pairs
        if (entry.folder / LICENCES).is_dir()
    }
    contents = ImageContents()
    for recipe, entry in pairs:
        contents.take(recipe, entry.folder / FILES)
        contents.take_own(recipe)
    for path, content in (added or {}).items():
        contents.add(path, content)
    contents.check_against(programs)
    contents.list_beside(programs)
    trees = contents.trees()
    manifest = json.dumps(
        {
            "format": FORMAT,
            **({} if base is None else {"base": dict(base)}),
            **({} if packages is None else {MANIFEST_KEY: list(packages)}),
            "programs": programs,
            "contents": {"file": CONTENTS, "sha256": contents.digest},
            **contents.listing(),
            "trees": trees,
        },
        indent=1,
    )
    if _holds(image, manifest, modules, licences, contents.size):
        return False
    image.parent.mkdir(parents=True, exist_ok=True)
    fresh = image.with_name(f"{image.name}.new-{os.getpid()}")
    with disk_errors(image.parent):
        try:
            remove_tree(fresh)
            fresh.mkdir()
            _copy_modules(programs, modules, fresh)
            contents.write(fresh / CONTENTS)
            for name, texts in licences.items():
                shutil.copytree(texts, fresh / LICENCES / name)
            text = licence_list([recipe for recipe, _ in pairs])
            (fresh / LICENCE_LIST).write_text(text, encoding="utf-8")
            (fresh / MANIFEST).write_text(manifest, encoding="utf-8")
            _swap(fresh, image)
        finally:
            remove_tree(fresh)
    return True


def memory_file(program: Program) -> str:
    """The file in the image with the memory that the program starts with."""
    return f"{program.name}.image"


def _describe(
    recipe: Recipe, program: Program, entry: Entry, memory: Entry | None
) -> dict[str, Any]:
    size, digest = entry.files[program.file]
    names = [installed_path(name) for name in program.names]
    plain = [] if program.plain is None else [program.plain]
    facts = {
        "name": program.name,
        "version": recipe.version,
        "licence": recipe.licence,
        "source": recipe.origin,
        "file": program.file,
        "sha256": digest,
        "size": size,
        "names": plain if memory is not None else names + plain,
    }
    if program.mode != _USUAL_MODE:
        facts["mode"] = program.mode
    if memory is not None:
        size, digest = memory.files[memory_file(program)]
        facts["prepared"] = {
            "names": names,
            "file": memory_file(program),
            "sha256": digest,
            "size": size,
            **json.loads((memory.folder / MEMORY_FACTS).read_text(encoding="utf-8")),
        }
    return facts


def _copy_modules(
    programs: Sequence[dict[str, Any]], modules: dict[str, Path], fresh: Path
) -> None:
    for program in programs:
        for facts in (program, program.get("prepared")):
            if facts is None:
                continue
            copy = fresh / facts["file"]
            check_paths(modules[facts["file"]])
            shutil.copyfile(modules[facts["file"]], copy)
            if file_digest(copy) != facts["sha256"]:
                raise BuildError(
                    f"{modules[facts['file']]} was changed after it was built",
                    "Remove it with `wasmsand build --clean` and build again.",
                )


def _holds(
    image: Path,
    manifest: str,
    modules: dict[str, Path],
    licences: dict[str, Path],
    contents_size: int,
) -> bool:
    try:
        return (
            (image / MANIFEST).read_text(encoding="utf-8") == manifest
            and (image / LICENCE_LIST).is_file()
            and (image / CONTENTS).stat().st_size == contents_size
            and all((image / LICENCES / name).is_dir() for name in licences)
            and all(
                (image / file).stat().st_size == origin.stat().st_size
                for file, origin in modules.items()
            )
        )
    except OSError:
        return False


def _swap(fresh: Path, image: Path) -> None:
    old = image.with_name(f"{image.name}.old-{os.getpid()}")
    if image.exists():
        image.rename(old)
    fresh.rename(image)
    remove_tree(old)


def compile_ahead(image: Path, step: Callable[[str], None]) -> int:
    """Have the engine compile every module and check stored memory now, so that no command waits
    for it later.

    Returns how many were compiled; `step` is told each program's name. Does nothing
    where the engine is not installed: the user space can be built without it.
    """
    try:
        engine: Any = importlib.import_module("wasmsand.engine").default_engine()
        programs: Any = importlib.import_module("wasmsand.machine").image_programs(image)
    except ImportError:
        return 0
    compiled = 0
    for program in programs:
        if not engine.is_compiled(program.sha256):
            step(f"compile {program.name}")
            engine.load(program.sha256, program.read)
            compiled += 1
        engine.keep_compiled(program.sha256)
        images = engine.abilities.memory_images
        if program.prepared is not None and images.find(program.prepared.memory) is None:
            images.load(program.prepared.memory)
    return compiled
