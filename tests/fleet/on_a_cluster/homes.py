"""Where the sandboxes of a test are."""

from __future__ import annotations

from wasmsand import Sandbox
from wasmsand.fleet.transport import FleetTransport
from wasmsand.fleet.values import HostPlace
from wasmsand.http.backend import HttpBackend


def transport_of(sandbox: Sandbox) -> FleetTransport:
    """The way to the sandbox's host."""
    backend = sandbox._attachment.backend
    assert isinstance(backend, HttpBackend)
    assert isinstance(backend._transport, FleetTransport)
    return backend._transport


def place_of(sandbox: Sandbox) -> HostPlace:
    """Where the sandbox was at its last request."""
    return transport_of(sandbox)._place


def host_of(sandbox: Sandbox) -> str:
    """The name of its host."""
    return transport_of(sandbox)._home.name
