"""Where an Internet address leads.

Owns `route`, the only place that decides whether an address is inside the sandbox, outside, or
refused. Rules: 127.0.0.0/8 and ::1 are this sandbox; so are 0.0.0.0 and :: as destinations. Every
other address is outside and needs the capability `Outside`. Without it, the sandbox is like a
machine without a network: ENETUNREACH, as on Linux without a route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET6, LOOPBACK, InetAddress

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.outside import Outside


class Route(NamedTuple):
    """The route to a destination."""

    destination: InetAddress
    """A plain address; never 0.0.0.0 or ::."""
    source: bytes
    """The source address that the destination sees."""
    outside: Outside | None
    """The capability for an outside destination; None if it is inside this sandbox."""

    def local_for(self, bound: InetAddress, family: int) -> InetAddress:
        """The local address of a connection on this route, for a socket of `family` bound to
        `bound`: 0.0.0.0 and :: become the source address. EINVAL if the socket is bound to loopback
        and the route leads outside."""
        if not bound.is_any:
            if self.outside is not None and bound.plain().is_loopback:
                raise KernelError(Errno.EINVAL)
            return bound
        return InetAddress(self.destination.family, self.source, bound.port).as_family(family)


def route(address: InetAddress, outside: Outside | None) -> Route:
    """The route to `address`; ENETUNREACH if there is none."""
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
    """EADDRNOTAVAIL if `address` is not local."""
    plain = address.plain()
    if not plain.is_any and not plain.is_loopback:
        raise KernelError(Errno.EADDRNOTAVAIL)
