"""Stream sockets: Unix stream sockets and TCP.

Owns `StreamSocket`: listen, connect and accept; established connections are in `connection.py`.
Rules: a connection exists before it is accepted. If the listener's queue is full, a TCP socket
waits for a place in it. A failed connect(2) leaves the socket as it was before the call, and the
error is reported once. A connection to the outside has an `OutsideEnd` as its peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_NONBLOCK, POLLIN, POLLRDNORM
from wasmsand.kernel.sockets.accept_queue import AcceptQueue
from wasmsand.kernel.sockets.address import Address, InetAddress, UnixAddress, any_address
from wasmsand.kernel.sockets.base import Owner, Socket
from wasmsand.kernel.sockets.channel import Channel
from wasmsand.kernel.sockets.connection import Connection, State, join
from wasmsand.kernel.sockets.outside import Outside, OutsideEnd
from wasmsand.kernel.wait import WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.network import Network


class StreamSocket(Connection):
    """One end of a connection, or a listening socket."""

    __slots__ = ("_accepting", "_bound", "_waits_at")

    def __init__(
        self, network: Network, family: int, protocol: int, owner: Owner, flags: int
    ) -> None:
        super().__init__(network, family, protocol, owner, flags)
        self._accepting: AcceptQueue | None = None
        """If listening: the connections waiting to be accepted."""
        self._waits_at: AcceptQueue | None = None
        """If connecting: the full queue in which it waits for a place."""
        self._bound: InetAddress | None = None
        """If connecting: the value of `local` before the call."""

    @property
    def listening(self) -> bool:
        """Whether listen(2) was called."""
        return self.state is State.LISTENING

    def bind_inet(self, address: InetAddress) -> None:
        """Bind to an Internet address."""
        self.local = self.network.tcp.bind(self, address)

    # Listening.

    def listen(self, backlog: int) -> None:
        if self.state not in (State.FRESH, State.LISTENING):
            raise KernelError(Errno.EINVAL)
        if self.local is None:
            if self.is_unix:
                raise KernelError(Errno.EINVAL)
            self.network.bind_any(self, self.network.tcp)
        self.state = State.LISTENING
        if self._accepting is None:
            self._accepting = AcceptQueue()
        self._accepting.set_limit(backlog)
        self.network.listening.wake()

    def accept(self, nonblocking: bool) -> StreamSocket:
        queue = self._accepting
        if queue is None or not self.listening:
            raise KernelError(Errno.EINVAL)
        self.raise_error()
        if not queue.ready:
            if self.shut_read:
                raise KernelError(Errno.EINVAL)
            raise self.block(nonblocking)
        was_full = queue.is_full
        accepted = queue.ready.popleft()
        while not queue.is_full:
            client = queue.next_waiting()
            if client is None:
                break
            client._waits_at = None
            client._meet_or_fail(self, queue)
        self.changed.wake()
        if was_full:
            self.network.listening.wake()
        return accepted

    def kept_open(self) -> Iterable[OpenFile]:
        return () if self._accepting is None else self._accepting.ready

    # Connecting.

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
        queue = target._accepting
        assert queue is not None
        if queue.is_full:
            raise self.block(False, target.changed)
        self.remote = address
        try:
            self._meet(target, queue)
        except KernelError:
            self.remote = None
            raise
        self.state = State.CONNECTED

    def _connect_inet(self, address: InetAddress) -> None:
        route = self.network.route(address)
        before = self.local
        assert before is None or isinstance(before, InetAddress)
        local = route.local_for(before or any_address(self.family), self.family)
        if before is None:
            local = self.network.tcp.bind(self, local)
        self._bound, self.local = before, local
        self.remote = route.destination.as_family(self.family)
        self.state = State.CONNECTING
        if route.outside is None:
            self._connect_inside(route.destination)
        else:
            self._connect_outside(route.outside, route.destination)
        if self.flags & O_NONBLOCK:
            # As on Linux, even if the result is already known, as it is inside the sandbox.
            raise KernelError(Errno.EINPROGRESS)
        self._finish_connecting()

    def _connect_inside(self, to: InetAddress) -> None:
        for listener in self.network.tcp.reaching(to):
            if isinstance(listener, StreamSocket) and listener.listening:
                break
        else:
            self.fail_connecting(Errno.ECONNREFUSED)
            return
        queue = listener._accepting
        assert queue is not None
        if not queue.is_full:
            self._meet_or_fail(listener, queue)
        elif queue.wait(self):
            self._waits_at = queue
        else:
            self.fail_connecting(Errno.ETIMEDOUT)  # as on Linux when a listener drops the request

    def _connect_outside(self, outside: Outside, to: InetAddress) -> None:
        """Ask the capability for a connection; raise an immediate refusal."""
        try:
            self.peer = end = OutsideEnd(self.network, self)
        except KernelError:
            self._stop_connecting()
            raise
        try:
            outside.connect_stream(to, end)
        except KernelError as error:
            end.fail(error.errno)
            self.raise_error()

    def _finish_connecting(self) -> None:
        """Report the result of the connection attempt, or wait for it."""
        if self.rx is not None:
            self.state = State.CONNECTED if self.error is None else State.RESET
            self.raise_error()
            return
        self.raise_error()
        if self.flags & O_NONBLOCK:
            raise KernelError(Errno.EALREADY)
        raise WouldBlock((self.changed,))

    def establish(self, rx: Channel, tx: Channel) -> None:
        """The connection to the outside is established."""
        self.rx, self.tx = rx, tx
        self.changed.wake()

    def fail_connecting(self, error: Errno) -> None:
        """The connection attempt failed; the next call reports `error`."""
        self._stop_connecting()
        self.fail_with(error)

    def _stop_connecting(self) -> None:
        assert isinstance(self.local, InetAddress)
        if self._bound is None:
            self.network.tcp.release(self, self.local.port)
        self.local, self._bound = self._bound, None
        self.remote = None
        self.state = State.FRESH

    def _meet_or_fail(self, listener: StreamSocket, queue: AcceptQueue) -> None:
        """Like `_meet`, but an error fails the connection attempt."""
        try:
            self._meet(listener, queue)
        except KernelError as error:
            self.fail_connecting(error.errno)

    def _meet(self, listener: StreamSocket, queue: AcceptQueue) -> None:
        """Create the other end of this socket, for `listener` to accept. ENOBUFS, ENFILE."""
        other = listener._new_connection()
        if isinstance(self.local, InetAddress) and isinstance(self.remote, InetAddress):
            other.local = self.remote.plain().as_family(listener.family)
            other.remote = self.local.plain().as_family(listener.family)
            self.network.tcp.share(other, self.remote.port)
        else:
            other.local = listener.local
            other.remote = self.name()
        join(self, other)
        other.state = State.CONNECTED
        queue.ready.append(other)
        listener.changed.wake()
        self.changed.wake()

    def _new_connection(self) -> StreamSocket:
        """For a listener: a charged socket with the listener's options. ENOBUFS, ENFILE."""
        other = StreamSocket(self.network, self.family, self.protocol, self.owner, 0)
        other.enter(self.network.ledger, Errno.ENOBUFS)
        try:
            other.inherit_options(self)
        except KernelError:
            other.dispose()
            raise
        return other

    def admit_host(self, at: InetAddress, source: InetAddress) -> OutsideEnd:
        """For a listener: a connection from the host, which reaches it at `at`; the guest sees
        `source` as the other end. `WouldBlock` if the backlog is full; ENOBUFS, ENFILE."""
        queue = self._accepting
        assert queue is not None
        if queue.is_full:
            raise WouldBlock((self.network.listening,))
        other = self._new_connection()
        try:
            other.peer = end = OutsideEnd(self.network, other)
        except KernelError:
            other.dispose()
            raise
        other.local, other.remote = at.as_family(self.family), source.as_family(self.family)
        self.network.tcp.share(other, at.port)
        end.establish()
        other.state = State.CONNECTED
        queue.ready.append(other)
        self.changed.wake()
        return end

    # Like `Connection`, plus what a listener does.

    def shutdown(self, read: bool, write: bool) -> None:
        if self.listening and not self.is_unix:
            if read:
                self.state = State.FRESH
                self._refuse_waiting()
                self.changed.wake()
            return
        super().shutdown(read, write)

    def release(self) -> None:
        if self._accepting is not None:
            self._refuse_waiting()
        if self._waits_at is not None:
            self._waits_at.leave(self)
            self._waits_at = None
        super().release()

    def _refuse_waiting(self) -> None:
        """Reset connections that nobody will accept, and refuse sockets that wait for a place."""
        queue = self._accepting
        if queue is None:
            return
        self.network.listening.wake()
        while queue.ready:
            connection = queue.ready.popleft()
            peer, connection.peer = connection.peer, None
            if peer is not None:
                peer.left(reset=True)
            connection.dispose()
        while (client := queue.next_waiting()) is not None:
            client._waits_at = None
            client.fail_connecting(Errno.ECONNREFUSED)

    def readable_bytes(self) -> int:
        if self.listening:
            raise KernelError(Errno.EINVAL)
        return super().readable_bytes()

    def poll(self) -> int:
        if self.state is State.LISTENING:
            assert self._accepting is not None
            return POLLIN | POLLRDNORM if self._accepting.ready else 0
        return super().poll()


def socket_pair(one: StreamSocket, two: StreamSocket) -> None:
    """socketpair(2)."""
    join(one, two)
    one.state = two.state = State.CONNECTED
    one.remote = two.remote = UnixAddress()
