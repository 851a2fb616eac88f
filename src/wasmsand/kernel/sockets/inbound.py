"""Connections of the host to servers in the sandbox.

Owns `connect_inbound`, the only way from the host to a listening TCP socket, and `listening_ports`.
Rules: the listener is found as for a connection from inside to 127.0.0.1 or ::1, and its backlog
holds for the host too. The accepted socket and the host's end are charged before they exist. The
guest sees a connection from its own loopback address. Nothing here waits: if the backlog is full,
`WouldBlock` names the queue that is woken when a place may be free.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, LOOPBACK, InetAddress
from wasmsand.kernel.sockets.stream import StreamSocket

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network
    from wasmsand.kernel.sockets.outside import OutsideEnd

_FAMILIES: Final = (AF_INET, AF_INET6)
"""In the order in which the host tries them."""


class Listening(NamedTuple):
    """A TCP socket that the host can connect to."""

    port: int
    address: InetAddress
    """The address that it is bound to; plain."""
    pid: int
    """The process that created the socket, or last called listen on it."""


def connect_inbound(network: Network, port: int) -> OutsideEnd:
    """Connect the host to the listener at `port` of 127.0.0.1 or ::1; return the host's end of the
    new connection, which the guest has not accepted yet.

    ECONNREFUSED if nobody listens; ENFILE or ENOBUFS if the sandbox has no room for the connection;
    `WouldBlock` if the listener's backlog is full.
    """
    listener, at = _listener(network, port)
    source = InetAddress(at.family, at.host, network.tcp.next_ephemeral())
    return listener.admit_host(at, source)


def is_listening(network: Network, port: int) -> bool:
    """Whether `connect_inbound` would find a listener."""
    return any(_listeners(network, port))


def listening_ports(network: Network) -> list[Listening]:
    """The listeners that the host can connect to, sorted by port and address. If several sockets
    listen at one address (SO_REUSEPORT), the one that gets connections."""
    found = set()
    for port in network.tcp.listened():
        for socket, _ in _listeners(network, port):
            local = socket.local
            assert isinstance(local, InetAddress)
            found.add(Listening(port, local.plain(), socket.owner.pid))
    return sorted(found)


def _listeners(network: Network, port: int) -> Iterator[tuple[StreamSocket, InetAddress]]:
    """The best listener for each family, and the address at which it is reached."""
    for family in _FAMILIES:
        to = InetAddress(family, LOOPBACK[family], port)
        for socket in network.tcp.reaching(to):
            if isinstance(socket, StreamSocket) and socket.listening:
                yield socket, to
                break


def _listener(network: Network, port: int) -> tuple[StreamSocket, InetAddress]:
    for found in _listeners(network, port):
        return found
    raise KernelError(Errno.ECONNREFUSED, f"nothing listens on port {port}")
