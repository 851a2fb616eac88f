"""Which server a client talks to: the one at a URL, or a host of a fleet.

Owns the choice by the scheme of an address. `http:` and `https:` name one server; `fleet:` names a
fleet, whose hosts are servers. Rules: this module knows `wasmsand.fleet` by name only, and imports
it when an address names a fleet. So clients of a server need no Ray.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from wasmsand.http.transport import Transport

FLEET_SCHEME: Final = "fleet:"
_FLEET: Final = "wasmsand.fleet.reaching"


def transport_for_new(url: str, token: str | None) -> Transport:
    """To the server that shall have a new sandbox."""
    if not url.startswith(FLEET_SCHEME):
        return Transport(url, token)
    return cast("Callable[..., Transport]", _of_fleet("transport_for_new"))(url, token)


def transport_to(url: str, token: str | None, identity: str) -> Transport:
    """To the server that has a sandbox. A single server is not asked whether it has it; if no
    host of a fleet has it, this raises `SandboxClosedError`."""
    if not url.startswith(FLEET_SCHEME):
        return Transport(url, token)
    return cast("Callable[..., Transport]", _of_fleet("transport_to"))(url, token, identity)


def all_transports(url: str, token: str | None) -> list[Transport]:
    """To every server behind an address. The caller closes them."""
    if not url.startswith(FLEET_SCHEME):
        return [Transport(url, token)]
    return cast("Callable[..., list[Transport]]", _of_fleet("all_transports"))(url, token)


def _of_fleet(name: str) -> object:
    return getattr(import_module(_FLEET), name)
