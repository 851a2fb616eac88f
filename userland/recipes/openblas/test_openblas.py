"""openblas: our kernels give the results of plain loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.supplies import RECIPES, ROOT
from tests.programs.compiling import compiled
from userland.builder.cache import Cache, default_root
from userland.builder.commands import Commands
from userland.builder.keys import recipe_keys
from userland.builder.recipe import load_recipes
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain
from wasmsand import Sandbox

CHECK = Path(__file__).parent / "check"


def _sysroot(name: str) -> Path | None:
    toolchain = find_toolchain(Commands())
    assert toolchain is not None, "make build installs the toolchain"
    keys = recipe_keys(load_recipes(RECIPES, ROOT), WasmTarget(toolchain))
    entry = Cache(default_root()).find(name, keys[name])
    return None if entry is None else entry.folder / "sysroot"


def test_products_and_solutions_are_those_of_plain_loops(sandbox: Sandbox, tmp_path: Path) -> None:
    musl, openblas = _sysroot("musl"), _sysroot("openblas")
    if musl is None or openblas is None:
        pytest.skip("the stage of packages is not built: run `make packages`")
    library = openblas / "lib/libopenblas.a"
    program = compiled([CHECK / "check_blas.c", library], musl, tmp_path, f"-I{CHECK}")
    sandbox.files.write("/tmp/check_blas", program)
    result = sandbox.commands.run("chmod +x /tmp/check_blas; /tmp/check_blas", timeout_ms=120_000)
    assert (result.stdout, result.stderr) == ("0 differences\n", "")
