"""One engine for the machine's tests, and a machine per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.machine.guests import new_machine
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.machine import Machine


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    return WasmtimeEngine(cache_directory=tmp_path_factory.mktemp("modules"))


@pytest.fixture
def machine(engine: WasmtimeEngine) -> Iterator[Machine]:
    made = new_machine(engine)
    yield made
    made.close()
