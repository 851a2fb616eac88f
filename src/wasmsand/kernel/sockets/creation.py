"""Creating sockets.

Owns which families, types and protocols exist: `new_socket` and `new_pair`. Rules: the errors are
those of socket(2), checked in Linux's order: family, type, protocol. A new socket has no fd and is
not charged yet.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, AF_NETLINK, AF_UNIX
from wasmsand.kernel.sockets.base import Owner, Socket
from wasmsand.kernel.sockets.connection import SOCK_STREAM
from wasmsand.kernel.sockets.datagram import SOCK_DGRAM, DatagramSocket
from wasmsand.kernel.sockets.netlink import NETLINK_ROUTE, SOCK_RAW, NetlinkSocket
from wasmsand.kernel.sockets.network import Network
from wasmsand.kernel.sockets.options import IPPROTO_TCP, IPPROTO_UDP
from wasmsand.kernel.sockets.stream import StreamSocket, socket_pair

_Types = dict[int, type[StreamSocket] | type[DatagramSocket]]
_STREAMS_AND_MESSAGES: Final[_Types] = {SOCK_STREAM: StreamSocket, SOCK_DGRAM: DatagramSocket}
_TYPES: Final[dict[int, _Types]] = {
    AF_UNIX: _STREAMS_AND_MESSAGES,
    AF_INET: _STREAMS_AND_MESSAGES,
    AF_INET6: _STREAMS_AND_MESSAGES,
    AF_NETLINK: {SOCK_RAW: NetlinkSocket, SOCK_DGRAM: NetlinkSocket},
}
"""By family: the classes by type number."""
_INET_PROTOCOLS: Final = {SOCK_STREAM: IPPROTO_TCP, SOCK_DGRAM: IPPROTO_UDP}


def new_socket(
    network: Network, family: int, type_number: int, protocol: int, owner: Owner, flags: int
) -> Socket:
    """Create a socket, as socket(2) does. Only O_NONBLOCK is used of `flags`."""
    types = _TYPES.get(family)
    if types is None:
        raise KernelError(Errno.EAFNOSUPPORT)
    made = types.get(type_number)
    if made is None:
        raise KernelError(Errno.ESOCKTNOSUPPORT)
    return made(network, family, _protocol(family, type_number, protocol), owner, flags)


def _protocol(family: int, type_number: int, wanted: int) -> int:
    """The protocol number for a request; 0 requests the default."""
    if family == AF_UNIX:
        usual, allowed = 0, (0, AF_UNIX)
    elif family == AF_NETLINK:
        usual, allowed = NETLINK_ROUTE, (NETLINK_ROUTE, NETLINK_ROUTE)
    else:
        usual = _INET_PROTOCOLS[type_number]
        allowed = (0, usual)
    if wanted not in allowed:
        raise KernelError(Errno.EPROTONOSUPPORT)
    return usual


def new_pair(
    network: Network, family: int, type_number: int, protocol: int, owner: Owner, flags: int
) -> tuple[Socket, Socket]:
    """Create two connected sockets, as socketpair(2) does; only Unix sockets come in pairs."""
    one = new_socket(network, family, type_number, protocol, owner, flags)
    if family != AF_UNIX:
        raise KernelError(Errno.EOPNOTSUPP)
    two = new_socket(network, family, type_number, protocol, owner, flags)
    if isinstance(one, StreamSocket) and isinstance(two, StreamSocket):
        socket_pair(one, two)
    elif isinstance(one, DatagramSocket) and isinstance(two, DatagramSocket):
        one.pair_with(two)
    return one, two
