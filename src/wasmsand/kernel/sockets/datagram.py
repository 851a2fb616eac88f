"""Datagrams: Unix datagram sockets and UDP.

Owns `DatagramSocket`. Rules: a message arrives whole or truncated, never split. UDP drops messages
for which the receiver has no room; a Unix sender waits. A connected UDP socket whose message
reached no socket gets ECONNREFUSED at its next call. What becomes of a datagram to the outside is
up to the capability `Outside`.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDHUP,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.limits import (
    DATAGRAM_COST,
    DATAGRAM_MAX,
    DATAGRAM_SOCKET_COST,
    MESSAGES_MAX,
    SOCKET_QUEUE_BYTES,
)
from wasmsand.kernel.sockets.address import (
    AF_INET6,
    Address,
    InetAddress,
    UnixAddress,
)
from wasmsand.kernel.sockets.base import Owner, Socket
from wasmsand.kernel.sockets.options import IPV6_TCLASS, IPV6_UNICAST_HOPS
from wasmsand.kernel.sockets.rights import Rights

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network

SOCK_DGRAM: Final = 2


class Header(NamedTuple):
    """The fields of an IPv6 header that a receiver may ask for."""

    hop_limit: int
    traffic_class: int


class Message(NamedTuple):
    """One datagram in a queue."""

    data: bytes
    source: Address
    rights: Rights | None
    header: Header | None = None


class DatagramSocket(Socket):
    """A datagram socket."""

    __slots__ = ("_held", "_messages", "_target")

    type_number: ClassVar[int] = SOCK_DGRAM
    cost: ClassVar[int] = DATAGRAM_SOCKET_COST

    def __init__(
        self, network: Network, family: int, protocol: int, owner: Owner, flags: int
    ) -> None:
        super().__init__(network, family, protocol, owner, flags)
        self._messages: deque[Message] = deque()
        self._held = 0
        self._target: DatagramSocket | None = None  # if a connected Unix socket

    def bind_inet(self, address: InetAddress) -> None:
        """Bind to an Internet address."""
        self.local = self.network.udp.bind(self, address)

    def connect(self, address: Address, target: Socket | None) -> None:
        if isinstance(address, InetAddress):
            route = self.network.route(address)
            self.network.bind_any(self, self.network.udp)
            assert isinstance(self.local, InetAddress)
            self.local = route.local_for(self.local, self.family)
            self.remote = route.destination.as_family(self.family)
        else:
            self._target = _receiver(target)
            self.remote = address
        self.changed.wake()

    def disconnect(self) -> None:
        """connect(2) to AF_UNSPEC."""
        self.remote = self._target = None

    def pair_with(self, other: DatagramSocket) -> None:
        """socketpair(2)."""
        self._target, other._target = other, self
        self.remote = other.remote = UnixAddress()

    def send(
        self,
        data: bytes,
        to: Address | None,
        target: Socket | None,
        rights: Rights | None = None,
        header: Header | None = None,
        *,
        nonblocking: bool = False,
    ) -> int:
        """Send one message; if `to` is None, to the connected address."""
        self.raise_error()
        if self.shut_write:
            raise KernelError(Errno.EPIPE)
        if to is None and self.remote is None:
            raise KernelError(Errno.ENOTCONN if self.is_unix else Errno.EDESTADDRREQ)
        if self.is_unix:
            self._send_unix(data, to, target, rights, nonblocking)
        else:
            self._send_inet(data, to, header)
        return len(data)

    def _send_unix(
        self,
        data: bytes,
        to: Address | None,
        target: Socket | None,
        rights: Rights | None,
        nonblocking: bool,
    ) -> None:
        if len(data) + DATAGRAM_COST > SOCKET_QUEUE_BYTES:
            raise KernelError(Errno.EMSGSIZE)
        receiver = self._target if to is None else _receiver(target)
        if receiver is None:
            raise KernelError(Errno.ECONNREFUSED)
        if receiver.references == 0:
            self.disconnect()
            raise KernelError(Errno.ECONNREFUSED)
        if receiver._target is not None and receiver._target is not self:
            raise KernelError(Errno.EPERM)
        if receiver.shut_read:
            raise KernelError(Errno.EPIPE)
        if not receiver._has_room(len(data)):
            raise self.block(nonblocking, receiver.changed)
        receiver._put(Message(data, self.name(), rights))

    def usual_header(self) -> Header:
        """The header according to the socket's options."""
        return Header(self.option(IPV6_UNICAST_HOPS), self.option(IPV6_TCLASS))

    def _send_inet(self, data: bytes, to: Address | None, header: Header | None) -> None:
        if len(data) > DATAGRAM_MAX:
            raise KernelError(Errno.EMSGSIZE)
        address = to if to is not None else self.remote
        assert isinstance(address, InetAddress)
        if not address.port:
            raise KernelError(Errno.EINVAL)
        route = self.network.route(address)
        where = route.destination
        udp = self.network.udp
        self.network.bind_any(self, udp)
        assert isinstance(self.local, InetAddress)
        source = route.local_for(self.local, where.family).plain()
        if route.outside is not None:
            route.outside.send_datagram(where, data, self)
            return
        for receiver in udp.reaching(where):
            assert isinstance(receiver, DatagramSocket)
            peer = receiver.remote
            if isinstance(peer, InetAddress) and peer.plain() != source:
                continue
            if receiver._has_room(len(data)) and not receiver.shut_read:
                if where.family == AF_INET6:
                    header = header or self.usual_header()
                receiver._put(Message(data, source.as_family(receiver.family), None, header))
            return
        if self.remote is not None:
            self.fail_with(Errno.ECONNREFUSED)

    def be_answered(self, data: bytes, source: InetAddress) -> None:
        """See `DatagramSender`."""
        peer = self.remote
        if isinstance(peer, InetAddress) and peer.plain() != source:
            return
        if self.references and not self.shut_read and self._has_room(len(data)):
            with suppress(KernelError):  # no room for messages in the sandbox
                self._put(Message(data, source.as_family(self.family), None))

    def _has_room(self, size: int) -> bool:
        return self._held + size + DATAGRAM_COST <= SOCKET_QUEUE_BYTES

    def _put(self, message: Message) -> None:
        network = self.network
        if network.messages >= MESSAGES_MAX:
            raise KernelError(Errno.ENOBUFS, f"limit of {MESSAGES_MAX} messages reached")
        size = len(message.data) + DATAGRAM_COST
        network.ledger.add_queued(size)
        network.messages += 1
        self._messages.append(message)
        self._held += size
        if message.rights is not None:
            message.rights.holder = self
        self.changed.wake()

    def receive(self, *, peek: bool = False, nonblocking: bool = False) -> Message | None:
        """Take the next message; None if no more will come."""
        self.raise_error()
        if not self._messages:
            if self.shut_read:
                return None
            raise self.block(nonblocking)
        if peek:
            return self._messages[0]._replace(rights=None)
        message = self._messages.popleft()
        size = len(message.data) + DATAGRAM_COST
        self._held -= size
        self.network.messages -= 1
        self.network.ledger.drop_queued(size)
        self.changed.wake()
        return message

    def read(self, count: int) -> bytes:
        message = self.receive()
        if message is None:
            return b""
        if message.rights is not None:
            message.rights.drop()
        return message.data[:count]

    def write(self, data: bytes) -> int:
        return self.send(data, None, None)

    def readable_bytes(self) -> int:
        return len(self._messages[0].data) if self._messages else 0

    def shutdown(self, read: bool, write: bool) -> None:
        if self.remote is None and not self.is_unix:
            raise KernelError(Errno.ENOTCONN)
        self.shut_read = self.shut_read or read
        self.shut_write = self.shut_write or write
        self.changed.wake()

    def poll(self) -> int:
        bits = POLLERR if self.error is not None else 0
        if self._messages or self.shut_read or self.error is not None:
            bits |= POLLIN | POLLRDNORM
        if self.shut_read:
            bits |= POLLRDHUP
            if self.shut_write:
                bits |= POLLHUP
        target = self._target
        if target is None or target.references == 0 or target._has_room(0):
            bits |= POLLOUT | POLLWRNORM
        return bits

    def release(self) -> None:
        self.network.messages -= len(self._messages)
        while self._messages:
            rights = self._messages.popleft().rights
            if rights is not None:
                rights.drop()
        self.network.ledger.drop_queued(self._held)
        self._held = 0
        target, self._target = self._target, None
        if target is not None and target._target is self:
            target._target = None  # its next send gets ECONNREFUSED
            target.changed.wake()
        self.changed.wake()  # wake senders that wait for room
        self.network.forget(self, None if self.is_unix else self.network.udp)


def _receiver(target: Socket | None) -> DatagramSocket:
    if target is None:
        raise KernelError(Errno.ECONNREFUSED)
    if not isinstance(target, DatagramSocket):
        raise KernelError(Errno.EPROTOTYPE)
    return target
