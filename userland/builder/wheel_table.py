"""Recipes of pure Python packages, which are rows of a table.

Owns the format of `userland/recipes/*/wheels/*.toml`: one table per package, with its version,
licence and hash. Rules: a row is a recipe like any other, with its own key and its own output, so a
change of one row builds one package; the recipe of `requests` is called `python-requests`;
`userland/builder/package_wheel.py` builds all of them; an unknown or missing field is an error that
names the file and the field.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from userland.builder.errors import RecipeError
from userland.builder.recipe import Build, ImageFile, Recipe, Source
from userland.builder.recipe_table import Table

_SCRIPT = "userland/builder/package_wheel.py"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*\.(whl|tar\.gz)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# For the compiled files. Nothing is compiled from C, but musl brings the variables of a build.
_DEPENDS = ("musl", "quick-python")


def load_wheels(folder: Path, root: Path) -> Iterator[Recipe]:
    """The recipes of all tables in the folder's `wheels`; `root` is the repository."""
    for file in sorted((folder / "wheels").glob("*.toml")):
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RecipeError(f"{file} is not valid TOML: {error}") from None
        top = Table(file, "", document)
        for name in document:
            if not _NAME.fullmatch(name):
                raise top.fail(name, "is not a normalised name, like python-dateutil")
            row = json.dumps([name, document[name]], sort_keys=True)
            yield _recipe(name, top.table(name), row, folder, root)


def _recipe(name: str, table: Table, row: str, folder: Path, root: Path) -> Recipe:
    version = table.text("version")
    stem = f"{name.replace('-', '_')}-{version}"
    file = table.text("file", _FILE) if table.has("file") else f"{stem}-py3-none-any.whl"
    # A wheel has its licence with its metadata; a source distribution has it at the top.
    info = f"{stem}.dist-info/" if file.endswith(".whl") else ""
    recipe = Recipe(
        name=name if name.startswith("python-") else f"python-{name}",
        version=version,
        summary=table.text("summary"),
        licence=table.text("licence"),
        folder=folder,
        source=Source("", (), file, table.text("sha256", _SHA256), pypi=name),
        build=Build(
            system="script",
            variables=(("PACKAGE", name), ("RECIPE", str(folder))),
            script=root / _SCRIPT,
            inputs=(root / _SCRIPT,),
        ),
        programs=(),
        depends=_DEPENDS,
        files=(ImageFile(f"/usr/lib/python/{name}", "stage/package", None),),
        licence_files=tuple(info + text for text in table.strings("licence_files")),
        row=row,
    )
    table.finish()
    return recipe
