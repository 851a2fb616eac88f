"""All connections of a server: their number, their owners, and which one is dropped first.

A new connection belongs to a stranger. The first request with a valid token (or, on a server
without tokens, the first request from this machine) makes it a tenant's. Rules: strangers may use
a share of the connections, and one address a part of that share. When the share is full, the
stranger that has kept the server waiting longest is dropped. So a client that sends a request at
once is always answered, however many idle connections there are. Tenants share the connections
fairly; idle connections are dropped to make room.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from wasmsand.serving.shares import Shares


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each connection and of all together."""

    max_connections: int = 1024
    tenants: int = 1
    """The largest number of tenants."""
    header_seconds: float = 10
    """Longest time for a request's header, from its first byte or from the connection's start.
    Also the longest idle time of a stranger's connection."""
    body_seconds: float = 120
    """Longest time for a whole request body."""
    body_idle_seconds: float = 20
    """Longest time between two pieces of a body."""
    keep_alive_seconds: float = 75
    """Longest idle time of a tenant's connection."""
    unread_seconds: float = 60
    """How long a client may leave output unread; plus one second for each
    LEAST_BYTES_PER_SECOND of output."""
    max_header_bytes: int = 16 * 1024

    @property
    def max_strangers(self) -> int:
        """Most connections of strangers."""
        return max(min(self.max_connections, _FEW), self.max_connections // 2)

    @property
    def max_strangers_per_address(self) -> int:
        """Most connections of strangers from one address, or from one IPv6 /64 network."""
        return max(min(self.max_connections, _FEW), self.max_connections // 4)


LEAST_BYTES_PER_SECOND = 64 * 1024
_FEW = 16
ACCEPTED_AT_ONCE = 64
"""Connections that the server accepts before it reads from the ones accepted so far."""
_UNSETTLED = 4 * ACCEPTED_AT_ONCE
"""Connections allowed beyond the limit until their input was read: see
`CrowdMember.is_settled`."""


class CrowdMember(Protocol):
    """The part of a connection that `Crowd` uses."""

    address: str
    tenant: str | None

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress, so that the connection can be dropped."""

    @property
    def is_settled(self) -> bool:
        """Whether the server has read a request that the client sent at once."""

    def drop(self) -> None:
        """Close the connection now."""


class Crowd:
    """The connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        reserved = limits.max_connections // 8  # for strangers, who may become tenants
        self._shares = Shares(limits.max_connections - reserved, limits.tenants)
        self._members: dict[CrowdMember, None] = {}
        # Oldest first:
        self._strangers: dict[CrowdMember, None] = {}
        self._by_address: dict[str, dict[CrowdMember, None]] = {}

    def __len__(self) -> int:
        return len(self._members)

    def held(self, tenant: str) -> int:
        """The number of connections of one tenant."""
        return self._shares.held(tenant)

    def arrive(self, member: CrowdMember) -> bool:
        """Add a new connection; False if there is no room for it."""
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
                # Do not drop a connection that has just arrived: its request may be on the way.
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
        """Assign the connection to `tenant`; False if the tenant has too many connections."""
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
        """Remove a connection; idempotent."""
        if member not in self._members:
            return
        del self._members[member]
        if member.tenant is None:
            self._forget_stranger(member)
        else:
            self._shares.give(member.tenant)

    def drop_tenants(self, tenants: Collection[str]) -> None:
        """Close the connections of tenants that may no longer use the server."""
        for member in list(self._members):
            if member.tenant in tenants:
                self.leave(member)
                member.drop()

    def used(self, member: CrowdMember) -> None:
        """After a response: make the connection the last one to be dropped."""
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
    """The client's address; for IPv6 the /64 network, because one host can have all of it."""
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
