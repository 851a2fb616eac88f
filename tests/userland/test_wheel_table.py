"""Pure Python packages: rows of a table that are recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.errors import RecipeError
from userland.builder.wheel_table import load_wheels

ROWS = """
[some-package]
version = "1.2"
summary = "a package"
licence = "MIT"
licence_files = ["licenses/LICENSE"]
sha256 = "{a}"

[tzdata]
version = "2026.1"
summary = "zones"
licence = "Apache-2.0"
licence_files = ["LICENSE"]
file = "tzdata-2026.1-py2.py3-none-any.whl"
sha256 = "{b}"

[with-source]
version = "3"
summary = "optional C"
licence = "BSD-3-Clause"
licence_files = ["LICENSE.txt"]
file = "with_source-3.tar.gz"
sha256 = "{c}"
"""


def table(world: World, text: str = ROWS) -> Path:
    folder = world.recipes_folder / "python-packages"
    (folder / "wheels").mkdir(parents=True, exist_ok=True)
    for letter in "abc":
        text = text.replace(f"{{{letter}}}", letter * 64)
    (folder / "wheels/some.toml").write_text(text)
    return folder


def test_each_row_is_a_recipe(world: World) -> None:
    first, second, third = load_wheels(table(world), world.root)
    assert (first.name, first.version, first.stage) == ("python-some-package", "1.2", "base")
    assert first.source.file == "some_package-1.2-py3-none-any.whl"
    assert first.source.pypi == "some-package"
    assert first.licence_files == ("some_package-1.2.dist-info/licenses/LICENSE",)
    assert [(file.path, file.origin) for file in first.files] == [
        ("/usr/lib/python/some-package", "stage/package")
    ]
    assert dict(first.build.variables)["PACKAGE"] == "some-package"
    assert (second.name, second.source.file) == (
        "python-tzdata",
        "tzdata-2026.1-py2.py3-none-any.whl",
    )
    assert third.licence_files == ("LICENSE.txt",)


def test_a_change_of_one_row_changes_one_recipe(world: World) -> None:
    before = [recipe.row for recipe in load_wheels(table(world), world.root)]
    changed = ROWS.replace('"zones"', '"all zones"')
    after = [recipe.row for recipe in load_wheels(table(world, changed), world.root)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = "1.2"\n', "", "some-package.version is missing"),
        ("[tzdata]", "[Tz_Data]", "Tz_Data is not a normalised name"),
        ('"{a}"', '"short"', "some-package.sha256 cannot be 'short'"),
        ('"optional C"', '"optional C"\nextra = 1', "with-source.extra is an unknown field"),
        ('"with_source-3.tar.gz"', '"with_source-3.deb"', "with-source.file cannot be"),
        ("[tzdata]", "[tzdata", "is not valid TOML"),
    ],
)
def test_mistakes_are_named(world: World, old: str, new: str, message: str) -> None:
    assert old in ROWS
    with pytest.raises(RecipeError, match=message):
        list(load_wheels(table(world, ROWS.replace(old, new)), world.root))
