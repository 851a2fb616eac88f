"""A process's connection to Ray, without a cluster."""

from __future__ import annotations

import pytest

from wasmsand import ConnectionLostError
from wasmsand.fleet.cluster import Home
from wasmsand.fleet.values import parse_address


def test_a_process_that_has_left_its_cluster_does_not_start_another() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: it is the extra fleet")
    assert not ray.is_initialized()
    home = Home(ray, parse_address("fleet:"), "host-1")
    with pytest.raises(ConnectionLostError, match="has left the Ray cluster"):
        home.place(5)
    assert not ray.is_initialized()
