"""A `wasm-sandbox` in each mode: one for each test, or one for all tests that change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.line.peer import Peer, PeerMaker
from tests.v86.built import needs_v86

MODES = ["simple", pytest.param("v86", marks=needs_v86)]


@pytest.fixture(scope="module", params=MODES)
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PeerMaker:
    """Starts processes in one of the modes."""
    folder: Path = tmp_path_factory.mktemp("disks")
    return PeerMaker(request.param, folder)


@pytest.fixture
def sandbox(start: PeerMaker) -> Iterator[Peer]:
    """A process for this test alone."""
    with start() as running:
        yield running


@pytest.fixture(scope="module")
def shared(start: PeerMaker) -> Iterator[Peer]:
    """One process for all tests of the module."""
    with start() as running:
        yield running
