"""Connections from this machine to servers in a sandbox.

Owns `PortForwarding`, one per machine, made when it is first used. Rules: a connection of the host
(a socket of its own, or an accepted one) is joined to a listening socket of the guest, and the
poller moves the bytes (`OutsideStream`). The number of connections is bounded; one that moves no
byte for long is closed; all are reset when the sandbox is closed. It refers to the kernel and its
lock, never to the machine, which can be garbage-collected meanwhile.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import (
    PORT_BACKLOG_SECONDS,
    PORT_CONNECTIONS_MAX,
    PORT_IDLE_SECONDS,
)
from wasmsand.kernel.sockets.inbound import (
    Listening,
    connect_inbound,
    is_listening,
    listening_ports,
)
from wasmsand.kernel.wait import WouldBlock
from wasmsand.machine.network.events import EventLog, NetworkEvent
from wasmsand.machine.network.listening import LOCAL_HOST
from wasmsand.machine.network.moving import MovingStream
from wasmsand.machine.network.poller import Connected, Poller, poller
from wasmsand.machine.network.streams import OutsideStream
from wasmsand.machine.parking import Parker

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.machine.lock import SandboxLock

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""


class PortForwarding:
    """The way to the servers of one sandbox."""

    def __init__(self, kernel: Kernel, lock: SandboxLock, log: EventLog) -> None:
        """`log` gets an event for each connection."""
        self.lock = lock
        self._log = log
        self._kernel = kernel
        self._network = kernel.network
        self._poller: Poller = poller()
        # Guarded by the sandbox's lock:
        self._streams: dict[MovingStream, float] = {}
        """The open connections, and when each last moved a byte."""
        self._closed = False
        self._arrivals = _Arrivals(self, self._poller)
        self._idle_check = _IdleCheck(self, self._poller)

    @property
    def connections(self) -> int:
        """The number of connections, including those that wait for the guest's backlog."""
        return len(self._streams) + self._arrivals.count

    def has_room(self) -> bool:
        """Whether there may be another connection."""
        return self.connections < PORT_CONNECTIONS_MAX

    def listening(self) -> list[Listening]:
        """The guest's listeners."""
        with self.lock:
            return listening_ports(self._network)

    def wait(self, port: int, timeout_seconds: float | None) -> bool:
        """Wait until a program listens on `port`; False if none does in time. ESRCH if the sandbox
        is closed."""
        clock = self._kernel.clock
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self.lock, clock)
        with self.lock:
            while True:
                self._require_open()
                if is_listening(self._network, port):
                    return True
                if deadline is not None and clock.monotonic() >= deadline:
                    return False
                parker.park((self._network.listening,), deadline)

    def connect(self, port: int, timeout_seconds: float | None = None) -> socket.socket:
        """A new connection to `port`: a socket of this machine whose other end is the guest's.
        See `attach`."""
        mine, guests = socket.socketpair()
        try:
            self.attach(port, guests, timeout_seconds)
        except BaseException:
            mine.close()
            raise
        return mine

    def attach(self, port: int, host: socket.socket, timeout_seconds: float | None) -> None:
        """Connect `host`, which is owned from now on, to the guest's `port`.

        ECONNREFUSED if nobody listens; ETIMEDOUT if the backlog stays full; EMFILE if there are too
        many connections; ESRCH if the sandbox is closed.
        """
        clock = self._kernel.clock
        if timeout_seconds is None or timeout_seconds > PORT_BACKLOG_SECONDS:
            timeout_seconds = PORT_BACKLOG_SECONDS
        deadline = clock.deadline(timeout_seconds)
        parker = Parker(self.lock, clock)
        try:
            with self.lock:
                if not self._closed and not self.has_room():
                    raise KernelError(
                        Errno.EMFILE,
                        f"{PORT_CONNECTIONS_MAX} connections to ports are open already",
                    )
                while (stream := self.try_connect(port)) is None:
                    if deadline is not None and clock.monotonic() >= deadline:
                        raise KernelError(
                            Errno.ETIMEDOUT,
                            f"the server on port {port} does not accept connections: its backlog "
                            "is full",
                        )
                    parker.park((self._network.listening,), deadline)
        except BaseException:
            host.close()
            raise
        stream.adopt(host)

    def attach_soon(self, port: int, host: socket.socket) -> None:
        """Like `attach`, but do not wait, and reset `host` if the guest cannot be reached."""
        with self.lock:
            is_refused = self._closed or not self.has_room()
            if not is_refused:
                self._arrivals.add(port, host)
        if is_refused:
            self.refused(port, "too many connections")
            reset(host)
        else:
            self._poller.post(self._arrivals)

    def try_connect(self, port: int) -> OutsideStream | None:
        """A connection to the guest, to be given a socket by `adopt`; None if the backlog is full.
        Needs the lock. ECONNREFUSED, ESRCH."""
        self._require_open()
        try:
            end = connect_inbound(self._network, port)
        except WouldBlock:
            return None
        stream = OutsideStream(self, self._poller, end, LOCAL_HOST, port, None)
        self._streams[stream] = time.monotonic()
        self._idle_check.begin()
        return stream

    def wake_for_places(self, arrivals: _Arrivals, wanted: bool) -> None:
        """Whether to wake `arrivals` when a listener may have a place. Needs the lock."""
        if wanted:
            self._network.listening.add(arrivals.wake)
        else:
            self._network.listening.remove(arrivals.wake)

    def refused(self, port: int, reason: str) -> None:
        """A connection to a port of the host did not reach the guest."""
        self._log.add(NetworkEvent("port", False, LOCAL_HOST, port, time.time(), reason))

    def _require_open(self) -> None:
        if self._closed:
            raise KernelError(Errno.ESRCH, "the sandbox was closed")

    def close(self) -> None:
        """Reset all connections, and end all waits; idempotent."""
        with self.lock:
            self._closed = True
            streams = list(self._streams)
            self._network.listening.wake()
        for stream in streams:
            stream.refuse(Errno.ECONNRESET, "the sandbox was closed")
        self._poller.post(self._arrivals)

    def end_idle(self) -> float | None:
        """Close connections that have moved no byte for long. Seconds until the next one may be
        due; None if there is none."""
        now = time.monotonic()
        with self.lock:
            last = dict(self._streams)
        for stream, when in last.items():
            if now - when >= PORT_IDLE_SECONDS:
                stream.refuse(Errno.ETIMEDOUT, f"no byte moved for {PORT_IDLE_SECONDS} seconds")
        if not last:
            return None
        return max(1.0, min(last.values()) + PORT_IDLE_SECONDS - now)

    # What `OutsideStream` asks of its owner.

    def spend(self, stream: MovingStream, *, sent: int = 0, received: int = 0) -> None:
        """Bytes have moved."""
        if stream in self._streams:
            self._streams[stream] = time.monotonic()

    def ended(self, stream: MovingStream, reason: str) -> None:
        """A connection has ended."""
        with self.lock:
            self._streams.pop(stream, None)
            is_last = not self._streams
        duration_ms = (time.time() - stream.began) * 1000
        self._log.add(
            NetworkEvent(
                "port",
                not stream.was_refused,
                LOCAL_HOST,
                stream.port,
                stream.began,
                reason,
                sent=stream.sent,
                received=stream.received,
                duration_ms=duration_ms,
            )
        )
        if is_last:
            self._poller.post(self._idle_check)


class _Arrivals(Connected):
    """Accepted connections on their way to the guest's listeners, in their order."""

    def __init__(self, owner: PortForwarding, poller: Poller) -> None:
        self._owner = owner
        self._poller = poller
        # Guarded by the sandbox's lock:
        self._waiting: dict[int, deque[tuple[socket.socket, float]]] = {}
        """By port: connections, and until when each of them waits."""
        self.count = 0

    def __repr__(self) -> str:
        return f"<{self.count} connections for ports>"

    def add(self, port: int, host: socket.socket) -> None:
        """Needs the lock."""
        until = time.monotonic() + PORT_BACKLOG_SECONDS
        self._waiting.setdefault(port, deque()).append((host, until))
        self.count += 1

    def wake(self) -> None:
        """A listener has changed; called within a guest's system call."""
        self._poller.post(self)

    def step(self) -> None:
        """See `Connected`."""
        joined: list[tuple[OutsideStream, socket.socket]] = []
        refused: list[tuple[int, socket.socket, str]] = []
        with self._owner.lock:
            for port, waiting in list(self._waiting.items()):
                self._serve(port, waiting, joined, refused)
                if not waiting:
                    del self._waiting[port]
            self.count = sum(map(len, self._waiting.values()))
            first = min((waiting[0][1] for waiting in self._waiting.values()), default=None)
            self._owner.wake_for_places(self, self.count > 0)
        for stream, host in joined:
            stream.adopt(host)
        for port, host, reason in refused:
            self._owner.refused(port, reason)
            reset(host)
        self._poller.call_at(self, None if first is None else max(0.0, first - time.monotonic()))

    def _serve(
        self,
        port: int,
        waiting: deque[tuple[socket.socket, float]],
        joined: list[tuple[OutsideStream, socket.socket]],
        refused: list[tuple[int, socket.socket, str]],
    ) -> None:
        """Join connections to the guest's listener while it has places, and give up those that
        have waited too long. Needs the lock."""
        while waiting:
            host, until = waiting[0]
            reason = f"the server on port {port} does not accept connections: its backlog is full"
            stream = None
            try:
                stream = self._owner.try_connect(port)
            except KernelError as error:
                reason = error.detail
            else:
                if stream is None and time.monotonic() < until:
                    return
            waiting.popleft()
            if stream is None:
                refused.append((port, host, reason))
            else:
                joined.append((stream, host))

    def give_up(self) -> None:
        """See `Connected`."""
        with self._owner.lock:
            self._owner.wake_for_places(self, False)
            hosts = [host for waiting in self._waiting.values() for host, _ in waiting]
            self._waiting.clear()
            self.count = 0
        self._poller.forget(self, None)
        for host in hosts:
            reset(host)


class _IdleCheck(Connected):
    """Looks for idle connections of one sandbox, while there are connections."""

    def __init__(self, owner: PortForwarding, poller: Poller) -> None:
        self._owner = owner
        self._poller = poller
        self._active = False

    def begin(self) -> None:
        """There is a connection. Needs the sandbox's lock."""
        if not self._active:
            self._active = True
            self._poller.post(self)

    def step(self) -> None:
        """See `Connected`."""
        with self._owner.lock:
            self._active = bool(self._owner.connections)
        self._poller.call_at(self, self._owner.end_idle() if self._active else None)

    def give_up(self) -> None:
        """See `Connected`."""
        self._poller.forget(self, None)


def reset(host: socket.socket) -> None:
    """Close a connection so that the other side sees a reset."""
    try:
        host.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    except OSError:
        pass  # not a TCP socket
    host.close()
