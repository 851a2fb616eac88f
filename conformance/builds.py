"""What suites get from the builder: reference programs, and parts of a built tree.

Owns both. Rules: the builder builds everything, on either side, as it builds recipes; the
programs under test are the recipe's reference build natively, and the image's in the sandbox;
the Makefile that the build makes says which tests there are.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from conformance.suite import Side
from conformance.supplies import Supplies, Workplace
from userland.builder.build import RecipeBuild, Workshop
from userland.builder.cache import Entry
from userland.builder.jobserver import JobServer
from userland.builder.keys import recipe_key, recipe_keys
from userland.builder.progress import PlainProgress
from userland.builder.recipe import Program, Recipe, installed_path, with_dependencies
from userland.builder.schedule import build_recipes
from userland.builder.target import FILES, Target
from userland.builder.target_native import FOR_THE_SANDBOX, NativeTarget
from userland.builder.target_wasm import WasmTarget
from userland.builder.wasm_opt import ensure_wasm_opt

_JOBS = 2
_LAYOUT = "1"
"""Increase this number when a build keeps different files."""
_VARIABLES = "make-variables"


@dataclass(frozen=True)
class BuildRequest:
    """What to build and what to keep; all paths are relative to the tree."""

    recipe: Recipe
    helpers: tuple[str, ...]
    """Programs that only the suite needs."""
    make: tuple[str, ...]
    """Arguments with which make builds the helpers and what they need."""
    after: tuple[str, ...] = ()
    """Shell commands after make, as in recipes."""
    files: tuple[str, ...] = ()
    """Files and directories that the build makes and tests read."""
    fork_through_pointers: tuple[str, ...] | None = None
    """The recipe field of that name, if the helpers fork."""
    makefile: str = "."
    """The directory of the Makefile that defines `variables`."""
    variables: tuple[str, ...] = ()

    @property
    def facts(self) -> str:
        """The part of the cache key besides the recipe's key."""
        kept = (self.files, self.makefile, self.variables)
        forks = () if self.fork_through_pointers is None else self.fork_through_pointers
        return repr((self.helpers, self.make, self.after, *kept, _LAYOUT, *forks))


@dataclass(frozen=True)
class Built:
    """The kept files of a build, under their names in the tree."""

    folder: Path

    def words(self, variable: str) -> list[str]:
        """The words in the value of a Makefile variable."""
        return (self.folder / _VARIABLES / variable).read_text("utf-8").split()


def reference_program(supplies: Supplies, recipe: Recipe, program: Program) -> Path:
    """The native program with which the image's is compared."""
    folder = _entries(supplies, "native", [recipe.name])[recipe.name].folder
    return folder / FILES / installed_path(program.names[0])[1:]


def put_program(
    supplies: Supplies, recipe: Recipe, side: Side, target: Path, program: Program | None = None
) -> None:
    """Put the program under test at `target`: the reference build, or a link to the image's.

    `program` defaults to the only one of the recipe.
    """
    if program is None:
        (program,) = recipe.programs
    target.parent.mkdir(parents=True, exist_ok=True)
    if side == "native":
        shutil.copy2(reference_program(supplies, recipe, program), target)
    else:
        target.symlink_to(installed_path(program.names[0]))


def image_program(supplies: Supplies, recipe: Recipe, program: Program) -> Path:
    """The same program as the image contains it, or would contain it."""
    return _entries(supplies, "sandbox", [recipe.name])[recipe.name].folder / program.file


def testing_python(supplies: Supplies, modules: str) -> Path:
    """The image's Python with packages, linked with the modules of one more recipe."""
    name = f"python-{modules}"
    if name not in supplies.recipes:
        full = supplies.recipe("python-full")
        (program,) = full.programs
        own = replace(program, name="python-testing", names=("python-testing",), plain=None)
        depends = (*full.depends, modules)
        more = replace(full, name=name, depends=depends, programs=(own,), own_files=())
        supplies.recipes[name] = more
    recipe = supplies.recipes[name]
    (program,) = recipe.programs
    return image_program(supplies, recipe, program)


def reference_key(supplies: Supplies, recipe: Recipe) -> str:
    """A key that changes when the reference build changes."""
    return _entries(supplies, "native", [recipe.name])[recipe.name].key


def built(supplies: Supplies, side: Side, request: BuildRequest) -> Built:
    """Build the tree of one side, or find it in the cache."""
    target = _target(supplies, side)
    variant = _variant(request)
    needed = target.depends(variant)
    dependencies = _entries(supplies, side, needed)
    key = recipe_key(variant, [dependencies[name].key for name in needed], target)

    def make(place: Workplace) -> None:
        with _workshop(supplies, target) as shop:
            shop.progress.add(variant.name, variant.version)
            work = place.folder / "build"
            work.mkdir()
            build = RecipeBuild(variant, key, {n: dependencies[n] for n in needed}, shop)
            outputs = build.run(work)
        (tree,) = (work / "src").iterdir()
        for program in variant.programs:
            finished = program.file if side == "sandbox" else f"{FILES}/usr/bin/{program.name}"
            _keep(outputs / finished, place.outputs / program.binary)
            (place.outputs / program.binary).chmod(0o755)
        for name in request.files:
            _keep(tree / name, place.outputs / name)
        _ask(tree, request, place)

    # The key covers the recipe as committed; the request covers the variant.
    name = f"conformance-{request.recipe.name}-{side}-build"
    return Built(supplies.made(name, [key, request.facts], make))


def native_variant(
    supplies: Supplies,
    recipe: Recipe,
    work: Path,
    *,
    cflags: tuple[str, ...] = (),
    ldflags: tuple[str, ...] = (),
    configure: tuple[str, ...] = (),
) -> Path:
    """Build a recipe natively with further flags, in `work`; returns the folder of its outputs."""
    target = _target(supplies, "native")
    build = replace(
        recipe.build,
        cflags=(*recipe.build.cflags, *cflags),
        ldflags=(*recipe.build.ldflags, *ldflags),
        configure=(*recipe.build.configure, *configure),
    )
    needed = target.depends(recipe)
    found = _entries(supplies, "native", needed)
    dependencies = {name: found[name] for name in needed}
    work.mkdir(parents=True)
    with _workshop(supplies, target) as shop:
        shop.progress.add(recipe.name, recipe.version)
        return RecipeBuild(replace(recipe, build=build), "variant", dependencies, shop).run(work)


def _target(supplies: Supplies, side: Side) -> Target:
    if side == "native":
        return NativeTarget(supplies.toolchain)
    return WasmTarget(supplies.toolchain)


def _entries(supplies: Supplies, side: Side, names: Sequence[str]) -> Mapping[str, Entry]:
    """The outputs of recipes and their dependencies, from the cache or built now."""
    target = _target(supplies, side)
    recipes = {
        name: recipe
        for name, recipe in supplies.recipes.items()
        if side == "sandbox" or name not in FOR_THE_SANDBOX
    }
    keys = recipe_keys(recipes, target)
    wanted = with_dependencies(names, supplies.recipes)
    chosen = {name: recipe for name, recipe in wanted.items() if name in recipes}
    found = {name: supplies.cache.find(target.cache_prefix + name, keys[name]) for name in chosen}
    entries = {name: entry for name, entry in found.items() if entry is not None}
    if len(entries) < len(chosen):
        missing = [name for name in chosen if name not in entries]
        supplies.say(f"building {' '.join(missing)} ({side})")
        with _workshop(supplies, target) as shop:
            entries = build_recipes(chosen, keys, shop)
    return entries


@contextmanager
def _workshop(supplies: Supplies, target: Target) -> Iterator[Workshop]:
    progress = PlainProgress(Console(quiet=True))
    wasm_opt = ensure_wasm_opt(supplies.cache, supplies.commands, supplies.say)
    server = JobServer(_JOBS)
    try:
        yield Workshop(supplies.cache, supplies.commands, target, wasm_opt, _JOBS, server, progress)
    finally:
        server.close()


def _variant(request: BuildRequest) -> Recipe:
    """The recipe with the suite's programs instead of its own."""
    programs = tuple(
        Program(
            name=Path(helper).name,
            binary=helper,
            names=(Path(helper).name,),
            fork=request.fork_through_pointers is not None,
            fork_through_pointers=request.fork_through_pointers,
            optimise="O1",
        )
        for helper in request.helpers
    )
    build = replace(
        request.recipe.build,
        make=request.make,
        after=request.after,
        install=(),
        library=None,
    )
    return replace(request.recipe, programs=programs, build=build, files=(), links=())


def _keep(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def _ask(tree: Path, request: BuildRequest, place: Workplace) -> None:
    """Keep the values of Makefile variables, expanded by make itself."""
    folder = place.outputs / _VARIABLES
    folder.mkdir()
    for variable in request.variables:
        rule = f"print-it: ; @echo $({variable}) >{folder / variable}"
        place.run(["make", "-s", f"--eval={rule}", "print-it"], tree / request.makefile)
