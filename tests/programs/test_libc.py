"""The libc, from the guest's side: each program of userland/libc/tests checks one behaviour
and exits 0. They are compiled by the sysroot that `make build` left in the cache."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

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
from wasmsand import Sandbox

SOURCES = sorted((ROOT / "userland/libc/tests").glob("*.c"))


@pytest.fixture(scope="session")
def sysroot() -> Path:
    toolchain = find_toolchain(Commands())
    assert toolchain is not None, "make build installs the toolchain"
    keys = recipe_keys(load_recipes(RECIPES, ROOT), WasmTarget(toolchain))
    entry = Cache(default_root()).find("musl", keys["musl"])
    assert entry is not None, "make build leaves the sysroot in the cache"
    return entry.folder / "sysroot"


def compiled(source: Path, sysroot: Path, folder: Path) -> bytes:
    linked, finished = folder / "linked", folder / "finished.wasm"
    subprocess.run([sysroot / "bin/wasm-cc", "-O1", source, "-o", linked], check=True)
    forks = ("linux", "fork") in summarise(linked.read_bytes()).imports
    program = Program(source.stem, "linked", (source.stem,), forks, None, "O1")
    wasm_opt = ensure_wasm_opt(Cache(default_root()), Commands(), print)

    def run(arguments: Sequence[str]) -> str:
        command = [*wasm_opt.command, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    finish_program(program, linked, finished, run)
    return finished.read_bytes()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.stem))
def test_libc(source: Path, sysroot: Path, tmp_path: Path) -> None:
    program = f"/usr/local/bin/{source.stem}"
    with Sandbox(timeout_ms=60_000) as sandbox:
        sandbox.files.write(program, compiled(source, sysroot, tmp_path))
        result = sandbox.commands.run(f"chmod +x {program}; {program}")
        assert (result.exit_code, result.stderr) == (0, "")


def test_there_are_programs_to_run() -> None:
    assert len(SOURCES) >= 16
