"""One engine for all engine tests of a process, with a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.hosts import Host
from wasmsand.engine.wasmtime.engine import WasmtimeEngine


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    cache: Path = tmp_path_factory.mktemp("modules")
    return WasmtimeEngine(cache_directory=cache)


@pytest.fixture
def host(engine: WasmtimeEngine) -> Host:
    """A host that answers 0 to every call."""
    return Host(engine)
