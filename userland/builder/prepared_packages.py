"""What an interpreter needs to prepare itself with packages.

Owns the files that tell it (`_prepared_packages.py` of the recipe `python` reads them): which
packages it has, in the order in which they need each other, which of their modules it is to import
(`prepares` in a recipe), and how a module is renewed at a start (`renew.py` in a recipe's folder).
Rules: no build reads these, so that a change of them only prepares the interpreter again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from userland.builder.image_contents import REGISTRY
from userland.builder.recipe import Recipe, installed_path, with_dependencies

LIST = "packages.txt"
_RENEW = "renew.py"


def preparation_files(recipe: Recipe, recipes: Mapping[str, Recipe]) -> dict[str, bytes]:
    """The files for the program of this recipe that starts prepared, by path: one line for each
    package that the recipe depends on, and their `renew.py`. None if it has no packages."""
    needed = with_dependencies([recipe.name], dict(recipes)).values()
    packages = [other for other in needed if any(_is_package(file.path) for file in other.files)]
    program = next((program for program in recipe.programs if program.plain is not None), None)
    if program is None or not packages:
        return {}
    folder = f"{installed_path(program.names[0])}.d"
    packages = _in_order(packages)
    lines = (" ".join((_name(package), *package.prepares)) + "\n" for package in packages)
    files = {f"{folder}/{LIST}": "".join(lines).encode()}
    for package in packages:
        renew = package.folder / _RENEW
        if renew.is_file():
            files[f"{folder}/{_name(package)}.py"] = renew.read_bytes()
    return files


def _in_order(packages: Iterable[Recipe]) -> list[Recipe]:
    """Packages after those that they import."""
    waiting = {package.name: package for package in packages}
    ordered: list[Recipe] = []

    def take(name: str) -> None:
        if package := waiting.pop(name, None):
            for needed in (*package.depends, *package.requires):
                take(needed)
            ordered.append(package)

    for name in list(waiting):
        take(name)
    return ordered


def _name(package: Recipe) -> str:
    """The directory of the registry. It has the name of the package, which a recipe of a package
    without native code need not have."""
    path = next(file.path for file in package.files if _is_package(file.path))
    return path.removeprefix(REGISTRY).strip("/").partition("/")[0]


def _is_package(path: str) -> bool:
    return path.startswith(REGISTRY)
