"""Where an Internet address leads.

Owns `route`, the one place that decides whether an address is inside the sandbox, outside of it,
or refused. Rules: 127.0.0.0/8 and ::1 are this sandbox; 0.0.0.0 and :: as a destination mean it
too; every other address is outside, and needs the capability `Outside`. A sandbox without that
capability is a machine without a network: ENETUNREACH, as Linux says when it has no route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET6, LOOPBACK, InetAddress

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.outside import Outside


class Route(NamedTuple):
    """The way to a destination."""

    destination: InetAddress
    """A plain address; never 0.0.0.0 or ::."""
    source: bytes
    """The host that the destination sees as the sender."""
    outside: Outside | None
    """The capability that leads there; None: the destination is in this sandbox."""

    def local_for(self, bound: InetAddress, family: int) -> InetAddress:
        """The local address of a connection on this route, for a socket of `family` that is
        bound to `bound`: 0.0.0.0 and :: become the source. EINVAL if the socket is bound to
        loopback and the route leads outside."""
        if not bound.is_any:
            if self.outside is not None and bound.plain().is_loopback:
                raise KernelError(Errno.EINVAL)
            return bound
        return InetAddress(self.destination.family, self.source, bound.port).as_family(family)


def route(address: InetAddress, outside: Outside | None) -> Route:
    """The way to `address`; ENETUNREACH if there is none."""
    plain = address.plain()
    if plain.is_any:
        plain = InetAddress(plain.family, LOOPBACK[plain.family], plain.port)
    elif not plain.is_loopback:
        if outside is None:
            raise KernelError(Errno.ENETUNREACH, "only loopback addresses can be reached")
        return Route(plain, outside.source(plain), outside)
    source = plain.host if plain.family == AF_INET6 else LOOPBACK[plain.family]
    return Route(plain, source, None)


def require_local(address: InetAddress) -> None:
    """EADDRNOTAVAIL unless a socket can be bound to `address`."""
    plain = address.plain()
    if not plain.is_any and not plain.is_loopback:
        raise KernelError(Errno.EADDRNOTAVAIL)
