"""Fixtures of the fuzz tests: one engine, whose compiled modules a module's tests share."""

from __future__ import annotations

import pytest

from wasmsand.engine.wasmtime.engine import WasmtimeEngine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    return WasmtimeEngine(cache_directory=tmp_path_factory.mktemp("modules"))
