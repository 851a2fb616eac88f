"""Fixtures of the fuzz tests: one engine per module, and machines with the module's `image`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.abi.fuzz.hostile_runs import small_machine
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine import Machine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    return WasmtimeEngine(cache_directory=tmp_path_factory.mktemp("modules"))


@pytest.fixture
def new_machine(image: FrozenTree, engine: WasmtimeEngine) -> Callable[[int], Machine]:
    """Makes small machines whose programs run as the given user."""
    return partial(small_machine, image, engine)
