"""Content keys: the names under which the cache keeps the outputs of recipes.

A key is a sha256 over everything that decides the output's bytes: the recipe file,
its patches and further inputs, the source's hash, the keys of its dependencies, the
toolchain, and the builder's own code that compiles and finishes. Rules: whatever can
change the bytes changes the key; the place and the time of a build never do.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from userland.builder.recipe import Recipe

if TYPE_CHECKING:
    from userland.builder.target import Target


def file_digest(path: Path) -> str:
    """Hex sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_digest(path: Path) -> str:
    """Hex sha256 of a file, or of a directory's names, contents, modes and links."""
    if not path.is_dir():
        return file_digest(path)
    total = hashlib.sha256()
    for entry in sorted(_entries(path), key=lambda found: found.relative_to(path).as_posix()):
        if entry.is_symlink():
            kind, content = "link", os.readlink(entry)
        else:
            kind = "program" if os.access(entry, os.X_OK) else "file"
            content = file_digest(entry)
        total.update(json.dumps([entry.relative_to(path).as_posix(), kind, content]).encode())
    return total.hexdigest()


def _entries(folder: Path) -> Iterable[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            # Compiled Python files are not inputs.
            if entry.name != "__pycache__":
                yield from _entries(entry)
        elif entry.suffix != ".pyc":
            yield entry


OWN_ANSWERS = "answers.site"


def recipe_key(recipe: Recipe, dependencies: Iterable[str], target: Target) -> str:
    """The key of one recipe; `dependencies` are its `needed_keys`."""
    parts = {
        "recipe": _recipe_digest(recipe),
        "patches": [file_digest(patch) for patch in recipe.build.patches],
        "inputs": [tree_digest(path) for path in recipe.build.inputs],
        "answers": [file_digest(file) for file in shared_answers(recipe)],
        "source": recipe.source.sha256,
        "depends": list(dependencies),
        "toolchain": target.identity(),
        # The modules of the builder that decide the output.
        "builder": [file_digest(Path(__file__).with_name(name)) for name in target.code],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _recipe_digest(recipe: Recipe) -> str:
    """Digest of a recipe without the fields that no build reads: its upstream addresses (the hash
    identifies the source), and what a prepared interpreter or a package imports."""
    if recipe.row is not None:
        return hashlib.sha256(recipe.row.encode()).hexdigest()
    lines = recipe.file.read_bytes().splitlines(keepends=True)
    unread = (b"upstream = ", b"prepares = ", b"requires = ")
    kept = (line for line in lines if not line.startswith(unread))
    return hashlib.sha256(b"".join(kept)).hexdigest()


def recipe_keys(recipes: Mapping[str, Recipe], target: Target) -> dict[str, str]:
    """The key of each recipe; `recipes` lists dependencies before their users."""
    keys: dict[str, str] = {}
    for recipe in recipes.values():
        keys[recipe.name] = recipe_key(recipe, needed_keys(recipe, recipes, keys, target), target)
    return keys


def needed_keys(
    recipe: Recipe, recipes: Mapping[str, Recipe], keys: Mapping[str, str], target: Target
) -> list[str]:
    """What stands for the recipes that this one depends on: their keys or interfaces."""
    return [
        keys[name] if recipe.contains_depends else recipes[name].interface or keys[name]
        for name in target.depends(recipe)
    ]


def shared_answers(recipe: Recipe) -> list[Path]:
    """Files with answers that no configure script can find out by itself, or only slowly. The last
    one has those that only the script of this recipe asks for."""
    if recipe.build.system != "autotools":
        return []
    recipes = recipe.folder.parent
    files = [
        recipes.parent / "libc/config.site",
        recipes / "config.site",
        recipes / "configure-answers.site",
        recipe.folder / OWN_ANSWERS,
    ]
    return [file for file in files if file.is_file()]
