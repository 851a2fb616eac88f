"""The list of packages that an interpreter prepares."""

from __future__ import annotations

from pathlib import Path

from userland.builder.prepared_packages import preparation_files
from userland.builder.recipe import load_recipes

ROOT = Path(__file__).resolve().parents[2]


def test_packages_are_listed_by_their_registry_name_after_those_they_import() -> None:
    recipes = load_recipes(ROOT / "userland/recipes", ROOT)
    files = preparation_files(recipes["python-full"], recipes)
    lists = [data.decode() for path, data in files.items() if path.endswith("/packages.txt")]
    names = [line.split()[0] for line in lists[0].splitlines()]
    assert names.index("cycler") < names.index("matplotlib")
    assert names.index("numpy") < names.index("contourpy") < names.index("matplotlib")
    assert names.index("python-dateutil") < names.index("pandas")
    assert len(names) == len(set(names))
    assert any(path.endswith("/matplotlib.py") for path in files)
