"""A server process with a sandbox, for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rpc.peer import Peer, peer


@pytest.fixture
def bare() -> Iterator[Peer]:
    """A server without a sandbox."""
    with peer() as running:
        yield running


@pytest.fixture
def server(bare: Peer) -> Peer:
    """A server with its sandbox."""
    bare.create()
    return bare


@pytest.fixture(scope="module")
def shared() -> Iterator[Peer]:
    """A server with its sandbox, for tests that change nothing in it."""
    with peer() as running:
        running.create()
        yield running
