"""What suites are made from; all of it comes from the builder's cache.

Owns fetching and unpacking by recipe, and `made`: a directory that is made once and found again
by the content of its ingredients. Rules: tarballs are those that the recipes pin, so both sides
come from the same bytes; an entry that has its final name in the cache is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from userland.builder.cache import Cache, default_root
from userland.builder.commands import Commands
from userland.builder.errors import BuildError, MissingTool, StepFailed
from userland.builder.keys import file_digest, tree_digest
from userland.builder.recipe import Recipe, load_recipe, load_recipes
from userland.builder.sources import fetch, unpack
from userland.builder.toolchain import Toolchain, find_toolchain

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "userland/recipes"
_OWN_RECIPES = ("jimtcl", "numpy-tests")
"""In `conformance/recipes`: programs that suites need and the image does not."""
_TAIL_LINES = 25
_LOCALES = ("de_DE", "el_GR", "en_US", "fr_FR", "ja_JP", "ru_RU", "tr_TR")


@dataclass(frozen=True)
class Workplace:
    """A place to make one thing: an empty directory, a directory for outputs, and a log."""

    name: str
    folder: Path
    outputs: Path
    log: IO[bytes]
    log_path: Path
    commands: Commands

    def run(
        self, argv: Sequence[str | Path], cwd: Path, extra: Mapping[str, str] | None = None
    ) -> None:
        """Run a build command; if it fails, raise `StepFailed` with the end of the log."""
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "TZ": "UTC",
            **(extra or {}),
        }
        self.log.write(f"\n### {' '.join(map(str, argv))}\n".encode())
        self.log.flush()
        status = self.commands.run(argv, output=self.log, cwd=cwd, env=env)
        if status != 0:
            lines = self.log_path.read_text("utf-8", "replace").splitlines()[-_TAIL_LINES:]
            tail = "\n".join(f"  {line}" for line in lines)
            raise StepFailed(self.name, str(argv[0]), f"status {status}", self.log_path, tail)


class Supplies:
    """Sources, compilers, and what is made with them."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.cache = Cache(default_root())
        self.cache.prepare()
        self.commands = Commands()
        self.recipes = load_recipes(RECIPES, ROOT)
        for name in _OWN_RECIPES:
            self.recipes[name] = load_recipe(Path(__file__).parent / "recipes" / name, ROOT)
        self.say = say

    def recipe(self, name: str) -> Recipe:
        """The recipe whose program is tested."""
        return self.recipes[name]

    def unpack(self, recipe: Recipe, place: Workplace) -> Path:
        """Unpack the recipe's source; returns the tree."""
        tarball = fetch(recipe.source, self.cache, self.commands)
        return unpack(tarball, place.folder / "src", self.commands, place.log)

    @cached_property
    def toolchain(self) -> Toolchain:
        """The compilers of the builder."""
        self.require("setsid", "setpriv")
        found = find_toolchain(self.commands)
        if found is None:
            raise BuildError("no compiler is installed", "Run 'make build' (or 'wasmsand build').")
        return found

    def require(self, *tools: str) -> None:
        """Raise an error for the first of these programs that is not installed on the host."""
        for tool in tools:
            if shutil.which(tool) is None:
                raise MissingTool(
                    f"{tool} is not installed",
                    "The native side needs diffutils, grep, locales and util-linux.",
                )

    @cached_property
    def locales(self) -> Path:
        """The locales for the native side's LOCPATH: the UTF-8 ones that tests ask for."""
        self.require("localedef")
        facts = [platform.libc_ver()[1], *_LOCALES]
        return self.made("conformance-locales", facts, _make_locales)

    def made(
        self, name: str, ingredients: Sequence[str], make: Callable[[Workplace], None]
    ) -> Path:
        """The directory that `make` fills, or the cached one if the ingredients are the same."""
        key = hashlib.sha256(json.dumps(list(ingredients)).encode()).hexdigest()
        if (entry := self.cache.find(name, key)) is not None:
            return entry.folder
        lock = f"{name}-{key[:16]}"
        with self.cache.lock(lock, self.commands.stopped):
            if (entry := self.cache.find(name, key)) is not None:
                return entry.folder
            self.say(f"building {name}")
            with self.cache.scratch(lock) as folder:
                outputs = folder / "out"
                outputs.mkdir()
                log_path = self.cache.log_file(name, key)
                with log_path.open("wb") as log:
                    make(Workplace(name, folder, outputs, log, log_path, self.commands))
                return self.cache.publish(name, key, outputs, {}).folder


def _make_locales(place: Workplace) -> None:
    for name in _LOCALES:
        output = place.outputs / f"{name}.UTF-8"
        place.run(["localedef", "--no-archive", "-i", name, "-f", "UTF-8", output], place.folder)


def code_digest(*modules: str) -> str:
    """Digest of files of this package, because they decide outcomes too."""
    here = Path(__file__).parent
    return hashlib.sha256(
        "".join(file_digest(here / name) for name in modules).encode()
    ).hexdigest()


def product_digest() -> str:
    """Digest of the package under test: kernel, engine and the built programs."""
    return tree_digest(ROOT / "src/wasmsand")
