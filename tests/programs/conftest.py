"""What tests that compile programs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.supplies import RECIPES, ROOT
from userland.builder.cache import Cache, default_root
from userland.builder.commands import Commands
from userland.builder.keys import recipe_keys
from userland.builder.recipe import load_recipes
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain


@pytest.fixture(scope="session")
def sysroot() -> Path:
    """Headers, libraries and the compiler's driver."""
    toolchain = find_toolchain(Commands())
    assert toolchain is not None, "make build installs the toolchain"
    keys = recipe_keys(load_recipes(RECIPES, ROOT), WasmTarget(toolchain))
    entry = Cache(default_root()).find("musl", keys["musl"])
    assert entry is not None, "make build leaves the sysroot in the cache"
    return entry.folder / "sysroot"
