"""Reads recipes: each is a folder with a `recipe.toml`.

Owns the format, which `userland/recipes/README.md` explains. Rules: a recipe is declarative and
contains no code; every source has a sha256; an unknown or missing field is an error that names the
file and the field.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from userland.builder.errors import RecipeError
from userland.builder.recipe_table import Table

BuildSystem = Literal["autotools", "make", "script"]
Optimise = Literal["none", "O1", "O2", "O3", "Os"]
Stage = Literal["base", "packages"]
Owner = Literal["root", "user"]

_NAME = re.compile(r"[a-z0-9][a-z0-9+._-]*")
_PROJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Source:
    """An upstream tarball: of a Debian source package, or of a project on PyPI."""

    package: str
    """The Debian source package; empty for a file of PyPI."""
    suites: tuple[str, ...]
    """The Debian suites that have had this version, most stable first."""
    file: str
    """The tarball's name in the archive's pool or on the project's page."""
    sha256: str
    upstream: tuple[str, ...] = ()
    """Upstream addresses of the same file, in case the archive drops it. A recipe has them on one
    line, which is not part of its key."""
    pypi: str = ""
    """The project on PyPI; empty for a Debian source package."""

    @property
    def origin(self) -> str:
        """Where the file comes from, in words."""
        return f"PyPI project {self.pypi}" if self.pypi else f"Debian source package {self.package}"


@dataclass(frozen=True)
class Program:
    """One module of the image."""

    name: str
    binary: str
    """Where the build leaves it, relative to the source tree."""
    names: tuple[str, ...]
    """Its installed names: names in /bin and /usr/bin, or absolute paths."""
    fork: bool
    """Whether it forks and continues in the child, and so needs Asyncify."""
    fork_through_pointers: tuple[str, ...] | None
    """Functions whose calls through pointers may lead to a fork; None means all."""
    optimise: Optimise
    """The wasm-opt level after linking."""
    profile: Path | None = None
    """With a profile, functions that fork is called from and that are in it exist twice."""
    mode: int = 0o755
    """Permissions. 0o4755: it runs as root, whoever starts it."""
    plain: str | None = None
    """If the program is stored at its checkpoint and starts from there: the path of the module
    that starts from the beginning."""

    @property
    def file(self) -> str:
        """Its file name in the image."""
        return f"{self.name}.wasm"


@dataclass(frozen=True)
class ImageFile:
    """A file or directory that is copied from the tree to the image."""

    path: str
    """Its absolute path in the image."""
    origin: str
    """Where the build leaves it, relative to the source tree."""
    mode: int | None
    """Permissions; None means 755 if the owner may execute it, else 644."""


@dataclass(frozen=True)
class OwnFile:
    """A file of the recipe's folder that goes to the image as it is."""

    path: str
    """Its absolute path in the image."""
    origin: Path


@dataclass(frozen=True)
class ImageDirectory:
    """A directory of the image that may be empty, or belongs to the user."""

    path: str
    owner: Owner


@dataclass(frozen=True)
class ImageLink:
    """A symbolic link of the image."""

    path: str
    to: str


@dataclass(frozen=True)
class Build:
    """How sources become outputs."""

    system: BuildSystem
    needs: tuple[tuple[str, str], ...] = ()
    """Programs that the build runs on this machine, with their Debian packages."""
    configure: tuple[str, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    """Configure's cache variables that it cannot find out when it cross-compiles."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of every step; RECIPE, the recipe's folder, is added."""
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    guest_cflags: tuple[str, ...] = ()
    """Further flags for the sandbox's build, but not for the reference build."""
    guest_ldflags: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Shell commands before configure."""
    make: tuple[str, ...] = ()
    """Arguments of make: targets and variables."""
    after: tuple[str, ...] = ()
    """Shell commands after make."""
    install: tuple[str, ...] = ()
    """Arguments of the make that installs into the tree's folder `stage`; empty: do not install."""
    library: str | None = None
    """The folder of the tree whose include/ and lib/ dependent recipes use."""
    patches: tuple[Path, ...] = ()
    script: Path | None = None
    """For `system = "script"`: called with the source tree and the output directory."""
    inputs: tuple[Path, ...] = ()
    """Further files and directories that decide the output."""


@dataclass(frozen=True)
class Recipe:
    """One folder of `userland/recipes`."""

    name: str
    version: str
    summary: str
    licence: str
    folder: Path
    source: Source
    build: Build
    programs: tuple[Program, ...]
    depends: tuple[str, ...]
    files: tuple[ImageFile, ...] = ()
    links: tuple[ImageLink, ...] = ()
    licence_files: tuple[str, ...] = ()
    """The files with the licence's text, if their names at the tree's top are unusual."""
    stage: Stage = "base"
    """When it is built: with everything, or only when it is named."""
    row: str | None = None
    """The recipe's text if it is a row of a table (`wheel_table.py`) and has no file of its own."""
    own_files: tuple[OwnFile, ...] = ()
    """Files of the recipe's folder that go to the image without a build."""
    directories: tuple[ImageDirectory, ...] = ()
    interface: str = ""
    """What recipes that depend on this one are compiled against: it stands for this recipe's key
    in theirs. Empty: they depend on everything here."""
    prepares: tuple[str, ...] = ()
    """For a Python package: the modules that a prepared interpreter has imported already. A recipe
    has them on one line, which is not part of its key."""
    requires: tuple[str, ...] = ()
    """For a Python package: packages with native code that it imports, beside those in `depends`.
    A recipe has them on one line, which is not part of its key."""
    contains_depends: bool = False
    """Whether it contains what the recipes of `depends` make, and so depends on all of them as a
    whole, whatever their `interface`."""

    @property
    def file(self) -> Path:
        return self.folder / "recipe.toml"

    @property
    def origin(self) -> str:
        """The origin of the source in one line, for the manifest."""
        return (
            f"{self.name} {self.version} ({self.source.origin}, "
            f"{self.source.file}, sha256 {self.source.sha256})"
        )


def load_recipe(folder: Path, root: Path) -> Recipe:
    """The recipe in `folder`; `root` is the repository, to which script paths are relative."""
    file = folder / "recipe.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(
            f"{file} does not exist", "A recipe is a folder with that file."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file} is not valid TOML: {error}") from None
    top = Table(file, "", document)
    name = top.text("name", _NAME)
    if name != folder.name:
        raise top.fail("name", f"is {name!r} but the folder is {folder.name!r}")
    recipe = Recipe(
        name=name,
        version=top.text("version"),
        summary=top.text("summary"),
        licence=top.text("licence"),
        folder=folder,
        source=_source(top.table("source")),
        build=_build(top.table("build"), folder, root),
        programs=tuple(_program(table, folder) for table in top.tables("programs")),
        depends=top.strings("depends", ()),
        files=tuple(_file(table) for table in top.tables("files")),
        links=tuple(_link(table) for table in top.tables("links")),
        licence_files=top.strings("licence_files", ()),
        stage=_stage(top),
        own_files=tuple(_own_file(table, folder) for table in top.tables("own_files")),
        directories=tuple(_directory(table) for table in top.tables("directories")),
        interface=top.take("interface", str, ""),
        prepares=top.strings("prepares", ()),
        requires=top.strings("requires", ()),
        contains_depends=top.take("contains_depends", bool, False),
    )
    top.finish()
    if recipe.build.system != "script" and "musl" not in recipe.depends:
        raise top.fail("depends", "must name musl, which contains the compiler driver")
    return recipe


def _stage(table: Table) -> Stage:
    stage = table.take("stage", str, "base")
    if stage not in get_args(Stage):
        raise table.fail("stage", f"must be one of {', '.join(get_args(Stage))}")
    return stage  # type: ignore[return-value]  # checked above


def _source(table: Table) -> Source:
    from_pypi = table.has("pypi")
    source = Source(
        package="" if from_pypi else table.text("package", _NAME),
        suites=() if from_pypi else table.strings("suites"),
        file=table.text("file", re.compile(r"[A-Za-z0-9][A-Za-z0-9+._~-]*")),
        sha256=table.text("sha256", _SHA256),
        upstream=table.strings("upstream", ()),
        pypi=table.text("pypi", _PROJECT) if from_pypi else "",
    )
    if not (source.suites or from_pypi):
        raise table.fail("suites", "must name at least one suite")
    if not all(re.fullmatch(r"https://[!-~]+", address) for address in source.upstream):
        raise table.fail("upstream", "must be addresses that begin with https://")
    table.finish()
    return source


def _build(table: Table, folder: Path, root: Path) -> Build:
    system = table.text("system")
    if system not in get_args(BuildSystem):
        raise table.fail("system", f"must be one of {', '.join(get_args(BuildSystem))}")
    script = root / table.text("script") if system == "script" else None
    build = Build(
        system=system,  # type: ignore[arg-type]  # checked above
        needs=table.table("needs", {}).remaining_strings(),
        configure=table.strings("configure", ()),
        answers=table.table("answers", {}).remaining_strings(),
        variables=(
            *table.table("variables", {}).remaining_strings(),
            ("RECIPE", str(folder)),
        ),
        cflags=table.strings("cflags", ()),
        ldflags=table.strings("ldflags", ()),
        guest_cflags=table.strings("guest_cflags", ()),
        guest_ldflags=table.strings("guest_ldflags", ()),
        before=table.strings("before", ()),
        make=table.strings("make", ()),
        after=table.strings("after", ()),
        install=table.strings("install", ()),
        library=table.inner_path("library") if table.has("library") else None,
        patches=tuple(folder / patch for patch in table.strings("patches", ())),
        script=script,
        inputs=tuple(root / path for path in table.strings("inputs", ())),
    )
    for patch in build.patches:
        if not patch.is_file():
            raise table.fail("patches", f"names {patch.name}, which is not in the folder")
    if script is not None and not os.access(script, os.X_OK):
        raise table.fail("script", f"names {script}, which is not an executable file")
    for path in build.inputs:
        if not path.exists():
            raise table.fail("inputs", f"names {path}, which does not exist")
    table.finish()
    return build


def _program(table: Table, folder: Path) -> Program:
    name = table.text("name", _NAME)
    optimise = table.take("optimise", str, "O1")
    if optimise not in get_args(Optimise):
        raise table.fail("optimise", f"must be one of {', '.join(get_args(Optimise))}")
    program = Program(
        name=name,
        binary=table.inner_path("binary"),
        names=table.strings("names", (name,)),
        fork=table.take("fork", bool, False),
        fork_through_pointers=table.optional_strings("fork_through_pointers"),
        optimise=optimise,  # type: ignore[arg-type]  # checked above
        profile=folder / table.inner_path("profile") if table.has("profile") else None,
        mode=_mode(table) or 0o755,
        plain=table.image_path("plain") if table.has("plain") else None,
    )
    if program.profile is not None and not (program.fork and program.profile.is_file()):
        raise table.fail("profile", "needs fork = true, and a file of this name in the folder")
    for installed in program.names:
        path = installed_path(installed)
        plain = "/" not in installed
        if not installed or path != os.path.normpath(path) or not (plain or path == installed):
            raise table.fail("names", f"cannot hold {installed!r}")
    table.finish()
    return program


def _file(table: Table) -> ImageFile:
    file = ImageFile(
        path=table.image_path("path"),
        origin=table.inner_path("from"),
        mode=_mode(table),
    )
    table.finish()
    return file


def _mode(table: Table) -> int | None:
    mode = table.take("mode", int) if table.has("mode") else None
    if mode is not None and not 0 <= mode <= 0o7777:
        raise table.fail("mode", "must be permissions, like 0o755")
    return mode


def _own_file(table: Table, folder: Path) -> OwnFile:
    file = OwnFile(path=table.image_path("path"), origin=folder / table.inner_path("from"))
    if not file.origin.is_file():
        raise table.fail("from", f"names {file.origin.name}, which is not in the folder")
    table.finish()
    return file


def _directory(table: Table) -> ImageDirectory:
    path, owner = table.image_path("path"), table.take("owner", str, "root")
    if owner not in get_args(Owner):
        raise table.fail("owner", f"must be one of {', '.join(get_args(Owner))}")
    table.finish()
    return ImageDirectory(path, owner)  # type: ignore[arg-type]  # checked above


def _link(table: Table) -> ImageLink:
    link = ImageLink(path=table.image_path("path"), to=table.text("to"))
    table.finish()
    return link


def installed_path(name: str) -> str:
    """The absolute path of a program's name, which is in /usr/bin unless it is absolute."""
    return name if name.startswith("/") else f"/usr/bin/{name}"


def load_recipes(folder: Path, root: Path) -> dict[str, Recipe]:
    """All recipes by name, dependencies before their users."""
    # The module needs the types of this one.
    from userland.builder.wheel_table import load_wheels

    found = {
        path.parent.name: load_recipe(path.parent, root)
        for path in sorted(folder.glob("*/recipe.toml"))
    }
    for tables in sorted(folder.glob("*/wheels")):
        for recipe in load_wheels(tables.parent, root):
            if recipe.name in found:
                raise RecipeError(f"{tables}: {recipe.name} is a recipe already")
            found[recipe.name] = recipe
    ordered: dict[str, Recipe] = {}

    def visit(name: str, users: tuple[str, ...]) -> None:
        if name in users:
            raise RecipeError(f"recipes depend on each other: {' → '.join((*users, name))}")
        if name not in found:
            raise RecipeError(f"{found[users[-1]].file}: depends names an unknown recipe: {name!r}")
        for needed in found[name].depends:
            visit(needed, (*users, name))
            if found[name].stage == "base" and _is_of_later_stage(found[needed]):
                raise RecipeError(
                    f"{found[name].file}: depends names {needed!r}, which is of a later stage"
                )
        ordered.setdefault(name, found[name])

    for name in found:
        visit(name, ())
    _check_installed_names(ordered.values())
    return ordered


def _is_of_later_stage(recipe: Recipe) -> bool:
    """A recipe without files for the image is a tool, and is built for whoever needs it."""
    return recipe.stage != "base" and bool(recipe.programs or recipe.files or recipe.links)


def _check_installed_names(recipes: Iterable[Recipe]) -> None:
    """Raise an error if two programs, files or links claim the same path of the image."""
    owner: dict[str, str] = {}
    for recipe in recipes:
        claims = [installed_path(name) for program in recipe.programs for name in program.names]
        claims += [program.plain for program in recipe.programs if program.plain is not None]
        claims += [file.path for file in recipe.files] + [link.path for link in recipe.links]
        claims += [file.path for file in recipe.own_files]
        for path in claims:
            if path in owner:
                raise RecipeError(f"{recipe.file}: {path} is already installed by {owner[path]}")
            owner[path] = recipe.name


def built_by_default(recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """The recipes that are built when none is named, in building order."""
    return {name: recipe for name, recipe in recipes.items() if recipe.stage == "base"}


def with_dependencies(names: Iterable[str], recipes: dict[str, Recipe]) -> dict[str, Recipe]:
    """The named recipes and all that they need, dependencies first."""
    wanted: set[str] = set()

    def want(name: str) -> None:
        if name not in recipes:
            raise RecipeError(
                f"unknown recipe: {name!r}", f"Recipes: {', '.join(sorted(recipes))}."
            )
        wanted.add(name)
        for needed in recipes[name].depends:
            want(needed)

    for name in names:
        want(name)
    return {name: recipe for name, recipe in recipes.items() if name in wanted}
