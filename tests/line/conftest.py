"""A `wasm-sandbox` for each test, or one for all tests that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.line.peer import Peer, peer


@pytest.fixture
def sandbox() -> Iterator[Peer]:
    """A process for this test alone."""
    with peer() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Peer]:
    """One process for all tests of the module."""
    with peer() as running:
        yield running
