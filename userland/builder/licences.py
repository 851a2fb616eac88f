"""The list of the programs in an image, with their licences.

Every image, and so every wheel, contains the list. Whoever passes one on must meet the licences
of the programs; the list names them, and the origin of the sources.
"""

from __future__ import annotations

from collections.abc import Iterable

from userland.builder.recipe import Recipe

_INTRODUCTION = """\
# Licences of the bundled programs

wasmsand itself is under the Apache License 2.0. The programs of its user space, and what
is linked into them, are separate works under the licences below; their texts are in
`licences/`. Each was compiled from the upstream tarball named here, whose sha256 is given,
by the recipe of the same name in `userland/recipes` of wasmsand's source, patches included.
`apt-get source PACKAGE` on Debian fetches a tarball, the project's page on PyPI lists others;
`wasmsand build` fetches and builds all.

| what | version | licence | source | tarball | sha256 |
|---|---|---|---|---|---|
"""


def licence_list(recipes: Iterable[Recipe]) -> str:
    """The list as Markdown."""
    rows = [
        f"| {recipe.name} | {recipe.version} | {recipe.licence} | {recipe.source.origin} "
        f"| {recipe.source.file} | `{recipe.source.sha256}` |\n"
        for recipe in sorted(recipes, key=lambda recipe: recipe.name)
    ]
    return _INTRODUCTION + "".join(rows)
