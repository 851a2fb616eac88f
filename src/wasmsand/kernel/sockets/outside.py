"""Connections to the outside of the sandbox.

Owns `Outside`, the capability to reach the outside, and `OutsideEnd`, the host's end of a guest's
stream. Rules: nothing here touches the host's network, waits, or uses threads. The implementation
lives above the kernel. It calls an `OutsideEnd` with the sandbox's lock held, and
`OutsideEnd.changed` tells it when the guest has acted. Wakers of that queue run inside the guest's
system call and must not call the kernel: they notify a thread (or a promise), which takes the lock.

Queued bytes are in a `Channel`, bounded and charged to the sandbox's ledger. If the host does not
take what the guest writes, the guest waits; if the guest does not read, `give` accepts less. An end
counts as a socket until the host closes it, because it holds what the guest wrote before closing
its own end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import OUTSIDE_CAPACITY, OUTSIDE_END_COST, PIPE_CAPACITY
from wasmsand.kernel.sockets.address import InetAddress
from wasmsand.kernel.sockets.peer import new_channels
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.channel import Channel
    from wasmsand.kernel.sockets.network import Network
    from wasmsand.kernel.sockets.stream import StreamSocket


class Outside(Protocol):
    """The capability to reach addresses outside the sandbox. Methods are called with the sandbox's
    lock held, must return at once, and refuse by raising `KernelError`."""

    def source(self, destination: InetAddress) -> bytes:
        """The guest's source address for `destination`, of the same family. ENETUNREACH if no
        address of that family can be reached."""

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        """Start connecting to `destination`, a plain address. A refusal that needs no network is
        raised, and connect(2) fails with it at once. Otherwise the host calls `end.establish()` or
        `end.fail(error)` later, or before this method returns."""

    def send_datagram(self, destination: InetAddress, data: bytes, sender: DatagramSender) -> None:
        """Send a datagram to `destination`, a plain address. Answers are given to `sender`, now or
        later; datagrams that lead nowhere are dropped."""


class DatagramSender(Protocol):
    """A guest's socket that has sent a datagram to the outside. Its methods are called with the
    sandbox's lock held."""

    def be_answered(self, data: bytes, source: InetAddress) -> None:
        """A datagram has arrived from `source`, a plain address. It is dropped if the socket is
        closed or has no room."""


class OutsideEnd:
    """The host's end of one stream, and the `Peer` of the guest's socket."""

    __slots__ = ("_from_guest", "_network", "_socket", "_to_guest", "changed", "was_reset")

    def __init__(self, network: Network, socket: StreamSocket) -> None:
        """ENFILE or ENOBUFS if the sandbox has no room for another end."""
        network.require_socket()
        network.ledger.add_object(OUTSIDE_END_COST, Errno.ENOBUFS)
        network.sockets += 1
        self._network: Network | None = network
        self._socket: StreamSocket | None = socket
        self._to_guest: Channel | None = None
        self._from_guest: Channel | None = None
        self.changed = WaitQueue()
        """Woken when the guest writes, reads, shuts down one direction, or closes its socket."""
        self.was_reset = False
        """Whether the guest reset the connection."""

    # State, for the host.

    @property
    def is_gone(self) -> bool:
        """Whether the guest has closed its socket. What it wrote can still be taken, unless it
        reset the connection; what the host gives will not be read."""
        return self._socket is None

    @property
    def at_end(self) -> bool:
        """Whether the guest will write no more and everything it wrote was taken."""
        queue = self._from_guest
        return self.is_gone if queue is None else queue.finished and not queue.size

    @property
    def has_news(self) -> bool:
        """Whether there is something to take, or the guest has closed its socket or this
        direction."""
        queue = self._from_guest
        return self._socket is None or (queue is not None and (queue.finished or queue.size > 0))

    @property
    def room(self) -> int:
        """How many bytes `give` accepts now."""
        queue = self._to_guest
        return 0 if queue is None or self._socket is None or queue.finished else queue.room()

    @property
    def has_much_room(self) -> bool:
        """Whether half of what may wait for the guest can be given now."""
        queue = self._to_guest
        return queue is not None and self.room * 2 >= queue.capacity

    # Actions of the host.

    def establish(self) -> None:
        """The connection is established: the guest's connect(2) succeeds."""
        if self._socket is None or self._network is None or self._to_guest is not None:
            return  # the guest has left, or the host has closed this end
        pipes = self._network.pipes
        self._to_guest, self._from_guest = new_channels(
            pipes, self.changed, self._socket.changed, OUTSIDE_CAPACITY
        )
        self._socket.establish(self._to_guest, self._from_guest)

    def fail(self, error: Errno) -> None:
        """The connection could not be made, or was lost: the guest's connect(2), or its next call,
        fails with `error`. Closes this end."""
        socket, established = self._socket, self._to_guest is not None
        self.finish()
        self._give_back()
        if socket is None:
            return
        if established:
            socket.be_reset(error)
        else:
            socket.fail_connecting(error)

    def take(self, count: int = PIPE_CAPACITY) -> bytes:
        """Take up to `count` bytes that the guest has written; empty if there are none."""
        queue = self._from_guest
        return b"" if queue is None else queue.take(count, peek=False)[0]

    def peek(self, count: int) -> bytes:
        """Up to `count` bytes that the guest has written, which stay in the queue."""
        queue = self._from_guest
        return b"" if queue is None else queue.take(count, peek=True)[0]

    def give(self, data: bytes) -> int:
        """Send as much of `data` to the guest as there is room for; return the number of bytes.
        ENOBUFS if the sandbox's memory is used up."""
        part = data[: self.room]
        if part:
            assert self._to_guest is not None
            self._to_guest.push_with(part, None)
        return len(part)

    def finish(self) -> None:
        """Send no more data: the guest reads end of file after what was given."""
        queue = self._to_guest
        if queue is not None and not queue.finished:
            queue.finished = True
            queue.reader.wake()

    def close(self) -> None:
        """The host is done: the guest reads end of file, and its further writes are answered by a
        reset. Every end must be closed, by this method or by `fail`."""
        if self._to_guest is None:
            self.fail(Errno.ECONNREFUSED)
        else:
            self.finish()
            self._give_back()

    def _give_back(self) -> None:
        """Release the end's charges and detach it from the socket."""
        network, self._network = self._network, None
        if network is None:
            return
        network.sockets -= 1
        network.ledger.drop_object(OUTSIDE_END_COST)
        if self._from_guest is not None:
            network.pipes.in_use -= 1
            self._from_guest.discard()
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.peer = None
            socket.changed.wake()

    # `Peer`.

    @property
    def shut_read(self) -> bool:
        """Always False: a host that wants no more data closes this end."""
        return False

    @property
    def takes_urgent_inline(self) -> bool:
        """Always True: an urgent byte stays in the stream."""
        return True

    def left(self, *, reset: bool) -> None:
        """The guest has closed its socket."""
        self._socket = None
        self.was_reset = reset
        if reset and self._from_guest is not None:
            self._from_guest.discard()
        self.changed.wake()
