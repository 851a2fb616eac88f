"""One end of a connection: data transfer, closing, polling.

Owns `Connection`, the part of a stream socket that does not depend on how the connection was made.
The two directions are `Channel`s; the other end is a `Peer`: another stream socket, or an end held
by the host (`outside.py`). Rules: queued data is read before an error is reported, and an error
before end of file. Closing a socket with unread data resets its peer. After its peer has closed, a
TCP socket accepts one write, a Unix socket none.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLPRI,
    POLLRDHUP,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.limits import STREAM_SOCKET_COST
from wasmsand.kernel.sockets.base import NOBODY, Owner, Socket
from wasmsand.kernel.sockets.channel import Channel
from wasmsand.kernel.sockets.options import SO_OOBINLINE
from wasmsand.kernel.sockets.peer import Peer, new_channels
from wasmsand.kernel.sockets.rights import Rights

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network

SOCK_STREAM: Final = 1


class State(Enum):
    """The state of a stream socket."""

    FRESH = "fresh"
    LISTENING = "listening"
    CONNECTING = "connecting"
    """connect(2) was called and has not reported its result yet."""
    CONNECTED = "connected"
    RESET = "reset"
    """A TCP connection that was reset: data that had arrived can still be read."""


class Connection(Socket):
    """A socket that is, will be or was one end of a connection."""

    __slots__ = ("peer", "peer_owner", "rx", "state", "tx")

    type_number: ClassVar[int] = SOCK_STREAM
    cost: ClassVar[int] = STREAM_SOCKET_COST
    writes_all: ClassVar[bool] = True

    def __init__(
        self, network: Network, family: int, protocol: int, owner: Owner, flags: int
    ) -> None:
        super().__init__(network, family, protocol, owner, flags)
        self.state = State.FRESH
        self.rx: Channel | None = None
        self.tx: Channel | None = None
        self.peer: Peer | None = None
        """The other end; None before connecting and after it was closed."""
        self.peer_owner = NOBODY

    @property
    def is_connected(self) -> bool:
        """Whether the socket was connected and not reset."""
        return self.rx is not None and self.state is not State.RESET

    # Data transfer.

    def receive(
        self, count: int, *, peek: bool = False, nonblocking: bool = False
    ) -> tuple[bytes, Rights | None]:
        """Read up to `count` bytes and the descriptors sent with them; empty at end of file."""
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
            return b"", None  # end of file comes first; the next write reports the error
        self.raise_error()
        if rx.finished or self.shut_read or not count:
            return b"", None
        raise self.block(nonblocking)

    def receive_urgent(self, *, peek: bool) -> bytes:
        """Read the urgent byte; EINVAL if there is none, or if it is in the stream."""
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
        """Write some of `data`; return the number of bytes written. The last byte may be urgent."""
        self.raise_error()
        tx = self.tx
        if tx is None:
            if self.state is State.CONNECTING:
                raise self.block(nonblocking)
            raise KernelError(Errno.ENOTCONN if self.is_unix else Errno.EPIPE)
        if self.shut_write:
            raise KernelError(Errno.EPIPE)
        peer = self.peer
        if peer is None or (self.is_unix and peer.shut_read):
            if self.is_unix or tx.finished:
                raise KernelError(Errno.EPIPE)
            if data:  # the peer resets the connection; the next call reports it
                self.be_reset(Errno.EPIPE)
            return len(data)
        if not data:
            return 0
        room = tx.room()
        if room <= 0:
            raise self.block(nonblocking)
        part = data if len(data) <= room else data[:room]
        if urgent and len(part) == len(data):
            tx.push_urgent(part, inline=peer.takes_urgent_inline)
        else:
            tx.push_with(part, rights)
            if rights is not None:
                assert isinstance(peer, Connection)  # only Unix sockets carry descriptors
                rights.holder = peer
        return len(part)

    def read(self, count: int) -> bytes:
        data, rights = self.receive(count)
        if rights is not None:
            rights.drop()
        return data

    def write(self, data: bytes) -> int:
        return self.send(data)

    def readable_bytes(self) -> int:
        return self.rx.size if self.rx is not None else 0

    @property
    def takes_urgent_inline(self) -> bool:
        """Whether an urgent byte stays in the stream (SO_OOBINLINE)."""
        return bool(self.option(SO_OOBINLINE))

    # Closing.

    def shutdown(self, read: bool, write: bool) -> None:
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
        if self.peer is not None:
            self.peer.changed.wake()

    def release(self) -> None:
        resets = False
        if self.rx is not None and self.tx is not None:
            resets = self.rx.discard() or self.linger == (1, 0)
            self.tx.finished = True
            self.network.pipes.in_use -= 1
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.left(reset=resets)
        self.network.forget(self, None if self.is_unix else self.network.tcp)

    def left(self, *, reset: bool) -> None:
        """The other end, a socket, was closed."""
        self.peer = None
        if reset:
            self.be_reset(Errno.ECONNRESET)
        else:
            self.changed.wake()

    def be_reset(self, error: Errno) -> None:
        """The other end reset the connection."""
        if self.tx is not None and not self.is_unix:
            self.tx.finished = True
            if self.state is State.CONNECTED:
                self.state = State.RESET
        self.fail_with(error)

    def poll(self) -> int:
        bits = POLLERR if self.error is not None else 0
        rx, tx = self.rx, self.tx
        if rx is None or tx is None:
            if self.state is State.CONNECTING:
                return bits
            return bits | POLLOUT | POLLWRNORM | POLLHUP
        ended = rx.finished or self.shut_read
        if rx.size or ended or self.error is not None:
            bits |= POLLIN | POLLRDNORM
        if ended:
            bits |= POLLRDHUP
        if rx.mark is not None and (rx.urgent or self.takes_urgent_inline):
            bits |= POLLPRI
        gone = self.peer is None
        if (ended and tx.finished) or (gone and self.is_unix):
            bits |= POLLHUP
        if gone or tx.finished or tx.room() * 3 >= tx.capacity:
            bits |= POLLOUT | POLLWRNORM
        return bits


def join(one: Connection, two: Connection) -> None:
    """Connect two sockets to each other."""
    to_two, to_one = new_channels(one.network.pipes, one.changed, two.changed)
    one.tx = two.rx = to_two
    two.tx = one.rx = to_one
    one.peer, two.peer = two, one
    one.peer_owner, two.peer_owner = two.owner, one.owner
