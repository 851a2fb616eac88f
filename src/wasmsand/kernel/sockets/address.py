"""Socket addresses.

Owns `UnixAddress`, `InetAddress` and `NetlinkAddress`, and the rules of the one interface
there is: every 127.x.x.x and ::1 is this sandbox, 0.0.0.0 and :: mean it as a destination, and
nothing else can be reached. An IPv4 address can be written as an IPv6 one (::ffff:a.b.c.d).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError

AF_UNSPEC: Final = 0
AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16

_MAPPED: Final = bytes(10) + b"\xff\xff"
_ANY: Final = {AF_INET: bytes(4), AF_INET6: bytes(16)}
_LOOPBACK: Final = {AF_INET: b"\x7f\0\0\1", AF_INET6: bytes(15) + b"\1"}


class UnixAddress(NamedTuple):
    """A name in the file system, an abstract one (first byte NUL), or none (empty)."""

    name: bytes = b""


class InetAddress(NamedTuple):
    """A host, in 4 or 16 bytes, and a port."""

    family: int
    host: bytes
    port: int

    @property
    def is_any(self) -> bool:
        """Whether it stands for every address of its family."""
        return self.host == _ANY[self.family]

    def plain(self) -> InetAddress:
        """Without the IPv6 clothes of an IPv4 address."""
        if self.family == AF_INET6 and self.host.startswith(_MAPPED):
            return InetAddress(AF_INET, self.host[12:], self.port)
        return self

    def as_family(self, family: int) -> InetAddress:
        """As a socket of `family` sees it."""
        if family == AF_INET6 and self.family == AF_INET:
            return InetAddress(AF_INET6, _MAPPED + self.host, self.port)
        return self


class NetlinkAddress(NamedTuple):
    """A port (0 is the kernel) and a set of groups."""

    port: int
    groups: int


Address = UnixAddress | InetAddress | NetlinkAddress


def any_address(family: int, port: int = 0) -> InetAddress:
    """The address of a socket that is not bound to one."""
    return InetAddress(family, _ANY[family], port)


def local_host_for(destination: InetAddress) -> bytes:
    """Where a connection to `destination` (a plain address) comes from."""
    return destination.host if destination.family == AF_INET6 else _LOOPBACK[AF_INET]


def destination(address: InetAddress) -> InetAddress:
    """Where something sent to `address` arrives; ENETUNREACH if not in this sandbox."""
    plain = address.plain()
    if plain.is_any:
        return InetAddress(plain.family, _LOOPBACK[plain.family], plain.port)
    if not _is_loopback(plain):
        raise KernelError(Errno.ENETUNREACH, "only loopback addresses can be reached")
    return plain


def require_local(address: InetAddress) -> None:
    """EADDRNOTAVAIL unless a socket can be bound to it."""
    plain = address.plain()
    if not plain.is_any and not _is_loopback(plain):
        raise KernelError(Errno.EADDRNOTAVAIL)


def _is_loopback(plain: InetAddress) -> bool:
    if plain.family == AF_INET:
        return plain.host[0] == 127
    return plain.host == _LOOPBACK[AF_INET6]
