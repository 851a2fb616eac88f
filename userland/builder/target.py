"""What a recipe is built for.

Owns the contract between the steps of a build, which are the same for every target,
and what differs: the compiler, configure's arguments, the finishing of a program. Two
targets exist: the sandbox (`target_wasm.py`), and the building machine itself
(`target_native.py`), whose programs are the reference that ours are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from userland.builder.cache import Entry
from userland.builder.recipe import Program, Recipe

# The folder of an output that dependents compile and link against.
SYSROOT = "sysroot"
# The folder of an output that holds files of the image, under their absolute paths.
FILES = "files"

RunTool = Callable[[Sequence[str]], str]
"""Runs wasm-opt with these arguments and returns what it printed."""


class Target(Protocol):
    """One kind of machine to build for."""

    @property
    def cache_prefix(self) -> str:
        """Comes before a recipe's name in the cache."""

    @property
    def code(self) -> tuple[str, ...]:
        """The builder's files that decide what this target's outputs are."""

    def depends(self, recipe: Recipe) -> tuple[str, ...]:
        """The recipes whose outputs are needed."""

    def identity(self) -> str:
        """Changes when a tool that decides output bytes changes."""

    def compiler(
        self, recipe: Recipe, tree: Path, dependencies: Mapping[str, Entry]
    ) -> dict[str, str]:
        """The variables that tell configure and make how to compile."""

    def configure(self, recipe: Recipe) -> list[str]:
        """Arguments of configure before the recipe's own."""

    def answers(self, recipe: Recipe, dependencies: Mapping[str, Entry]) -> str:
        """The content of configure's site file."""

    def finish(self, program: Program, linked: Path, outputs: Path, wasm_opt: RunTool) -> None:
        """Put the program that make left at `linked` into `outputs`."""


def library_flags(dependencies: Mapping[str, Entry]) -> tuple[list[str], list[str]]:
    """Flags for the preprocessor and the linker that find the libraries of other recipes."""
    roots = [
        entry.folder / SYSROOT
        for name, entry in sorted(dependencies.items())
        if name != "musl" and (entry.folder / SYSROOT).is_dir()
    ]
    return [f"-I{root}/include" for root in roots], [f"-L{root}/lib" for root in roots]


def path_maps(recipe: Recipe, tree: Path, dependencies: Mapping[str, Entry]) -> list[str]:
    """Flags that keep paths of this machine out of debug data, assert() and __FILE__."""
    source_name = f"/usr/src/{recipe.name}-{recipe.version}"
    roots = [entry.folder / SYSROOT for _, entry in sorted(dependencies.items())]
    return [
        f"-ffile-prefix-map={tree}={source_name}",
        *(f"-ffile-prefix-map={root}=/usr" for root in roots),
    ]
