"""Compiles C programs with the sysroots that `make build` left in the cache."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from conformance.supplies import RECIPES, ROOT
from userland.builder.cache import Cache, default_root
from userland.builder.commands import Commands
from userland.builder.finish import finish_program
from userland.builder.keys import recipe_keys
from userland.builder.recipe import Program, load_recipes
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain
from userland.builder.wasm_module import summarise
from userland.builder.wasm_opt import ensure_wasm_opt


def sysroot_of(name: str) -> Path | None:
    """What a recipe installs for others; None if it is not built."""
    toolchain = find_toolchain(Commands())
    assert toolchain is not None, "make build installs the toolchain"
    keys = recipe_keys(load_recipes(RECIPES, ROOT), WasmTarget(toolchain))
    entry = Cache(default_root()).find(name, keys[name])
    return None if entry is None else entry.folder / "sysroot"


def compiled(sources: Sequence[Path], sysroot: Path, folder: Path, *flags: str) -> bytes:
    """The finished module of these sources; `folder` is for intermediate files."""
    linked, finished = folder / "linked", folder / "finished.wasm"
    subprocess.run([sysroot / "bin/wasm-cc", "-O1", *flags, *sources, "-o", linked], check=True)
    forks = ("linux", "fork") in summarise(linked.read_bytes()).imports
    name = sources[0].stem
    program = Program(name, "linked", (name,), forks, None, "O1")
    wasm_opt = ensure_wasm_opt(Cache(default_root()), Commands(), print)

    def run(arguments: Sequence[str]) -> str:
        command = [*wasm_opt.command(Path(arguments[0])), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    finish_program(program, linked, finished, run)
    return finished.read_bytes()
