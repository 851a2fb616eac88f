"""Which host gets a new sandbox.

Owns the choice by memory and load. Rules: two hosts, chosen at random, are asked, and the better
one gets the sandbox; this is almost as good as asking all, and costs the same in a large fleet. A
host that does not answer soon is not chosen if another one does. A host that is full refuses; then
the next one is tried. What is known of a host is used for a second.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from typing import Final

from wasmsand.fleet.cluster import Home, Homes
from wasmsand.fleet.values import HostLoad

_ASKED: Final = 2
_FRESH_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 1.0
"""How long to wait for the report of a host. A node that answers slowly gets no new sandbox."""
_REMEMBERED_MAX: Final = 20_000

_lock: Final = threading.Lock()
_recent: dict[Home, tuple[float, HostLoad]] = {}
"""What hosts have said, and when; guarded by the lock."""


def hosts_for_new(homes: Homes) -> list[Home]:
    """All hosts, the one to try first at first. Raises `ConnectionLostError` if there is none."""
    hosts = homes.all()
    random.shuffle(hosts)
    asked, rest = hosts[:_ASKED], hosts[_ASKED:]
    if len(asked) > 1:
        loads = _loads(homes, asked)
        asked.sort(key=lambda home: loads[home].rank if home in loads else (float("inf"), 0))
        chosen = asked[0]
        if chosen in loads:
            _count(chosen, loads[chosen])
    return asked + rest


def _loads(homes: Homes, hosts: list[Home]) -> dict[Home, HostLoad]:
    now = time.monotonic()
    with _lock:
        known = {h: _recent[h][1] for h in hosts if h in _recent and now < _recent[h][0]}
    ray = homes.ray
    calls = {home.actor().load.remote(): home for home in hosts if home not in known}
    if not calls:
        return known
    done, late = ray.wait(list(calls), num_returns=len(calls), timeout=_PATIENCE_SECONDS)
    for call in late:
        ray.cancel(call)
    for call in done:
        try:
            load = ray.get(call)
        except ray.exceptions.RayError:
            continue  # it starts again, or its node is lost
        known[calls[call]] = load
        with _lock:
            if len(_recent) > _REMEMBERED_MAX:
                _recent.clear()
            _recent[calls[call]] = (now + _FRESH_SECONDS, load)
    return known


def _count(home: Home, load: HostLoad) -> None:
    """Until the next report, remember that the host has one more."""
    with _lock:
        if home in _recent:
            until, _ = _recent[home]
            _recent[home] = (until, replace(load, sandboxes=load.sandboxes + 1))
