"""All connections of a server: how many there may be, whose they are, and who goes first.

A connection begins as a stranger's. It becomes a tenant's with the first request that shows
a token (or, on a server without tokens, that comes from this machine). Rules: strangers have a
share of the connections, of which one address has a part; when it is full, the stranger that
has kept the server waiting for the longest goes, so that one who sends a request at once is
always answered, however many others say nothing. Tenants share the connections fairly; idle ones
make room for others.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from wasmsand.serving.shares import Shares


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What connections may take, one and all together."""

    max_connections: int = 1024
    tenants: int = 1
    """How many there can be."""
    header_seconds: float = 10
    """For the header of a request, from its first byte, or from the connection's beginning;
    and how long a stranger's connection may be idle."""
    body_seconds: float = 120
    """For the whole body of a request."""
    body_idle_seconds: float = 20
    """Between two pieces of a body."""
    keep_alive_seconds: float = 75
    """How long a tenant's connection may be idle."""
    unread_seconds: float = 60
    """How long output may wait for a client that does not read it, and a second more for each
    LEAST_BYTES_PER_SECOND of it."""
    max_header_bytes: int = 16 * 1024

    @property
    def max_strangers(self) -> int:
        """Connections that no tenant has."""
        return max(min(self.max_connections, _FEW), self.max_connections // 2)

    @property
    def max_strangers_per_address(self) -> int:
        """Of one address (of IPv6: of one network of 64 bits)."""
        return max(min(self.max_connections, _FEW), self.max_connections // 4)


LEAST_BYTES_PER_SECOND = 64 * 1024
_FEW = 16
ACCEPTED_AT_ONCE = 64
"""Connections that are made before those made so far are looked at again."""
_UNSETTLED = 4 * ACCEPTED_AT_ONCE
"""Connections beyond the bound, until what they sent was read: see `CrowdMember.is_settled`."""


class CrowdMember(Protocol):
    """One connection, as the crowd needs it."""

    address: str
    tenant: str | None

    @property
    def is_idle(self) -> bool:
        """Whether it has no request under way: it can be dropped, and nothing is lost."""

    @property
    def is_settled(self) -> bool:
        """Whether it is there for long enough that a request it sent at once has been read."""

    def drop(self) -> None:
        """Cut it off now."""


class Crowd:
    """The connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        reserved = limits.max_connections // 8  # for strangers, who may become tenants'
        self._shares = Shares(limits.max_connections - reserved, limits.tenants)
        self._members: dict[CrowdMember, None] = {}
        # The longest there come first:
        self._strangers: dict[CrowdMember, None] = {}
        self._by_address: dict[str, dict[CrowdMember, None]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def held(self, tenant: str) -> int:
        """Connections of one tenant."""
        return self._shares.held(tenant)

    def arrive(self, member: CrowdMember) -> bool:
        """A connection was made; whether there is room for it."""
        limits, here = self._limits, self._by_address.get(member.address, {})
        has_room = (
            self._make_room(here, limits.max_strangers_per_address)
            and self._make_room(self._strangers, limits.max_strangers)
            and (
                len(self._members) < limits.max_connections
                or self._drop_one(self._strangers)
                or self._make_room(self._members, limits.max_connections)
            )
        )
        if not has_room:
            return False
        self._members[member] = None
        self._strangers[member] = None
        self._by_address.setdefault(member.address, {})[member] = None
        return True

    def _make_room(self, members: dict[CrowdMember, None], most: int) -> bool:
        while len(members) >= most:
            if not self._drop_one(members):
                # Whoever has just come is not cut off for the next one: it may be honest.
                unsettled = not all(member.is_settled for member in members)
                return unsettled and len(self._members) < self._limits.max_connections + _UNSETTLED
        return True

    def _drop_one(self, members: dict[CrowdMember, None]) -> bool:
        for member in members:
            if member.is_idle and member.is_settled:
                self.leave(member)
                member.drop()
                return True
        return False

    def adopt(self, member: CrowdMember, tenant: str) -> bool:
        """A request of `tenant` has come; whether it may have this connection."""
        if member not in self._members or member.tenant == tenant:
            return True
        if not self._shares.take(tenant):
            return False
        if member.tenant is None:
            self._forget_stranger(member)
        else:
            self._shares.give(member.tenant)
        member.tenant = tenant
        return True

    def leave(self, member: CrowdMember) -> None:
        """A connection ends; idempotent."""
        if member not in self._members:
            return
        del self._members[member]
        if member.tenant is None:
            self._forget_stranger(member)
        else:
            self._shares.give(member.tenant)

    def used(self, member: CrowdMember) -> None:
        """A request of it has been answered: it is the last that will be dropped."""
        if member in self._members:
            self._members[member] = self._members.pop(member)

    def _forget_stranger(self, member: CrowdMember) -> None:
        self._strangers.pop(member, None)
        here = self._by_address.get(member.address, {})
        here.pop(member, None)
        if not here:
            self._by_address.pop(member.address, None)

    def __iter__(self) -> Iterator[CrowdMember]:
        return iter(list(self._members))


def address_of(transport: asyncio.BaseTransport) -> str:
    """Who is at the other end: an address, of IPv6 the network that one machine can have."""
    peer = transport.get_extra_info("peername")
    host = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
