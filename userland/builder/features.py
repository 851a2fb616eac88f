"""Features: which native packages the full interpreter has.

Owns the choice of `wasmsand build python-full --packages numpy,pandas`. The recipe `python-full`
depends on all packages and on the libraries that they use; a choice narrows that to the named
packages, to those that they need (`depends` and `requires` of their recipes), and to the libraries
of these. Rules: without a choice the recipe is unchanged, and so is its key; with a choice its key
differs, because the keys of its dependencies are part of it; no other recipe is affected.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from userland.builder.errors import RecipeError
from userland.builder.image_contents import REGISTRY
from userland.builder.recipe import Recipe

FULL_PYTHON = "python-full"
ALL = "all"
MANIFEST_KEY = "packages"
"""Where the manifest of an image names the native packages that it has."""


def native_packages(recipes: Mapping[str, Recipe]) -> list[str]:
    """The packages that can be linked into the full interpreter, sorted."""
    full = recipes.get(FULL_PYTHON)
    depends = () if full is None else full.depends
    return sorted(name for name in depends if is_native_package(recipes[name]))


def is_native_package(recipe: Recipe) -> bool:
    """Whether a recipe is a Python package of the second stage."""
    return recipe.stage == "packages" and any(
        file.path.startswith(REGISTRY) for file in recipe.files
    )


def choose_packages(recipes: dict[str, Recipe], words: str) -> dict[str, Recipe]:
    """The recipes, with a full interpreter that has only these packages, separated by commas."""
    known = native_packages(recipes)
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    if ALL in wanted:
        return recipes
    if not wanted:
        raise RecipeError("--packages names no package", f"Packages: {', '.join(known)}; or all.")
    for name in wanted:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise RecipeError(
                f"--packages: unknown package: {name!r}",
                f"Packages: {', '.join(known)}; or all.{hint}",
            )
    full = recipes[FULL_PYTHON]
    needed = _closure(wanted, recipes)
    always = {"musl", "python"}
    depends = tuple(name for name in full.depends if name in needed or name in always)
    return {**recipes, FULL_PYTHON: replace(full, depends=depends)}


def _closure(names: Iterable[str], recipes: Mapping[str, Recipe]) -> set[str]:
    """The named recipes, and all that they need to be built or imported."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and name in recipes:
            found.add(name)
            waiting += [*recipes[name].depends, *recipes[name].requires]
    return found


def packages_of_image(image: Path) -> list[str] | None:
    """The native packages that an image has, as its manifest names them; None without an image."""
    try:
        manifest = json.loads((image / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return list(manifest.get(MANIFEST_KEY, []))
