"""Connections: SOCK_STREAM of Unix sockets, and TCP.

Owns `StreamSocket`; the two directions of a connection are `Channel`s. Rules: data is read
before an error is told, an error before the end; a socket closed with unread data resets its
peer; TCP takes one write after its peer has closed, a Unix socket none; a connection exists
before it is accepted, is on the ledger since then, and waits in the listener's queue; if that
is full, the socket waits outside of it, until it is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import (
    O_NONBLOCK,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLPRI,
    POLLRDHUP,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.limits import (
    BACKLOG_MAX,
    FULL_PIPES_MAX,
    PIPE_ATOMIC_WRITE,
    PIPE_CAPACITY,
    STREAM_SOCKET_COST,
)
from wasmsand.kernel.sockets.address import (
    Address,
    InetAddress,
    UnixAddress,
    any_address,
    destination,
    local_host_for,
)
from wasmsand.kernel.sockets.base import NOBODY, Peer, Socket
from wasmsand.kernel.sockets.channel import Channel
from wasmsand.kernel.sockets.options import SO_OOBINLINE
from wasmsand.kernel.sockets.rights import Rights
from wasmsand.kernel.wait import WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network

SOCK_STREAM = 1


class State(Enum):
    """Where a stream socket is in its life."""

    FRESH = "fresh"
    LISTENING = "listening"
    CONNECTING = "connecting"
    """connect(2) has not told its success yet."""
    CONNECTED = "connected"
    RESET = "reset"
    """A TCP connection that is no more: what had arrived can still be read."""


_NO_CONNECTIONS: Final[deque[StreamSocket]] = deque(maxlen=0)
"""Instead of an empty queue, of which each takes 600 bytes."""


class StreamSocket(Socket):
    """One end of a connection, or what waits for connections."""

    __slots__ = (
        "_backlog",
        "_outside",
        "_outside_of",
        "_pending",
        "other",
        "peer_owner",
        "rx",
        "state",
        "tx",
    )

    type_number: ClassVar[int] = SOCK_STREAM
    cost: ClassVar[int] = STREAM_SOCKET_COST
    writes_all: ClassVar[bool] = True

    def __init__(
        self, network: Network, family: int, protocol: int, owner: Peer, flags: int
    ) -> None:
        super().__init__(network, family, protocol, owner, flags)
        self.state = State.FRESH
        self.rx: Channel | None = None
        self.tx: Channel | None = None
        self.other: StreamSocket | None = None
        self.peer_owner = NOBODY
        self._pending = _NO_CONNECTIONS
        """Connections to be accepted."""
        self._outside: dict[StreamSocket, None] = {}
        """Sockets that wait for a place among these."""
        self._outside_of: StreamSocket | None = None
        """The listener at which this one waits so."""
        self._backlog = 0

    @property
    def listening(self) -> bool:
        """Whether listen(2) was called."""
        return self.state is State.LISTENING

    # Coming together.

    def bind_inet(self, address: InetAddress) -> None:
        """Take an Internet address."""
        self.local = self.network.tcp.bind(self, address)

    def listen(self, backlog: int) -> None:
        if self.state not in (State.FRESH, State.LISTENING):
            raise KernelError(Errno.EINVAL)
        if self.local is None:
            if self.is_unix:
                raise KernelError(Errno.EINVAL)
            self.network.bind_any(self, self.network.tcp)
        self.state = State.LISTENING
        if self._pending is _NO_CONNECTIONS:
            self._pending = deque()
        self._backlog = min(max(backlog, 0), BACKLOG_MAX)

    def connect(self, address: Address, target: Socket | None) -> None:
        if self.state is State.CONNECTING:
            self._finish_connecting()
            return
        if self.state in (State.CONNECTED, State.RESET):
            raise KernelError(Errno.EISCONN)
        if self.state is State.LISTENING:
            raise KernelError(Errno.EINVAL if self.is_unix else Errno.EISCONN)
        self.raise_error()
        if isinstance(address, InetAddress):
            self._connect_inet(address)
        else:
            assert isinstance(address, UnixAddress)
            self._connect_unix(address, target)

    def _connect_unix(self, address: UnixAddress, target: Socket | None) -> None:
        if target is not None and not isinstance(target, StreamSocket):
            raise KernelError(Errno.EPROTOTYPE)
        if target is None or not target.listening or target.shut_read:
            raise KernelError(Errno.ECONNREFUSED)
        if len(target._pending) > target._backlog:
            raise self.block(False, target.changed)
        self.peer = address
        try:
            self._meet(target)
        except KernelError:
            self.peer = None
            raise
        self.state = State.CONNECTED

    def _connect_inet(self, address: InetAddress) -> None:
        to = destination(address)
        tcp = self.network.tcp
        if self.local is None:
            tcp_address = any_address(self.family)
            self.local = tcp.bind(self, tcp_address)
        assert isinstance(self.local, InetAddress)
        if self.local.is_any:
            mine = InetAddress(to.family, local_host_for(to), self.local.port)
            self.local = mine.as_family(self.family)
        self.peer = to.as_family(self.family)
        self.state = State.CONNECTING
        listener = next(
            (s for s in tcp.reaching(to) if isinstance(s, StreamSocket) and s.listening), None
        )
        if listener is None:
            self.error = Errno.ECONNREFUSED
        elif len(listener._pending) <= listener._backlog:
            self._meet_or_fail(listener)
        elif len(listener._outside) < BACKLOG_MAX:
            listener._outside[self] = None
            self._outside_of = listener
        else:
            self.error = Errno.ETIMEDOUT  # as Linux says in the end, of a listener that drops
        if self.flags & O_NONBLOCK:
            # Loopback or not, Linux says so before it looks at what came back.
            raise KernelError(Errno.EINPROGRESS)
        self._finish_connecting()

    def _finish_connecting(self) -> None:
        if self.error is not None:
            self.state = State.FRESH
            self.peer = None
            self.raise_error()
        if self.rx is not None:
            self.state = State.CONNECTED
            return
        if self.flags & O_NONBLOCK:
            raise KernelError(Errno.EALREADY)
        raise WouldBlock((self.changed,))

    def _meet_or_fail(self, listener: StreamSocket) -> None:
        """As `_meet`; an error is what connect(2) then tells."""
        try:
            self._meet(listener)
        except KernelError as error:
            self.fail_with(error.errno)

    def _meet(self, listener: StreamSocket) -> None:
        """Make the other end of this socket, for `listener` to accept. ENOBUFS, ENFILE."""
        other = StreamSocket(
            self.network,
            listener.family,
            listener.protocol,
            listener.owner,
            0,
        )
        other.enter(self.network.ledger, Errno.ENOBUFS)
        try:
            other.inherit_options(listener)
        except KernelError:
            other.dispose()
            raise
        if isinstance(self.local, InetAddress) and isinstance(self.peer, InetAddress):
            other.local = self.peer.plain().as_family(listener.family)
            other.peer = self.local.plain().as_family(listener.family)
            self.network.tcp.share(other, self.peer.port)
        else:
            other.local = listener.local
            other.peer = self.name()
        join(self, other)
        other.state = State.CONNECTED
        listener._pending.append(other)
        listener.changed.wake()
        self.changed.wake()

    def accept(self, nonblocking: bool) -> StreamSocket:
        if not self.listening:
            raise KernelError(Errno.EINVAL)
        self.raise_error()
        if not self._pending:
            if self.shut_read:
                raise KernelError(Errno.EINVAL)
            raise self.block(nonblocking)
        accepted = self._pending.popleft()
        while self._outside and len(self._pending) <= self._backlog:
            self._next_outside()._meet_or_fail(self)
        self.changed.wake()
        return accepted

    def _next_outside(self) -> StreamSocket:
        client = next(iter(self._outside))
        del self._outside[client]
        client._outside_of = None
        return client

    def kept_open(self) -> Iterable[OpenFile]:
        return self._pending

    # Moving data.

    def receive(
        self, count: int, *, peek: bool = False, nonblocking: bool = False
    ) -> tuple[bytes, Rights | None]:
        """Up to `count` bytes, and descriptors that came with them; empty at the end."""
        rx = self.rx
        if rx is None:
            self.raise_error()
            if self.state is State.CONNECTING:
                raise self.block(nonblocking)
            if self.shut_read:
                return b"", None
            raise KernelError(Errno.EINVAL if self.is_unix else Errno.ENOTCONN)
        if rx.size:
            return rx.take(count, peek)
        if rx.finished and self.error is Errno.EPIPE:
            return b"", None  # the end came first; that error is for who writes
        self.raise_error()
        if rx.finished or self.shut_read or not count:
            return b"", None
        raise self.block(nonblocking)

    def receive_urgent(self, *, peek: bool) -> bytes:
        """The urgent byte; EINVAL if there is none, or it is in the stream."""
        rx = self.rx
        if rx is None or not rx.urgent:
            raise KernelError(Errno.EINVAL)
        urgent = rx.urgent
        if not peek:
            rx.urgent = b""
        return urgent

    def send(
        self,
        data: bytes,
        rights: Rights | None = None,
        *,
        urgent: bool = False,
        nonblocking: bool = False,
    ) -> int:
        """Write some of `data`; the count written. The last byte may be urgent."""
        if self.state is not State.CONNECTING or self.rx is not None:
            self.raise_error()
        tx = self.tx
        if tx is None:
            if self.state is State.CONNECTING:
                raise self.block(nonblocking)
            raise KernelError(Errno.ENOTCONN if self.is_unix else Errno.EPIPE)
        if self.shut_write:
            raise KernelError(Errno.EPIPE)
        other = self.other
        if other is None or (self.is_unix and other.shut_read):
            if self.is_unix or tx.finished:
                raise KernelError(Errno.EPIPE)
            if data:  # The answer to this is a reset, which the next call is told.
                self._be_reset(Errno.EPIPE)
            return len(data)
        if not data:
            return 0
        room = tx.room()
        if room <= 0:
            raise self.block(nonblocking)
        part = data if len(data) <= room else data[:room]
        if urgent and len(part) == len(data):
            tx.push_urgent(part, inline=bool(other.option(SO_OOBINLINE)))
        else:
            tx.push_with(part, rights)
            if rights is not None:
                rights.holder = other
        return len(part)

    def read(self, count: int) -> bytes:
        data, rights = self.receive(count)
        if rights is not None:
            rights.drop()
        return data

    def write(self, data: bytes) -> int:
        return self.send(data)

    def readable_bytes(self) -> int:
        if self.listening:
            raise KernelError(Errno.EINVAL)
        return self.rx.size if self.rx is not None else 0

    # Parting.

    def shutdown(self, read: bool, write: bool) -> None:
        if self.listening and not self.is_unix:
            if read:
                self.state = State.FRESH
                self._refuse_waiting()
                self.changed.wake()
            return
        if self.rx is None or self.tx is None or self.state is State.RESET:
            if not self.is_unix:
                raise KernelError(Errno.ENOTCONN)
            self.shut_read = self.shut_read or read
            self.shut_write = self.shut_write or write
            self.changed.wake()
            return
        if read:
            self.shut_read = True
        if write:
            self.shut_write = True
            self.tx.finished = True
        self.changed.wake()
        if self.other is not None:
            self.other.changed.wake()

    def release(self) -> None:
        self._refuse_waiting()
        if self._outside_of is not None:
            self._outside_of._outside.pop(self, None)
            self._outside_of = None
        if self.rx is not None and self.tx is not None:
            unread = self.rx.discard() or self.linger == (1, 0)
            self.tx.finished = True
            self.network.pipes.in_use -= 1
            other, self.other = self.other, None
            if other is not None:
                other.other = None
                if unread:
                    other._be_reset(Errno.ECONNRESET)
                other.changed.wake()
        self.network.forget(self, None if self.is_unix else self.network.tcp)

    def _be_reset(self, error: Errno) -> None:
        """The other end has broken off."""
        if self.state is State.CONNECTED and not self.is_unix:
            self.state = State.RESET
            if self.tx is not None:
                self.tx.finished = True
        self.fail_with(error)

    def _refuse_waiting(self) -> None:
        while self._pending:
            waiting = self._pending.popleft()
            if waiting.other is not None:
                waiting.other._be_reset(Errno.ECONNRESET)
            waiting.dispose()
        while self._outside:
            self._next_outside().fail_with(Errno.ECONNREFUSED)

    # Looking.

    def poll(self) -> int:
        if self.listening:
            return POLLIN | POLLRDNORM if self._pending else 0
        bits = POLLERR if self.error is not None else 0
        rx, tx = self.rx, self.tx
        if rx is None or tx is None:
            if self.state is State.CONNECTING and self.error is None:
                return bits
            return bits | POLLOUT | POLLWRNORM | POLLHUP
        ended = rx.finished or self.shut_read
        if rx.size or ended or self.error is not None:
            bits |= POLLIN | POLLRDNORM
        if ended:
            bits |= POLLRDHUP
        if rx.mark is not None and (rx.urgent or self.option(SO_OOBINLINE)):
            bits |= POLLPRI
        gone = self.other is None
        if (ended and tx.finished) or (gone and self.is_unix):
            bits |= POLLHUP
        if gone or tx.finished or tx.room() * 3 >= tx.capacity:
            bits |= POLLOUT | POLLWRNORM
        return bits


def join(one: StreamSocket, two: StreamSocket) -> None:
    """Connect two sockets to each other."""
    pipes = one.network.pipes
    pipes.in_use += 2
    capacity = PIPE_CAPACITY if pipes.in_use <= FULL_PIPES_MAX else PIPE_ATOMIC_WRITE
    ledger = one.network.ledger
    one.tx = two.rx = Channel(ledger, capacity, writer=one.changed, reader=two.changed)
    two.tx = one.rx = Channel(ledger, capacity, writer=two.changed, reader=one.changed)
    one.other, two.other = two, one
    one.peer_owner, two.peer_owner = two.owner, one.owner


def socket_pair(one: StreamSocket, two: StreamSocket) -> None:
    """socketpair(2)."""
    join(one, two)
    one.state = two.state = State.CONNECTED
    one.peer = two.peer = UnixAddress()
