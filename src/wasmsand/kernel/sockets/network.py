"""Which socket is bound to which name.

Owns `Network`, one per sandbox: TCP and UDP ports, abstract Unix names, and the Unix sockets bound
to inodes. Rules: IPv4 and IPv6 share ports as on Linux (an IPv6 socket also receives IPv4 unless
IPV6_V6ONLY is set). If several sockets match an address, the one bound to exactly that address is
preferred. A name is free again when its socket is closed. The number of sockets bound to one port
is bounded, and a search skips accepted connections, so that no call slows down with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.anonymous import AnonymousInodes
from wasmsand.kernel.files.pipe import PipeAccount
from wasmsand.kernel.limits import PORT_HOLDERS_MAX, SOCKETS_MAX
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, InetAddress, UnixAddress, any_address
from wasmsand.kernel.sockets.base import Socket
from wasmsand.kernel.sockets.options import IPV6_V6ONLY, SO_REUSEADDR, SO_REUSEPORT
from wasmsand.kernel.sockets.outside import Outside
from wasmsand.kernel.sockets.rights import RightsAccount
from wasmsand.kernel.sockets.routing import Route, route
from wasmsand.kernel.vfs import Namespace, Node
from wasmsand.kernel.wait import WaitQueue

_EPHEMERAL: Final = range(32_768, 61_000)
_ABSTRACT_NAMES: Final = 1 << 20


_Hold = tuple[bytes, bool, int, int, int, int]
"""What determines whether another socket may bind the same port: address, whether it is IPv6,
options, user."""


def _hold(socket: Socket) -> _Hold:
    local = socket.local
    assert isinstance(local, InetAddress)
    return (
        local.host,
        local.family == AF_INET6,
        socket.option(SO_REUSEADDR),
        socket.option(SO_REUSEPORT),
        socket.option(IPV6_V6ONLY),
        socket.owner.uid,
    )


class Ports:
    """The ports of one protocol."""

    def __init__(self) -> None:
        self._bound: dict[int, dict[Socket, None]] = {}
        """By port: the sockets bound to it."""
        self._shared: dict[int, dict[_Hold, dict[Socket, None]]] = {}
        """By port: accepted connections, grouped by what matters to a socket that wants to bind."""
        self._next = _EPHEMERAL.start

    def bind(self, socket: Socket, address: InetAddress) -> InetAddress:
        """Bind `socket` to `address`, choosing a free port if the port is 0; EADDRINUSE."""
        port = address.port
        if not port:
            port = self.next_ephemeral()
            address = InetAddress(address.family, address.host, port)
        elif any(_conflict(socket, address, other) for other in self._holders(port)):
            raise KernelError(Errno.EADDRINUSE)
        holders = self._bound.setdefault(port, {})
        if len(holders) >= PORT_HOLDERS_MAX:
            raise KernelError(Errno.EADDRINUSE, f"{PORT_HOLDERS_MAX} sockets share port {port}")
        holders[socket] = None
        return address

    def _holders(self, port: int) -> Iterator[Socket]:
        """The sockets bound to a port, and one accepted connection of each group."""
        yield from self._bound.get(port, ())
        for alike in self._shared.get(port, {}).values():
            yield from islice(alike, 1)

    def share(self, socket: Socket, port: int) -> None:
        """Register an accepted connection on its listener's port."""
        holds = self._shared.setdefault(port, {})
        hold = _hold(socket)
        alike = holds.setdefault(hold, {})
        alike[socket] = None
        socket.shares = (port, hold)

    def next_ephemeral(self) -> int:
        """A port that no socket is bound to, such as the source port of a connection from the
        host; EADDRINUSE if there is none. It is not reserved."""
        for _ in _EPHEMERAL:
            port = self._next
            self._next = port + 1 if port + 1 in _EPHEMERAL else _EPHEMERAL.start
            if port not in self._bound and port not in self._shared:
                return port
        raise KernelError(Errno.EADDRINUSE, "no free port")

    def listened(self) -> list[int]:
        """The ports with listening sockets."""
        return [
            port
            for port, holders in self._bound.items()
            if any(socket.listening for socket in holders)
        ]

    def release(self, socket: Socket, port: int) -> None:
        """`socket` is closed: release its port."""
        if socket.shares is not None:
            port, hold = socket.shares
            socket.shares = None
            holds = self._shared[port]
            del holds[hold][socket]
            if not holds[hold]:
                del holds[hold]
                if not holds:
                    del self._shared[port]
            return
        holders = self._bound.get(port)
        if holders is not None:
            holders.pop(socket, None)
            if not holders:
                del self._bound[port]

    def reaching(self, to: InetAddress) -> list[Socket]:
        """The sockets that receive data for `to` (a plain address), best match first."""
        found: list[tuple[int, Socket]] = []
        for socket in self._bound.get(to.port, ()):
            fit = _fit(socket, to)
            if fit is not None:
                found.append((fit, socket))
        found.sort(key=lambda pair: pair[0])
        return [socket for _, socket in found]


def _fit(socket: Socket, to: InetAddress) -> int | None:
    """How well a bound socket matches a plain destination: 0 is exact, None no match."""
    local = socket.local
    assert isinstance(local, InetAddress)
    plain = local.plain()
    if plain.family == to.family:
        if plain.host == to.host:
            return 0
        return 1 if plain.is_any else None
    if local.family == AF_INET6 and local.is_any and not socket.option(IPV6_V6ONLY):
        return 2  # receives IPv4 as well
    return None


def _conflict(socket: Socket, address: InetAddress, other: Socket) -> bool:
    taken = other.local
    assert isinstance(taken, InetAddress)
    if not _overlap(socket, address, other, taken):
        return False
    if socket.option(SO_REUSEPORT) and other.option(SO_REUSEPORT):
        return socket.owner.uid != other.owner.uid
    both_reuse = socket.option(SO_REUSEADDR) and other.option(SO_REUSEADDR)
    return not both_reuse or other.listening


def _overlap(a_socket: Socket, a: InetAddress, b_socket: Socket, b: InetAddress) -> bool:
    plain_a, plain_b = a.plain(), b.plain()
    if plain_a.family == plain_b.family:
        return plain_a.is_any or plain_b.is_any or plain_a.host == plain_b.host
    six, address = (a_socket, a) if plain_a.family == AF_INET6 else (b_socket, b)
    return address.is_any and not six.option(IPV6_V6ONLY)


class Network:
    """The socket names of one sandbox."""

    def __init__(
        self,
        pipes: PipeAccount,
        anonymous: AnonymousInodes,
        namespace: Namespace,
        outside: Outside | None = None,
    ) -> None:
        self.outside = outside
        """The capability to reach addresses outside the sandbox; None if there is none."""
        self.pipes = pipes
        self.anonymous = anonymous
        self.namespace = namespace
        self.ledger = pipes.ledger
        self.sockets = 0
        """The number of sockets, including ends held by the host (`OutsideEnd`)."""
        self.messages = 0
        """The number of messages waiting to be received."""
        self.rights = RightsAccount(self.ledger)
        self.tcp = Ports()
        self.udp = Ports()
        self.listening = WaitQueue()
        """Woken when a TCP socket starts or stops listening, and when a listener may have room for
        a connection."""
        self.abstract: dict[bytes, Socket] = {}
        self.by_node: dict[Node, Socket] = {}
        self._next_abstract = 0

    def require_socket(self) -> None:
        """ENFILE if the sandbox has reached its socket limit."""
        if self.sockets >= SOCKETS_MAX:
            raise KernelError(Errno.ENFILE, f"limit of {SOCKETS_MAX} sockets reached")

    def route(self, address: InetAddress) -> Route:
        """The route to `address`: inside, or outside by a capability; else ENETUNREACH."""
        return route(address, self.outside)

    def bind_abstract(self, socket: Socket, name: bytes) -> bytes:
        """Bind to an abstract name (without its NUL), or to any free one if `name` is empty."""
        while not name:
            candidate = b"%05x" % self._next_abstract
            self._next_abstract = (self._next_abstract + 1) % _ABSTRACT_NAMES
            if candidate not in self.abstract:
                name = candidate
        if name in self.abstract:
            raise KernelError(Errno.EADDRINUSE)
        self.abstract[name] = socket
        return name

    def forget(self, socket: Socket, ports: Ports | None) -> None:
        """A socket was closed: free its name."""
        local = socket.local
        if isinstance(local, InetAddress):
            assert ports is not None
            ports.release(socket, local.port)
        elif isinstance(local, UnixAddress) and self.abstract.get(local.name[1:]) is socket:
            del self.abstract[local.name[1:]]
        if socket.bound_node is not None:
            self.by_node.pop(socket.bound_node, None)
            self.namespace.release(socket.bound_node)

    def bind_node(self, socket: Socket, node: Node) -> None:
        """Bind `socket` to an inode of the file system."""
        self.namespace.retain(node)  # while the socket is bound
        socket.bound_node = node
        self.by_node[node] = socket

    def bind_any(self, socket: Socket, ports: Ports) -> None:
        """Bind an unbound socket to a free port."""
        if socket.local is None:
            family = AF_INET6 if socket.family == AF_INET6 else AF_INET
            socket.local = ports.bind(socket, any_address(family))
