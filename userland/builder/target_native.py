"""Building for the machine we are on: the reference that our programs are compared with.

The same source, patches, options and compiler as for the sandbox, but the machine's own
libc and CPU. Differential tests, test suites and benchmarks run these, so that a
difference is never one of versions or options. Tests that only compare what programs do take
unoptimised ones, which are built in a fraction of the time. Rule: this file's content is part
of every native key.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from userland.builder.cache import Entry
from userland.builder.errors import BuildError
from userland.builder.recipe import Program, Recipe, installed_path
from userland.builder.target import FILES, RunTool, library_flags, path_maps
from userland.builder.toolchain import Toolchain

# The machine has a libc, and CPython builds itself.
FOR_THE_SANDBOX = frozenset({"musl", "quick-python"})
"""Recipes that native builds do without."""


@dataclass(frozen=True)
class NativeTarget:
    """Programs of the building machine."""

    toolchain: Toolchain
    optimised: bool = True
    code: tuple[str, ...] = ("build.py", "machine_answers.sh", "target.py", "target_native.py")

    @property
    def cache_prefix(self) -> str:
        return "native-" if self.optimised else "unoptimised-"

    @property
    def level(self) -> str:
        """The compiler's flag of optimisation."""
        return "-O2" if self.optimised else "-O0"

    def depends(self, recipe: Recipe) -> tuple[str, ...]:
        return tuple(name for name in recipe.depends if name not in FOR_THE_SANDBOX)

    def identity(self) -> str:
        libc = " ".join(platform.libc_ver())
        parts = ("native", self.toolchain.native_version, platform.machine(), libc, self.level)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def compiler(
        self, recipe: Recipe, tree: Path, dependencies: Mapping[str, Entry]
    ) -> dict[str, str]:
        include, link = library_flags(dependencies)
        maps = path_maps(recipe, tree, dependencies)
        return {
            "CC": self.toolchain.native_compiler,
            "CFLAGS": " ".join([self.level, *maps, *include, *recipe.build.cflags]),
            "CPPFLAGS": " ".join(include),
            "LDFLAGS": " ".join([*link, *recipe.build.ldflags]),
            "CC_FOR_BUILD": self.toolchain.native_compiler,
            # It may build as root, but no program of it is for root.
            "FORCE_UNSAFE_CONFIGURE": "1",
            **self.toolchain.archive_tools,
        }

    def configure(self, recipe: Recipe) -> list[str]:
        return []

    def answers(self, recipe: Recipe, dependencies: Mapping[str, Entry]) -> str:
        """What the machine's libc has."""
        return _machine_answers(self.toolchain.native_compiler)

    def finish(self, program: Program, linked: Path, outputs: Path, wasm_opt: RunTool) -> None:
        """Put the program where it is in the image, below the folder of files."""
        if not linked.is_file():
            raise BuildError(f"the build left no {program.binary}", "Check `make` in the recipe.")
        first, *others = (outputs / FILES / installed_path(name)[1:] for name in program.names)
        first.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(linked, first)
        for name in others:
            name.parent.mkdir(parents=True, exist_ok=True)
            name.hardlink_to(first)


@cache
def _machine_answers(compiler: str) -> str:
    script = Path(__file__).with_name("machine_answers.sh")
    env = {**os.environ, "CC_FOR_BUILD": compiler}
    done = subprocess.run(["sh", script], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{script.name} failed:\n{done.stderr}")
    return done.stdout
