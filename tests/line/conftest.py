"""A `wasm-sandbox` for each test, or for those that change nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.line.peer import Peer, peer


@pytest.fixture
def sandbox() -> Iterator[Peer]:
    """A process of its own."""
    with peer() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Peer]:
    """One process for the module."""
    with peer() as running:
        yield running
