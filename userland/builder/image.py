"""The image: the directory of built programs that the package and its wheel carry.

Owns `manifest.json`, and `licences/RECIPE/`, the texts that programs must be passed on
with. Rules: the directory is made whole beside its place and moved
there, so a reader sees the old one or the new one; every module is checked against the
hash it had when it was built.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from userland.builder.cache import LICENCES, Entry, disk_errors, remove_tree
from userland.builder.errors import BuildError
from userland.builder.keys import file_digest
from userland.builder.recipe import Program, Recipe

MANIFEST = "manifest.json"
FORMAT = 1


def write_image(image: Path, built: Iterable[tuple[Recipe, Entry]]) -> bool:
    """Make `image` hold exactly these programs; False if it did already."""
    modules: dict[str, Path] = {}
    licences: dict[str, Path] = {}
    programs = []
    for recipe, entry in sorted(built, key=lambda pair: pair[0].name):
        if (entry.folder / LICENCES).is_dir():
            licences[recipe.name] = entry.folder / LICENCES
        for program in recipe.programs:
            programs.append(_describe(recipe, program, entry))
            modules[program.file] = entry.folder / program.file
    manifest = json.dumps({"format": FORMAT, "programs": programs}, indent=1) + "\n"
    if _holds(image, manifest, modules, licences):
        return False
    image.parent.mkdir(parents=True, exist_ok=True)
    fresh = image.with_name(f"{image.name}.new-{os.getpid()}")
    with disk_errors(image.parent):
        try:
            remove_tree(fresh)
            fresh.mkdir()
            for facts in programs:
                copy = fresh / facts["file"]
                shutil.copyfile(modules[facts["file"]], copy)
                if file_digest(copy) != facts["sha256"]:
                    raise BuildError(
                        f"{modules[facts['file']]} was changed after it was built",
                        "Remove it with `wasmsand build --clean` and build again.",
                    )
            for name, texts in licences.items():
                shutil.copytree(texts, fresh / LICENCES / name)
            (fresh / MANIFEST).write_text(manifest, encoding="utf-8")
            _swap(fresh, image)
        finally:
            remove_tree(fresh)
    return True


def _describe(recipe: Recipe, program: Program, entry: Entry) -> dict[str, Any]:
    size, digest = entry.files[program.file]
    return {
        "name": program.name,
        "version": recipe.version,
        "licence": recipe.licence,
        "source": recipe.origin,
        "file": program.file,
        "sha256": digest,
        "size": size,
        "names": list(program.names),
    }


def _holds(image: Path, manifest: str, modules: dict[str, Path], licences: dict[str, Path]) -> bool:
    try:
        return (
            (image / MANIFEST).read_text(encoding="utf-8") == manifest
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
    """Have the engine compile every module now, so that no command waits for it later.

    Returns how many were compiled; `step` is told each program's name. Does nothing
    where the engine is not installed: the user space can be built without it.
    """
    try:
        engine: Any = importlib.import_module("wasmsand.engine").default_engine()
    except ImportError:
        return 0
    compiled = 0
    for program in json.loads((image / MANIFEST).read_text(encoding="utf-8"))["programs"]:
        if not engine.is_compiled(program["sha256"]):
            step(f"compile {program['name']}")
            engine.load(program["sha256"], (image / program["file"]).read_bytes)
            compiled += 1
    return compiled
