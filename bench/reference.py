"""The native programs of the comparison: the recipes' reference builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from conformance.builds import reference_program
from conformance.supplies import Supplies


def reference_folders(names: Iterable[str], say: Callable[[str], None]) -> dict[str, Path]:
    """The folder of each recipe's native programs, by recipe; builds what is missing."""
    supplies = Supplies(say)
    folders = {}
    for name in sorted(set(names)):
        recipe = supplies.recipe(name)
        folders[name] = reference_program(supplies, recipe, recipe.programs[0]).parent
    return folders
