"""Building for the sandbox: wasm-cc, configure answers, wasm-opt.

Rule: this file's content is part of every recipe's key.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from userland.builder.cache import Entry
from userland.builder.finish import finish_program
from userland.builder.keys import shared_answers
from userland.builder.recipe import Program, Recipe
from userland.builder.target import SYSROOT, RunTool, library_flags, path_maps
from userland.builder.toolchain import Toolchain

# What configure is told it builds for; config.sub knows it, and `uname -m` agrees.
_HOST = "wasm32-unknown-linux-musl"


@dataclass(frozen=True)
class WasmTarget:
    """Programs of the sandbox."""

    toolchain: Toolchain
    cache_prefix: str = ""
    code: tuple[str, ...] = ("build.py", "doubled.py", "finish.py", "target.py", "target_wasm.py")

    def depends(self, recipe: Recipe) -> tuple[str, ...]:
        return recipe.depends

    def identity(self) -> str:
        return self.toolchain.identity

    def compiler(
        self, recipe: Recipe, tree: Path, dependencies: Mapping[str, Entry]
    ) -> dict[str, str]:
        if "musl" not in dependencies:
            return {}
        include, link = library_flags(dependencies)
        maps = path_maps(recipe, tree, dependencies)
        build = recipe.build
        return {
            "CC": str(dependencies["musl"].folder / SYSROOT / "bin/wasm-cc"),
            "CFLAGS": " ".join(["-O2", *maps, *include, *build.cflags, *build.guest_cflags]),
            "CPPFLAGS": " ".join(include),
            "LDFLAGS": " ".join([*link, *build.ldflags, *build.guest_ldflags]),
            "CC_FOR_BUILD": self.toolchain.native_compiler,
            **self.toolchain.archive_tools,
        }

    def configure(self, recipe: Recipe) -> list[str]:
        return [f"--host={_HOST}", f"--build={platform.machine()}-linux-gnu"]

    def answers(self, recipe: Recipe, dependencies: Mapping[str, Entry]) -> str:
        """What the libc has, what configure cannot find out, and what the recipe adds."""
        found = dependencies["musl"].folder / SYSROOT / "share/config.site"
        shared = [file.read_text(encoding="utf-8") for file in (found, *shared_answers(recipe))]
        own = [f"{name}={value}\n" for name, value in recipe.build.answers]
        return "".join(shared + own)

    def finish(self, program: Program, linked: Path, outputs: Path, wasm_opt: RunTool) -> None:
        finish_program(program, linked, outputs / program.file, wasm_opt)
