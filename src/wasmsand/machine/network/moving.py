"""Bytes that move between a guest and a socket of the host.

Owns `MovingStream`. It runs on the poller's thread; only `refuse` is called by others. Rules: bytes
wait in the kernel's channels, which are bounded and charged to the sandbox, or in the operating
system; this object holds none, unless the sandbox's memory is used up, or an inspector made them.
If one side does not read, the other side waits. A half-closed connection stays half-closed, a reset
is passed on.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from enum import Enum
from typing import Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.network.poller import Connected, Poller

_PIECE: Final = 128 * 1024
"""Most bytes moved in one direction between two looks at the other."""
_PIECES_PER_STEP: Final = 4
"""Pieces moved before other connections get their turn."""
_RETRY_SECONDS: Final = 0.05
"""When to try again if the sandbox's memory is used up."""
_LINGER_SECONDS: Final = 60.0
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection."""
_TOLD: Final = {
    errno.ECONNREFUSED: Errno.ECONNREFUSED,
    errno.ECONNRESET: Errno.ECONNRESET,
    errno.EPIPE: Errno.ECONNRESET,
    errno.ETIMEDOUT: Errno.ETIMEDOUT,
    errno.EHOSTUNREACH: Errno.EHOSTUNREACH,
    errno.ENETUNREACH: Errno.ENETUNREACH,
}
"""Errors of the host that a guest is told as they are; others are EHOSTUNREACH."""


class Phase(Enum):
    """What the stream is waiting for."""

    PREPARING = "the name is looked up"
    CONNECTING = "the host connects"
    TUNNELLING = "the proxy connects"
    OPEN = "bytes move"
    OVER = "everything is released"


class Inspector(Protocol):
    """What stands between guest and server if requests have to be seen (`inspecting`). It does no
    input or output: it is told what came from one side, and asked what to send to the other."""

    @property
    def wants_guest(self) -> bool:
        """Whether it can take more from the guest."""

    @property
    def wants_server(self) -> bool:
        """Whether it can take more from the server."""

    @property
    def has_more(self) -> bool:
        """Whether `go_on` can do something at once. Each call does a bounded amount of work."""

    @property
    def guest_done(self) -> bool:
        """Whether nothing more will be sent to the guest."""

    @property
    def server_done(self) -> bool:
        """Whether nothing more will be sent to the server."""

    @property
    def server_has_all(self) -> bool:
        """Whether nothing waits for the server."""

    @property
    def failure(self) -> Errno | None:
        """The error with which both sides are reset."""

    def guest_sent(self, data: bytes) -> None:
        """Data came from the guest."""

    def guest_ended(self) -> None:
        """The guest will send no more."""

    def server_sent(self, data: bytes) -> None:
        """Data came from the server."""

    def server_ended(self) -> None:
        """The server will send no more."""

    def go_on(self) -> None:
        """Something was taken, or there is more to do."""

    def abandon(self, reason: str) -> None:
        """Both sides are closed."""

    def for_guest(self) -> bytes:
        """Take what is to be sent to the guest."""

    def for_server(self) -> bytes:
        """Take what is to be sent to the server."""


class StreamOwner(Protocol):
    """Who made a stream: what is connected (`connecting`), or what is let in (`forwarding`)."""

    @property
    def lock(self) -> SandboxLock:
        """The sandbox's lock."""

    def spend(self, stream: MovingStream, *, sent: int = 0, received: int = 0) -> None:
        """Bytes have moved."""

    def ended(self, stream: MovingStream, reason: str) -> None:
        """The stream is over."""


class MovingStream(Connected):
    """A connection between a guest and a socket of the host."""

    def __init__(
        self,
        outgoing: StreamOwner,
        poller: Poller,
        end: OutsideEnd,
        host: str,
        port: int,
        job: int | None,
    ) -> None:
        """Needs the sandbox's lock."""
        self.host, self.port, self.job = host, port, job
        self.phase = Phase.PREPARING
        self.sent = self.received = 0
        self.began = time.time()
        self.address = ""
        self.was_refused = False
        """Whether the bridge ended it."""
        self.is_inspected = False
        self._outgoing = outgoing
        self._lock = outgoing.lock
        self._poller = poller
        self._end = end
        self._inspector: Inspector | None = None
        self._socket: socket.socket | None = None
        self._refusal: tuple[Errno, str] | None = None
        self._room = 0
        """Bytes that the guest's queue can take; it may have become more."""
        self._waits_for_room = False
        self._kept = b""
        """Bytes for the guest for which the sandbox had no memory, or which an inspector made."""
        self._to_server = b""
        """Bytes that an inspector made for the server."""
        self._waits_for_server = False
        """Whether the guest has written more than the server takes now."""
        self._server_ended = self._told_guest = self._told_server = False
        self._told_inspector = False
        self._linger_until: float | None = None
        """When the guest has closed its socket: how long the server may take to read the rest."""
        end.changed.add(self._guest_acted)

    def __repr__(self) -> str:
        return f"<connection to {self.host}:{self.port}, {self.phase.value}>"

    def _guest_acted(self) -> None:
        """The guest has acted; called within its system call."""
        end = self._end
        # A little room is not worth a turn: fewer, larger steps take a fraction of the time.
        if (self._waits_for_room and end.has_much_room) or end.has_news:
            self._poller.post(self)

    def refuse(self, error: Errno, reason: str) -> None:
        """End the connection with an error. From any thread."""
        self._refusal = (error, reason)
        self._poller.post(self)

    def _move(self) -> None:
        if self._end.was_reset:
            self._finish("the guest reset it", reset=True)
            return
        try:
            for _ in range(_PIECES_PER_STEP):
                moved = self._guest_to_server()
                moved |= self._server_to_guest()
                if self._is_done() or self._refusal is not None:
                    return  # a refusal has posted this stream
                if not moved:
                    break
            else:
                self._poller.post(self)
                return
        except OSError as error:
            self._fail_with(error.errno or errno.ECONNRESET)
            return
        self._watch()

    def _watch(self) -> None:
        """Wait for what can go on next."""
        host, inspector = self._socket, self._inspector
        assert host is not None
        if inspector is None:
            read, write = not self._waits_for_room, self._waits_for_server
        else:
            read, write = inspector.wants_server and not self._kept, bool(self._to_server)
        self._poller.watch(self, host, read=read and not self._server_ended, write=write)
        if self._end.is_gone and self._linger_until is None:
            self._linger_until = time.monotonic() + _LINGER_SECONDS
            self._poller.call_at(self, _LINGER_SECONDS)

    def _guest_to_server(self) -> bool:
        """Move a piece; whether there may be more."""
        if self._inspector is not None:
            return self._inspect_guest(self._inspector)
        host, end = self._socket, self._end
        assert host is not None
        with self._lock:
            data = end.peek(_PIECE)
            at_end = end.at_end
        self._waits_for_server = False
        if not data:
            if at_end and not self._told_server:
                self._shut_down()
            return False
        try:
            count = host.send(data)
        except BlockingIOError:
            self._waits_for_server = True
            return False
        with self._lock:
            end.take(count)
        self._count_sent(count)
        self._waits_for_server = count < len(data)
        return not self._waits_for_server

    def _server_to_guest(self) -> bool:
        """Move a piece; whether there may be more."""
        if self._inspector is not None:
            return self._inspect_server(self._inspector)
        if self._kept:
            return self._give(self._kept)
        if self._server_ended:
            return False
        if not self._room and not self._look_for_room():
            return False
        data = self._receive(min(self._room, _PIECE))
        if data is None:
            return False
        if not data:
            self._tell_guest()
            return False
        return self._give(data)

    def _look_for_room(self) -> bool:
        with self._lock:
            self._room = self._end.room
            self._waits_for_room = not self._room
        return bool(self._room)

    def _receive(self, count: int) -> bytes | None:
        """What the server has sent; None if nothing now, empty at its end."""
        assert self._socket is not None
        try:
            data = self._socket.recv(count)
        except BlockingIOError:
            return None
        if not data:
            self._server_ended = True
        self._count_received(len(data))
        return data

    def _give(self, data: bytes) -> bool:
        """Give data to the guest, and keep what it cannot take."""
        with self._lock:
            try:
                count = self._end.give(data)
            except KernelError:  # the sandbox's memory is used up
                count = 0
                self._poller.call_at(self, _RETRY_SECONDS)
            self._room = self._end.room
            self._kept = data[count:]
            self._waits_for_room = bool(self._kept)
            if self._end.is_gone:
                self._kept = b""
        return count > 0

    # Through an inspector.

    def _inspect_guest(self, inspector: Inspector) -> bool:
        host, end = self._socket, self._end
        assert host is not None
        moved = False
        inspector.go_on()
        if inspector.wants_guest:
            with self._lock:
                data = end.take(_PIECE)
                at_end = end.at_end
            if data:
                inspector.guest_sent(data)
                moved = True
            elif at_end and not self._told_inspector:
                self._told_inspector = True
                inspector.guest_ended()
        if not self._to_server:
            self._to_server = inspector.for_server()
        if self._to_server:
            try:
                count = host.send(self._to_server)
            except BlockingIOError:
                return moved or inspector.has_more
            self._to_server = self._to_server[count:]
            self._count_sent(count)
            return True
        if inspector.server_done and not self._told_server:
            self._shut_down()
        return moved or inspector.has_more

    def _inspect_server(self, inspector: Inspector) -> bool:
        moved = False
        if inspector.wants_server and not self._server_ended:
            data = self._receive(_PIECE)
            if data:
                inspector.server_sent(data)
                moved = True
            elif data is not None:
                inspector.server_ended()
        if not self._kept:
            self._kept = inspector.for_guest()
        if self._kept:
            return self._give(self._kept) or moved
        if inspector.guest_done:
            self._tell_guest()
        if inspector.failure is not None:
            self._fail(inspector.failure, "the inspection failed")
        return moved

    # Ends.

    def _shut_down(self) -> None:
        """The guest will send no more."""
        assert self._socket is not None
        self._told_server = True
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server has closed the connection already

    def _tell_guest(self) -> None:
        """The server will send no more."""
        if not self._told_guest:
            self._told_guest = True
            with self._lock:
                self._end.finish()

    def _is_done(self) -> bool:
        """End the connection if nothing is left to move."""
        if self.phase is Phase.OVER:
            return True
        end = self._end
        if end.is_gone and (self._told_server or self._has_no_reader()):
            self._finish("")
            return True
        # A guest that is still sending has to be able to read why it was refused.
        reads_on = self._inspector is not None and self._inspector.wants_guest
        if self._told_guest and self._told_server and not reads_on:
            self._finish("")
            return True
        if self._linger_until is not None and time.monotonic() >= self._linger_until:
            self._finish("the server did not read what was sent last", reset=True)
            return True
        return False

    def _has_no_reader(self) -> bool:
        """Whether the server has everything that a guest sent before it left, so that an inspector
        would read the response for nobody."""
        inspector = self._inspector
        return (
            inspector is not None
            and self._told_inspector
            and inspector.server_has_all
            and not self._to_server
        )

    def _count_sent(self, count: int) -> None:
        self.sent += count
        self._outgoing.spend(self, sent=count)

    def _count_received(self, count: int) -> None:
        self.received += count
        self._outgoing.spend(self, received=count)

    def _fail_with(self, number: int) -> None:
        name = errno.errorcode.get(number, str(number))
        self._fail(_TOLD.get(number, Errno.EHOSTUNREACH), name)

    def _fail(self, error: Errno, reason: str) -> None:
        """The connection failed: tell the guest, and release everything."""
        if self.phase is not Phase.OVER:
            with self._lock:
                self._end.fail(error)
            self._release(reason, reset=True)

    def _finish(self, reason: str, *, reset: bool = False) -> None:
        if self.phase is not Phase.OVER:
            with self._lock:
                self._end.close()
            self._release(reason, reset=reset)

    def _release(self, reason: str, *, reset: bool) -> None:
        self.phase = Phase.OVER
        self._kept = self._to_server = b""
        inspector, self._inspector = self._inspector, None
        if inspector is not None:
            inspector.abandon(reason or "the guest has closed the connection")
        if reset and self._socket is not None:
            try:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            except OSError:
                pass
        self._close_socket()
        self._poller.forget(self, None)
        self._outgoing.ended(self, reason)

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._poller.forget(self, self._socket)
            self._socket.close()
            self._socket = None
