"""Writes what configure scripts would find out slowly, each time anew.

    python scripts/configure_answers.py            userland/recipes/configure-answers.site
    python scripts/configure_answers.py NAME ...   answers.site of these recipes

The first runs the configure script of each recipe without that file, and keeps an answer if every
script that asked found the same. Such an answer depends on the libc and the compiler only, never on
a library of another recipe or on the building machine; what the libc or a hand-written site file
answers is left to it. The second keeps all other answers of one script, which may depend on the
libraries of the recipe too: their versions are in the file, and a test compares them. Needs a built
user space.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from userland.builder.build import RecipeBuild, Workshop
from userland.builder.cache import Cache, Entry, default_root
from userland.builder.cli import RECIPES, ROOT
from userland.builder.commands import Commands
from userland.builder.errors import BuildError
from userland.builder.jobserver import JobServer
from userland.builder.keys import OWN_ANSWERS, recipe_keys, shared_answers
from userland.builder.progress import PlainProgress
from userland.builder.recipe import Recipe, load_recipes
from userland.builder.target import SYSROOT
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain
from userland.builder.wasm_opt import ensure_wasm_opt

SITE = RECIPES / "configure-answers.site"
_JOBS = 2
_HEAD = """\
# Answers for every configure script: what the scripts of many recipes found out, all of them alike.
#
# Written by scripts/configure_answers.py: do not edit. Run it again when the libc declares more.
# An answer saves one to three compilations in each script that asks. One that is found in the
# libc itself (its share/config.site), or that is given before, counts more than one of these.

"""
_OWN_HEAD = """\
# What only this configure script asks, and found out with: {versions}
#
# Written by scripts/configure_answers.py: do not edit. Run it again when one of these changes.

"""
# What the script must find out on each machine: programs, directories, libtool's ways.
_OF_THE_MACHINE = re.compile(
    r"_(prog|path|env|tool|sys|wl)_|ac_cv_(host|build|target|exeext|objext)|^(lt|acl|am)_cv_"
)
# dash's `echo` writes an n after the line.
_CACHED = re.compile(r"## Cache variables\. ##\n## -+ ##n?\n(.*?)\n## -+ ##", re.DOTALL)
_KINDS = re.compile(
    r"(gl_cv|gt_cv|ac_cv_(have_decl|type|member|func|header|c|typeof|working|struct|sys|alignof)"
    r"|am_cv_(func|langinfo|filesystem))_"
)
# What a script decides by its own options, by programs of the machine, or by the libraries that it
# links; and forks, which some recipes replace.
_PRIVATE = re.compile(
    r"ac_cv_c_compiler|gl_cv_(cc_vis|ld|compiler|libgcc|warn|prog|posix_shell|semaphore_lib)|gt_cv_locale"
    r"|ac_cv_func_(v?fork|strerror_r)|_cv_(lib|prog)_|_path|curl|largefile|file_offset"
)
_OF_A_LIBRARY = re.compile(r"ac_cv_(?:have_decl|func)_(\w+)$")
_HEADER = re.compile(r"ac_cv_header_(\w+)$")


@dataclass(frozen=True)
class _Asking(WasmTarget):
    """Answers of these files are not given: the scripts are to find out by themselves."""

    unknown: frozenset[str] = frozenset()

    def answers(self, recipe: Recipe, dependencies: Mapping[str, Entry]) -> str:
        files = [dependencies["musl"].folder / SYSROOT / "share/config.site"]
        files += [file for file in shared_answers(recipe) if file.name not in self.unknown]
        own = [f"{name}={value}\n" for name, value in recipe.build.answers]
        return "".join([file.read_text(encoding="utf-8") for file in files] + own)


def main(names: Sequence[str]) -> int:
    commands = Commands()
    toolchain = find_toolchain(commands)
    cache = Cache(default_root())
    recipes = load_recipes(RECIPES, ROOT)
    if toolchain is None:
        print("the toolchain is not installed: run make build", file=sys.stderr)
        return 1
    for name in names:
        if name not in recipes or recipes[name].build.system != "autotools":
            print(f"{name}: no recipe with a configure script (userland/recipes)", file=sys.stderr)
            return 2
    target = _Asking(
        toolchain, unknown=frozenset({OWN_ANSWERS} if names else {OWN_ANSWERS, SITE.name})
    )
    keys = recipe_keys(recipes, target)
    entries = {name: cache.find(name, keys[name]) for name in recipes}
    built = {name: entry for name, entry in entries.items() if entry is not None}
    chosen = [recipes[name] for name in names] or [
        recipe
        for recipe in recipes.values()
        if recipe.build.system == "autotools" and recipe.stage == "base"
    ]
    server = JobServer(_JOBS)
    try:
        progress = PlainProgress(Console(quiet=True))
        wasm_opt = ensure_wasm_opt(cache, commands, print)
        shop = Workshop(cache, commands, target, wasm_opt, _JOBS, server, progress)
        found = _ask_all(chosen, built, shop)
    finally:
        server.close()
    libc = _given(built["musl"].folder / SYSROOT / "share/config.site")
    if names:
        for recipe, answers in zip(chosen, found, strict=True):
            _write_own(recipe, recipes, answers, libc)
    else:
        _write_shared(recipes["bash"], built, found, libc)
    return 0


def _write_shared(
    recipe: Recipe,
    built: Mapping[str, Entry],
    found: Iterable[Mapping[str, str]],
    known: set[str],
) -> None:
    for file in shared_answers(recipe):
        known |= _given(file) if file.name not in (SITE.name, OWN_ANSWERS) else set()
    symbols, headers = _of_libraries(built)
    _write(SITE, _HEAD, _alike(found, known, symbols, headers))


def _write_own(
    recipe: Recipe, recipes: Mapping[str, Recipe], answers: Mapping[str, str], known: set[str]
) -> None:
    place = recipe.folder / OWN_ANSWERS
    for file in shared_answers(recipe):
        known = known | (_given(file) if file != place else set())
    given = {name for name, _ in recipe.build.answers}
    kept = {
        name: value
        for name, value in answers.items()
        if value and "/" not in value and not _OF_THE_MACHINE.search(name)
        if name not in known and name not in given
    }
    _write(place, _OWN_HEAD.format(versions=answered_versions(recipe, recipes)), kept)


def answered_versions(recipe: Recipe, recipes: Mapping[str, Recipe]) -> str:
    """The versions that own answers hold for."""
    return " ".join(
        f"{name}-{recipes[name].version}" for name in (recipe.name, *sorted(recipe.depends))
    )


def _write(place: Path, head: str, answers: Mapping[str, str]) -> None:
    lines = (f"{name}=${{{name}={value}}}\n" for name, value in sorted(answers.items()))
    place.write_text(head + "".join(lines), encoding="utf-8")
    print(f"{len(answers)} answers in {place.relative_to(ROOT)}")


def _ask_all(
    chosen: Iterable[Recipe], built: Mapping[str, Entry], shop: Workshop
) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(lambda one: _ask(one, built, shop, Path(work) / one.name), chosen))


def _given(file: Path) -> set[str]:
    """The names of the answers in a site file."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {line.partition("=")[0] for line in lines if not line.startswith("#")}


def _ask(recipe: Recipe, built: Mapping[str, Entry], shop: Workshop, work: Path) -> dict[str, str]:
    """What the configure scripts of one recipe found out."""
    print(f"configuring {recipe.name}", flush=True)
    work.mkdir()
    needed = {name: built[name] for name in shop.target.depends(recipe)}
    shop.progress.add(recipe.name, recipe.version)
    build = RecipeBuild(recipe, "configure-answers", needed, shop)
    try:
        tree = build.configured(work)
    except BuildError as error:
        print(f"{recipe.name}: {error}", file=sys.stderr)
        return {}
    answers: dict[str, str] = {}
    for log in tree.rglob("config.log"):
        listed = _CACHED.search(log.read_text(encoding="utf-8", errors="replace"))
        for line in listed[1].splitlines() if listed else ():
            name, _, value = line.partition("=")
            # Two scripts of one source that disagree make no answer.
            answers[name] = value if answers.get(name, value) == value else ""
    shutil.rmtree(work)
    return answers


def _of_libraries(built: Mapping[str, Entry]) -> tuple[set[str], set[str]]:
    """Symbols and headers of the libraries that only some recipes have."""
    roots = [entry.folder / SYSROOT for name, entry in built.items() if name != "musl"]
    archives = [archive for root in roots for archive in root.glob("lib/*.a")]
    command = ["llvm-nm-22", "--defined-only", "--extern-only", "--no-sort", *map(str, archives)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    symbols = {line.split()[-1] for line in printed.splitlines() if len(line.split()) == 3}
    headers = {
        re.sub(r"\W", "_", path.relative_to(root / "include").as_posix())
        for root in roots
        for path in root.glob("include/**/*.h")
    }
    return symbols, headers


def _alike(
    found: Iterable[Mapping[str, str]], known: set[str], symbols: set[str], headers: set[str]
) -> dict[str, str]:
    values: dict[str, set[str]] = {}
    for answers in found:
        for name, value in answers.items():
            values.setdefault(name, set()).add(value)
    kept = {}
    for name, said in values.items():
        value = next(iter(said))
        if len(said) > 1 or not value or name in known:
            continue
        if not _KINDS.match(name) or _PRIVATE.search(name):
            continue
        if (asked := _OF_A_LIBRARY.match(name)) and asked[1] in symbols:
            continue
        if (asked := _HEADER.match(name)) and (asked[1] in headers or value != "no"):
            continue
        kept[name] = value
    return kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
