"""Building for the machine we are on: the reference that our programs are compared with.

The same source, patches, options and compiler as for the sandbox, but the machine's own
libc and CPU. Differential tests, test suites and benchmarks run these, so that a
difference is never one of versions or options. Rule: this file's content is part of
every native key.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from userland.builder.cache import Entry
from userland.builder.errors import BuildError
from userland.builder.recipe import Program, Recipe, installed_path
from userland.builder.target import FILES, RunTool, library_flags, path_maps
from userland.builder.toolchain import Toolchain


@dataclass(frozen=True)
class NativeTarget:
    """Programs of the building machine."""

    toolchain: Toolchain
    cache_prefix: str = "native-"
    code: tuple[str, ...] = ("build.py", "target.py", "target_native.py")

    def depends(self, recipe: Recipe) -> tuple[str, ...]:
        # The machine has a libc.
        return tuple(name for name in recipe.depends if name != "musl")

    def identity(self) -> str:
        libc = " ".join(platform.libc_ver())
        parts = ("native", self.toolchain.native_version, platform.machine(), libc)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def compiler(
        self, recipe: Recipe, tree: Path, dependencies: Mapping[str, Entry]
    ) -> dict[str, str]:
        include, link = library_flags(dependencies)
        maps = path_maps(recipe, tree, dependencies)
        return {
            "CC": self.toolchain.native_compiler,
            "CFLAGS": " ".join(["-O2", *maps, *include, *recipe.build.cflags]),
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
        return ""

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
