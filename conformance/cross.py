"""Programs that only a suite needs, built for the sandbox as the builder builds others.

Owns one build of a variant of a recipe. Rule: compiler, flags, configure answers and
finishing are the builder's, so that the program is of the same kind as those tested.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from conformance.supplies import Supplies, Workplace
from userland.builder.build import RecipeBuild, Workshop
from userland.builder.cache import Entry
from userland.builder.errors import BuildError
from userland.builder.jobserver import JobServer
from userland.builder.keys import recipe_key, recipe_keys
from userland.builder.progress import PlainProgress
from userland.builder.recipe import Recipe
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain
from userland.builder.wasm_opt import ensure_wasm_opt

_JOBS = 2


def cross_made(supplies: Supplies, name: str, variant: Recipe, files: Sequence[str]) -> Path:
    """A directory with the programs of the variant of a recipe (which is the recipe but for
    its programs), and `files` of the tree they were built in."""
    toolchain = find_toolchain(supplies.commands)
    keys = recipe_keys(supplies.recipes, WasmTarget(toolchain)) if toolchain else {}
    entries = {needed: supplies.cache.find(needed, keys[needed]) for needed in keys}
    dependencies: dict[str, Entry] = {}
    for needed in variant.depends:
        entry = entries.get(needed)
        if entry is None or toolchain is None:
            raise BuildError(f"{needed} is not built", "Run 'make build' (or 'wasmsand build').")
        dependencies[needed] = entry
    assert toolchain is not None, "every program depends on the libc"
    target = WasmTarget(toolchain)
    key = recipe_key(variant, [keys[needed] for needed in variant.depends], target)

    def make(place: Workplace) -> None:
        progress = PlainProgress(Console(quiet=True))
        progress.add(variant.name, variant.version)
        server = JobServer(_JOBS)
        try:
            wasm_opt = ensure_wasm_opt(supplies.cache, supplies.commands, progress.say)
            shop = Workshop(
                supplies.cache, supplies.commands, target, wasm_opt, _JOBS, server, progress
            )
            work = place.folder / "cross"
            work.mkdir()
            built = RecipeBuild(variant, key, dependencies, shop).run(work)
        finally:
            server.close()
        (tree,) = (work / "src").iterdir()
        for program in variant.programs:
            shutil.copy2(built / program.file, place.outputs / program.file)
        for file in files:
            (place.outputs / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / file, place.outputs / file)

    # The key is of the recipe as it is committed; the variant has other programs.
    return supplies.made(name, [key, repr(variant.programs), *files], make)
