"""A Ray cluster of three nodes on this machine, and two fleets on it: one with a store, one
without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand.fleet import Fleet
from wasmsand.fleet.local_nodes import LocalNodes

SERVE = ("--workers", "1", "--grace-seconds", "5")


@pytest.fixture(scope="session")
def nodes() -> Iterator[LocalNodes]:
    nodes = LocalNodes(3)
    yield nodes
    nodes.close()


@pytest.fixture(scope="session")
def stored(nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet whose sandboxes are stored."""
    store = str(tmp_path_factory.mktemp("store"))
    fleet = Fleet.up(nodes.address, store=store, serve_options=SERVE)
    yield fleet
    fleet.down()


@pytest.fixture(scope="session")
def unstored(nodes: LocalNodes) -> Iterator[Fleet]:
    """A fleet whose sandboxes end with their host."""
    fleet = Fleet.up(nodes.address, name="unstored", hosts=3, serve_options=SERVE)
    yield fleet
    fleet.down()
