"""Addresses of fleets, what is refused before Ray is asked, and the choice of a host."""

from __future__ import annotations

import sys

import pytest

from wasmsand import Sandbox, UnsupportedError
from wasmsand.fleet.values import FleetAddress, HostLoad, HostPlace, HostPlan, parse_address

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("fleet:", FleetAddress(None)),
        ("fleet:auto", FleetAddress(None)),
        ("fleet:10.0.0.1:6379", FleetAddress("10.0.0.1:6379")),
        ("fleet://head.example:6379/", FleetAddress("head.example:6379")),
        ("fleet:/batch", FleetAddress(None, "batch")),
        ("fleet:10.0.0.1:6379/batch", FleetAddress("10.0.0.1:6379", "batch")),
    ],
)
def test_an_address_names_a_cluster_and_a_fleet(text: str, address: FleetAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["http://a:1", "fleet:somewhere", "fleet:a b:1", "fleet:a:1/b/c", "fleet:a:1/é"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fleet"):
        parse_address(text)


def test_without_ray_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnsupportedError, match=r"wasmsand\[fleet\]"):
        Sandbox.connect("fleet:10.0.0.1:6379")
    with pytest.raises(UnsupportedError, match=r"wasmsand\[fleet\]"):
        Sandbox.list("fleet:")


def test_a_fleet_has_no_tokens() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        Sandbox.connect("fleet:", token="a-token-of-somebody")


def test_memory_and_load_decide_before_the_number_of_sandboxes() -> None:
    idle = HostLoad(sandboxes=90, memory=0.3, load=0.2)
    hot = HostLoad(sandboxes=1, memory=0.3, load=3.0)
    full = HostLoad(sandboxes=1, memory=0.97, load=0.2)
    alike = HostLoad(sandboxes=10, memory=0.35, load=0.4)
    assert sorted([idle, hot, full, alike], key=lambda each: each.rank) == [alike, idle, full, hot]


def test_logs_do_not_contain_the_token() -> None:
    secret = "a-secret-of-the-fleet"
    assert secret not in repr(HostPlan("host-0", secret, None))
    assert secret not in repr(HostPlace("http://a:1", secret, "ab", "cd", has_store=True))
