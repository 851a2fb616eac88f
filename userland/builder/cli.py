"""The command `wasmsand build`.

Rules: only this module reads arguments; an error is shown as a message with advice and an exit
status (1: failed, 2: wrong arguments, 130: stopped), never as a traceback.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from userland.builder.build import Workshop
from userland.builder.cache import Cache, Entry, default_root, remove_tree
from userland.builder.commands import Commands
from userland.builder.compiler_server import fast_compiler
from userland.builder.errors import BuildError, Interrupted, RecipeError
from userland.builder.features import (
    FULL_PYTHON,
    choose_packages,
    is_native_package,
    native_packages,
    packages_of_image,
)
from userland.builder.image import compile_ahead, write_image
from userland.builder.jobserver import JobServer
from userland.builder.keys import recipe_keys
from userland.builder.preinitialise import store_programs
from userland.builder.prepared_packages import preparation_files
from userland.builder.progress import Progress, progress_on, seconds_text
from userland.builder.recipe import Recipe, built_by_default, load_recipes, with_dependencies
from userland.builder.schedule import build_recipes
from userland.builder.target import FILES, Target
from userland.builder.target_native import FOR_THE_SANDBOX, NativeTarget
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import ensure_needs, ensure_toolchain, find_toolchain
from userland.builder.wasm_opt import wasm_opt_meanwhile
from userland.v86.build import NAME as MACHINE
from userland.v86.build import build_machine

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "userland/recipes"
IMAGE = ROOT / "src/wasmsand/_image"
PACKAGES_IMAGE = ROOT / "src/wasmsand_packages/_image"

_DESCRIPTION = """\
Build the user space from source: real GNU programs, compiled to WebAssembly.

Without NAME, all recipes are built but those of the stage "packages", which take long (`make
packages`). The first build downloads the toolchain and the sources,
which are pinned by version and hash. Results are cached, keyed by the content of everything
that affects them, so a second build takes no time, in any clone of the repository.
"""
_EPILOG = """\
examples:
  wasmsand build                     build everything that is not built yet
  wasmsand build bash                build bash and its dependencies
  wasmsand build python-full --packages numpy,pandas
                                     build Python with these native packages only
  wasmsand build v86                 build the Linux machine of `--mode v86`, in a few minutes
  wasmsand build --list              list all recipes: version, size, licence
  wasmsand build --native jq         build the same jq for this machine, for comparison
  wasmsand build --if-cached python-full   install it only if that takes no building
  wasmsand build --rebuild bash      build again and check that the bytes are the same
  wasmsand build --clean             remove everything built; downloads stay

environment:
  WASMSAND_CACHE           directory of the cache (default: ~/.cache/wasmsand)
  WASMSAND_DEBIAN_MIRROR   Debian mirror to use instead of the one in the configuration of apt

A recipe is a folder in userland/recipes; userland/recipes/README.md explains how to write one.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wasmsand build",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="recipes to build (default: all)")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--list", action="store_true", help="list all recipes, and which of them are built"
    )
    action.add_argument("--clean", action="store_true", help="remove built outputs and logs")
    action.add_argument(
        "--rebuild",
        action="store_true",
        help="build the named recipes (or all) again and compare with the earlier build",
    )
    parser.add_argument(
        "--downloads",
        action="store_true",
        help="with --clean: also remove downloaded sources and tools",
    )
    parser.add_argument(
        "--jobs",
        "-j",
        metavar="N",
        type=_positive,
        default=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        help="number of parallel jobs (default: the number of CPUs, %(default)s)",
    )
    parser.add_argument(
        "--no-install",
        action="store_true",
        help="report missing Debian packages instead of installing them",
    )
    parser.add_argument(
        "--if-cached",
        action="store_true",
        help="build nothing: install the programs if all of them are cached, else say what is not",
    )
    parser.add_argument(
        "--native",
        action="store_true",
        help="build the same programs for this machine, as a reference for comparisons; "
        "print the directories that contain them",
    )
    parser.add_argument(
        "--unoptimised",
        action="store_true",
        help="with --native: compile without optimisation, which takes a fraction of the time",
    )
    parser.add_argument(
        "--packages",
        metavar="NAMES",
        help=f"with {FULL_PYTHON}: the native packages that it has, separated by commas; packages "
        "that they need are added (default: all)",
    )
    parser.add_argument(
        "--image",
        metavar="DIR",
        type=Path,
        default=IMAGE,
        help="directory to install the programs in",
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run `wasmsand build` with these arguments; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.downloads and not options.clean:
        parser.error("--downloads only goes with --clean")
    if options.native and (options.list or options.clean):
        parser.error("--native does not go with --list or --clean")
    if options.unoptimised and not options.native:
        parser.error("--unoptimised only goes with --native")
    if options.packages is not None and not (options.list or FULL_PYTHON in options.names):
        parser.error(f"--packages only goes with {FULL_PYTHON} or --list")
    if options.if_cached and (options.list or options.clean or options.rebuild):
        parser.error("--if-cached does not go with --list, --clean or --rebuild")
    # A log has no width, so tables in it need not be narrow.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    commands = Commands()
    try:
        with _stoppable():
            if MACHINE in options.names:
                build_machine(options, console, Cache(default_root()), commands)
                options.names.remove(MACHINE)
                if not options.names:
                    return 0
            recipes = load_recipes(RECIPES, ROOT)
            if options.packages is not None:
                recipes = choose_packages(recipes, options.packages)
            usual = built_by_default(recipes)
            names = options.names or (recipes if options.list else usual)
            chosen = with_dependencies(names, recipes)
            if options.native:
                _check_reference(chosen)
            cache = Cache(default_root())
            if options.list:
                _list(console, chosen, recipes, cache, commands)
                _list_packages(console, recipes, _packages_image(options.image))
            elif options.clean:
                images = [options.image, _packages_image(options.image)]
                _clean(console, cache, options.names, options.downloads, images)
            else:
                cache.prepare()
                again = frozenset(names) if options.rebuild else frozenset()
                _build(console, chosen, recipes, again, cache, commands, options)
    except KeyboardInterrupt:
        commands.stop()
        return _fail(Interrupted())
    except BuildError as error:
        return _fail(error)
    return 0


def _check_reference(chosen: dict[str, Recipe]) -> None:
    """Only programs have a reference build."""
    if packages := [name for name, recipe in chosen.items() if recipe.stage != "base"]:
        raise RecipeError(
            f"--native does not build packages: {', '.join(packages)}",
            "Packages are compared with the wheels of the same versions on PyPI.",
        )


def _fail(error: BuildError) -> int:
    console = Console(stderr=True)
    console.print(Text("wasmsand build: ", style="bold red") + Text(str(error)), soft_wrap=True)
    if error.advice:
        console.print(Text(error.advice), soft_wrap=True)
    return 130 if isinstance(error, Interrupted) else 1


@contextmanager
def _stoppable() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C: stop the commands and clean up."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = {
            number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
        }
    except ValueError:
        # Another thread than the main one cannot handle signals.
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _build(
    console: Console,
    chosen: dict[str, Recipe],
    recipes: dict[str, Recipe],
    again: frozenset[str],
    cache: Cache,
    commands: Commands,
    options: argparse.Namespace,
) -> None:
    def say(message: str) -> None:
        console.print(Text(message), soft_wrap=True)

    toolchain = ensure_toolchain(commands, not options.no_install, say)
    target: Target = WasmTarget(toolchain)
    if options.native:
        target = NativeTarget(toolchain, optimised=not options.unoptimised)
        recipes = {name: found for name, found in recipes.items() if name not in FOR_THE_SANDBOX}
        chosen = {name: found for name, found in chosen.items() if name not in FOR_THE_SANDBOX}
    keys = recipe_keys(recipes, target)
    entries = {name: cache.find(target.cache_prefix + name, keys[name]) for name in recipes}
    missing = [recipe for name, recipe in chosen.items() if entries[name] is None or again]
    if missing and options.if_cached:
        names = ", ".join(recipe.name for recipe in missing)
        say(f"not built, because these are not cached: {names}")
        return
    with progress_on(console) as progress:
        if missing:
            ensure_needs(missing, commands, not options.no_install, say)
            entries |= _make(chosen, keys, again, cache, commands, target, progress, options.jobs)
        if not options.native:
            installed = built_by_default(recipes).keys() | chosen.keys()
            built = [
                (recipes[name], entry)
                for name, entry in entries.items()
                if entry is not None and name in installed
            ]
            _install(options, built, cache, progress)
    if options.native:
        for name in chosen:
            entry = entries[name]
            if entry is not None and (entry.folder / FILES).is_dir():
                console.print(Text(str(entry.folder / FILES)), soft_wrap=True)
    else:
        _summary(console, chosen, entries, options.image)


def _make(
    chosen: dict[str, Recipe],
    keys: Mapping[str, str],
    again: frozenset[str],
    cache: Cache,
    commands: Commands,
    target: Target,
    progress: Progress,
    jobs: int,
) -> dict[str, Entry]:
    server = JobServer(jobs)
    try:
        with (
            wasm_opt_meanwhile(cache, commands, progress.say) as wasm_opt,
            fast_compiler(commands),
        ):
            shop = Workshop(cache, commands, target, wasm_opt, jobs, server, progress)
            return build_recipes(chosen, keys, shop, again)
    finally:
        server.close()


def _packages_image(image: Path) -> Path:
    """Where the stage "packages" is installed if everything else is in `image`."""
    return PACKAGES_IMAGE if image == IMAGE else image.with_name(f"{image.name}-packages")


def _install(
    options: argparse.Namespace,
    built: list[tuple[Recipe, Entry]],
    cache: Cache,
    progress: Progress,
) -> None:
    def step(text: str) -> None:
        progress.step("image", text)

    progress.add("image", "")
    stored = store_programs(built, cache, step)
    step("write")
    base = [(recipe, entry) for recipe, entry in built if recipe.stage == "base"]
    packages = [(recipe, entry) for recipe, entry in built if recipe.stage == "packages"]
    changed = write_image(options.image, base, stored)
    if packages:
        recipes = {recipe.name: recipe for recipe, _ in built}
        added = {
            path: content
            for recipe, _ in packages
            for path, content in preparation_files(recipe, recipes).items()
        }
        needed = {
            program.name: entry.files[program.file][1]
            for recipe, entry in base
            for program in recipe.programs
            if program.plain is not None
        }
        changed |= write_image(
            _packages_image(options.image),
            packages,
            stored,
            added=added,
            base=needed,
            packages=[recipe.name for recipe, _ in packages if is_native_package(recipe)],
        )
    images = [options.image, *([_packages_image(options.image)] if packages else [])]
    compiled = sum(compile_ahead(image, step) for image in images)
    progress.end("image", "built" if changed or compiled else "cached", "")


def _summary(
    console: Console,
    chosen: dict[str, Recipe],
    entries: Mapping[str, Entry | None],
    image: Path,
) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("program", "version", "size", "names", "built in"):
        table.add_column(column, justify="right" if column in ("size", "names") else "left")
    for recipe in chosen.values():
        entry = entries[recipe.name]
        assert entry is not None, "build_recipes returns every recipe it was given"
        spent = ", ".join(
            f"{step} {seconds_text(seconds)}"
            for step, seconds in entry.seconds.items()
            if seconds >= 0.05
        )
        for program in recipe.programs:
            size = f"{entry.files[program.file][0] / 1e6:.2f} MB"
            table.add_row(program.name, recipe.version, size, str(len(program.names)), spent)
        if not recipe.programs:
            table.add_row(recipe.name, recipe.version, "", "", spent)
    console.print(table)
    console.print(Text(f"the programs are in {image}"), soft_wrap=True)


def _list(
    console: Console,
    chosen: dict[str, Recipe],
    recipes: dict[str, Recipe],
    cache: Cache,
    commands: Commands,
) -> None:
    toolchain = find_toolchain(commands)
    keys = recipe_keys(recipes, WasmTarget(toolchain)) if toolchain is not None else {}
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("recipe", "version", "built", "size", "licence", "summary"):
        table.add_column(column, justify="right" if column == "size" else "left")
    for recipe in chosen.values():
        entry = cache.find(recipe.name, keys[recipe.name]) if recipe.name in keys else None
        size = _image_bytes(recipe, entry) if entry else 0
        table.add_row(
            recipe.name,
            recipe.version,
            "yes" if entry else "no",
            f"{size / 1e6:.2f} MB" if size else "",
            recipe.licence,
            recipe.summary,
        )
    console.print(table)
    if toolchain is None:
        console.print("the toolchain is not installed yet: `wasmsand build` installs it")


def _list_packages(console: Console, recipes: Mapping[str, Recipe], image: Path) -> None:
    """Show which native packages the installed image has, and which it could have."""
    known = native_packages(recipes)
    if not known:
        return
    present = packages_of_image(image)
    if present is None:
        text = f"{FULL_PYTHON} is not installed; it can have these packages: {', '.join(known)}"
    else:
        absent = [name for name in known if name not in present]
        text = f"{FULL_PYTHON} is installed with these packages: {', '.join(present) or 'none'}"
        text += f"; without: {', '.join(absent)}" if absent else ""
    console.print(Text(text), soft_wrap=True)


def _image_bytes(recipe: Recipe, entry: Entry) -> int:
    """The size of a recipe's programs and other files in the image."""
    programs = sum(entry.files[program.file][0] for program in recipe.programs)
    return programs + sum(
        size for path, (size, _) in entry.files.items() if path.startswith(f"{FILES}/")
    )


def _clean(
    console: Console, cache: Cache, names: list[str], downloads: bool, images: list[Path]
) -> None:
    freed = cache.clean(names or None, downloads)
    for image in [] if names else images:
        remove_tree(image)
    console.print(f"removed {freed / 1e6:.1f} MB from {cache.root}")
    if not downloads:
        console.print(
            "kept sources and tools; to remove them too: wasmsand build --clean --downloads"
        )
