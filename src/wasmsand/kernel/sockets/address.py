"""Socket addresses.

Owns `UnixAddress`, `InetAddress` and `NetlinkAddress`. Rules: an address is a plain value;
`routing.py` decides where it leads. An IPv6 address of the form ::ffff:a.b.c.d is an IPv4-mapped
address. A plain address is one that is not IPv4-mapped.
"""

from __future__ import annotations

from typing import Final, NamedTuple

AF_UNSPEC: Final = 0
AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16

_MAPPED: Final = bytes(10) + b"\xff\xff"
_ANY: Final = {AF_INET: bytes(4), AF_INET6: bytes(16)}
LOOPBACK: Final = {AF_INET: b"\x7f\0\0\1", AF_INET6: bytes(15) + b"\1"}
"""127.0.0.1 and ::1, by family."""


class UnixAddress(NamedTuple):
    """A path in the file system, an abstract name (its first byte is NUL), or no name (empty)."""

    name: bytes = b""


class InetAddress(NamedTuple):
    """A host, in 4 or 16 bytes, and a port."""

    family: int
    host: bytes
    port: int

    @property
    def is_any(self) -> bool:
        """Whether this is 0.0.0.0 or ::, which means every address of its family."""
        return self.host == _ANY[self.family]

    @property
    def is_loopback(self) -> bool:
        """Whether a plain address belongs to the loopback interface."""
        if self.family == AF_INET:
            return self.host[0] == 127
        return self.host == LOOPBACK[AF_INET6]

    def plain(self) -> InetAddress:
        """The IPv4 address inside an IPv4-mapped IPv6 one; any other address unchanged."""
        if self.family == AF_INET6 and self.host.startswith(_MAPPED):
            return InetAddress(AF_INET, self.host[12:], self.port)
        return self

    def as_family(self, family: int) -> InetAddress:
        """The address as a socket of `family` shows it: IPv4-mapped on an IPv6 socket."""
        if family == AF_INET6 and self.family == AF_INET:
            return InetAddress(AF_INET6, _MAPPED + self.host, self.port)
        return self


class NetlinkAddress(NamedTuple):
    """A port (0 is the kernel) and a set of groups."""

    port: int
    groups: int


Address = UnixAddress | InetAddress | NetlinkAddress


def any_address(family: int, port: int = 0) -> InetAddress:
    """0.0.0.0 or ::, the address of an unbound socket."""
    return InetAddress(family, _ANY[family], port)
