"""The transports of `Sandbox.connect("fleet:...")`; `wasmsand.http.reaching` calls them.

Rules: a sandbox's id does not say which host has it, so that it never changes. Whoever has only an
id asks all hosts at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from urllib.parse import quote

from wasmsand.fleet.cluster import Home, homes_of
from wasmsand.fleet.placing import hosts_for_new
from wasmsand.fleet.transport import FleetTransport
from wasmsand.fleet.values import parse_address
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import SandboxClosedError, SandboxError

_ASKED_AT_ONCE: Final = 32
Answer = TypeVar("Answer")


def transport_for_new(url: str, token: str | None) -> Transport:
    """To the host that shall have a new sandbox. Raises `ConnectionLostError`."""
    _refuse(token)
    first, *others = hosts_for_new(homes_of(parse_address(url)))
    while True:
        try:
            return FleetTransport(first, is_bound=False, others=others)
        except SandboxError:  # it does not answer
            if not others:
                raise
            first, *others = others


def transport_to(url: str, token: str | None, identity: str) -> Transport:
    """To the host that has a sandbox. Raises `SandboxClosedError` if none has it, and the error of
    a host that could not be asked."""
    path = f"/v1/sandboxes/{quote(identity, safe='')}"

    def having(transport: FleetTransport) -> FleetTransport | SandboxError:
        try:
            transport.ask("GET", path)
            return transport
        except SandboxError as error:
            transport.close()
            return error

    found = _asked(all_transports(url, token), having)
    transports = [each for each in found if isinstance(each, FleetTransport)]
    if transports:
        return transports[0]
    for error in found:
        assert isinstance(error, SandboxError)
        if type(error) is not SandboxClosedError:
            raise error
    raise SandboxClosedError(f"the fleet has no sandbox {identity}; it has ended")


def all_transports(url: str, token: str | None) -> list[FleetTransport]:
    """To every host."""
    _refuse(token)

    def to(home: Home) -> FleetTransport:
        return FleetTransport(home, is_bound=False)

    return _asked(homes_of(parse_address(url)).all(), to)


Asked = TypeVar("Asked")


def _asked(hosts: list[Asked], ask: Callable[[Asked], Answer]) -> list[Answer]:
    """The answers of all hosts, in their order."""
    with ThreadPoolExecutor(min(len(hosts), _ASKED_AT_ONCE)) as threads:
        return list(threads.map(ask, hosts))


def _refuse(token: str | None) -> None:
    if token is not None:
        raise ValueError("a fleet has no tokens: whoever reaches its Ray cluster may use it")
