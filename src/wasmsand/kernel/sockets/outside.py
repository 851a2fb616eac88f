"""What is outside of the sandbox.

Owns `Outside`, the capability to reach it, and `OutsideEnd`, the host's end of one stream of a
guest. Rules: nothing here touches the host's network, waits, or knows threads. The host's part
lives above the kernel; it calls an `OutsideEnd` with the sandbox's lock held, and learns from
`OutsideEnd.changed` that the guest has acted. Wakers of that queue run in the guest's system call
and must not call the kernel: they tell a thread (or a promise), which then takes the lock.

Every byte that waits is in a `Channel`: bounded, and on the sandbox's ledger. A host that does not
take what the guest writes makes the guest wait; a guest that does not read makes `give` take
less. An end counts as a socket until the host has closed it, because what the guest wrote before
it closed its own end waits there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import OUTSIDE_END_COST, PIPE_CAPACITY
from wasmsand.kernel.sockets.address import InetAddress
from wasmsand.kernel.sockets.peer import new_channels
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.channel import Channel
    from wasmsand.kernel.sockets.network import Network
    from wasmsand.kernel.sockets.stream import StreamSocket


class Outside(Protocol):
    """The capability to reach addresses outside of the sandbox. Methods are called with the
    sandbox's lock held, must return at once, and refuse by raising `KernelError`."""

    def source(self, destination: InetAddress) -> bytes:
        """The host address that the guest has on the way to `destination`, of the same family.
        ENETUNREACH if no address of that kind can be reached."""

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        """Begin a connection to `destination`, a plain address. A refusal that needs no network
        is raised; connect(2) fails with it at once. Otherwise the host later calls
        `end.establish()` or `end.fail(error)`; it may do so before this returns."""


class OutsideEnd:
    """The host's end of one stream. It is the `Peer` of a guest's socket."""

    __slots__ = ("_from_guest", "_network", "_socket", "_to_guest", "changed", "was_reset")

    def __init__(self, network: Network, socket: StreamSocket) -> None:
        """ENFILE or ENOBUFS if the sandbox has no room for a further end."""
        network.require_socket()
        network.ledger.add_object(OUTSIDE_END_COST, Errno.ENOBUFS)
        network.sockets += 1
        self._network: Network | None = network
        self._socket: StreamSocket | None = socket
        self._to_guest: Channel | None = None
        self._from_guest: Channel | None = None
        self.changed = WaitQueue()
        """Wakes when the guest has written, read, ended one direction, or closed its socket."""
        self.was_reset = False
        """Whether the guest broke off the connection."""

    # What the host sees.

    @property
    def is_gone(self) -> bool:
        """Whether the guest has closed its socket: what it wrote can still be taken, unless it
        has reset the connection; nothing that is given will be read."""
        return self._socket is None

    @property
    def at_end(self) -> bool:
        """Whether the guest will write no more, and all that it wrote was taken."""
        queue = self._from_guest
        return self.is_gone if queue is None else queue.finished and not queue.size

    @property
    def room(self) -> int:
        """How many bytes `give` takes now."""
        queue = self._to_guest
        return 0 if queue is None or self._socket is None or queue.finished else queue.room()

    # What the host does.

    def establish(self) -> None:
        """The connection exists: the guest's connect(2) succeeds."""
        if self._socket is None or self._network is None or self._to_guest is not None:
            return  # the guest has left, or the host has closed this end
        pipes = self._network.pipes
        self._to_guest, self._from_guest = new_channels(pipes, self.changed, self._socket.changed)
        self._socket.establish(self._to_guest, self._from_guest)

    def fail(self, error: Errno) -> None:
        """The connection could not be made, or broke off: the guest's connect(2), or its next
        call, is told `error`. Closes this end."""
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
        """Up to `count` bytes that the guest has written; empty if none wait."""
        queue = self._from_guest
        return b"" if queue is None else queue.take(count, peek=False)[0]

    def give(self, data: bytes) -> int:
        """Send as much of `data` to the guest as there is room for; the count sent. ENOBUFS if
        the sandbox's memory is used up."""
        part = data[: self.room]
        if part:
            assert self._to_guest is not None
            self._to_guest.push_with(part, None)
        return len(part)

    def finish(self) -> None:
        """Send no more: the guest reads the end after what was given."""
        queue = self._to_guest
        if queue is not None and not queue.finished:
            queue.finished = True
            queue.reader.wake()

    def close(self) -> None:
        """The host is done: the guest reads the end, and what it writes from now on is answered
        by a reset. Every end is closed in the end, by this or by `fail`."""
        if self._to_guest is None:
            self.fail(Errno.ECONNREFUSED)
        else:
            self.finish()
            self._give_back()

    def _give_back(self) -> None:
        """Give back what this end holds of the sandbox, and part from the socket."""
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
        """Never: a host that wants no more closes this end."""
        return False

    @property
    def takes_urgent_inline(self) -> bool:
        """An urgent byte stays in the stream."""
        return True

    def left(self, *, reset: bool) -> None:
        """The guest has closed its socket."""
        self._socket = None
        self.was_reset = reset
        if reset and self._from_guest is not None:
            self._from_guest.discard()
        self.changed.wake()
