"""A guest's connection to a host outside.

Owns `OutsideStream`: connecting to one of the addresses that were decided, through a proxy or not.
`moving.py` has the rest of its life. Rules: it runs on the poller's thread; only `connect`, `adopt`
and `refuse` are called by others. The guest never learns an address that it did not ask for.
"""

from __future__ import annotations

import errno
import socket
import time
from typing import Final

from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import NETWORK_CONNECT_SECONDS
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.network.moving import Inspector, MovingStream, Phase, StreamOwner
from wasmsand.machine.network.poller import Poller
from wasmsand.machine.network.proxy import ProxyFailed, Tunnel

_PENDING: Final = (errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK)


class OutsideStream(MovingStream):
    """One connection of a guest."""

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
        super().__init__(outgoing, poller, end, host, port, job)
        self._candidates: list[tuple[str, int]] = []
        self._tunnel: Tunnel | None = None
        self._target = ("", 0)
        self._connect_until = 0.0

    # From other threads.

    def connect(
        self,
        candidates: list[tuple[str, int]],
        inspector: Inspector | None = None,
        tunnel: Tunnel | None = None,
    ) -> None:
        """Connect to one of these addresses, which are allowed. From any thread, once."""
        self._candidates, self._inspector, self._tunnel = candidates, inspector, tunnel
        self._poller.post(self)

    def adopt(self, host: socket.socket) -> None:
        """Use a socket that is connected already; it is closed with the stream. From any thread,
        once, instead of `connect`."""
        host.setblocking(False)
        if host.family in (socket.AF_INET, socket.AF_INET6):
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = host
        self.phase = Phase.OPEN
        self._poller.post(self)

    # On the poller's thread.

    def step(self) -> None:
        """See `Connected`."""
        if self.phase is Phase.OVER:
            return
        if self._refusal is not None:
            self.was_refused = True
            self._fail(*self._refusal)
        elif self._end.is_gone and self.phase is not Phase.OPEN:
            self._finish("the guest has closed it")
        elif self.phase is Phase.PREPARING:
            if self._candidates:
                self._connect_next()
        elif self.phase is Phase.CONNECTING:
            self._go_on_connecting()
        elif self.phase is Phase.TUNNELLING:
            self._go_on_tunnelling()
        else:
            self._move()

    def give_up(self) -> None:
        """See `Connected`."""
        self._fail(Errno.EIO, "a bug of the host; see its log")

    def _connect_next(self) -> None:
        address, port = self._candidates.pop(0)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            host = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self._fail(Errno.ENOBUFS, f"the host has no socket: {error.strerror}")
            return
        self._close_socket()
        self._socket = host
        host.setblocking(False)
        host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = address
        self.phase = Phase.CONNECTING
        self._target = (address, port)
        self._connect_until = time.monotonic() + NETWORK_CONNECT_SECONDS
        self._go_on_connecting()

    def _go_on_connecting(self) -> None:
        host = self._socket
        assert host is not None
        result = host.connect_ex(self._target)
        if result in _PENDING:
            left = self._connect_until - time.monotonic()
            if left > 0:
                self._poller.watch(self, host, read=False, write=True)
                self._poller.call_at(self, left)
                return
            result = errno.ETIMEDOUT
        if result not in (0, errno.EISCONN):
            if self._candidates:
                self._connect_next()
            else:
                self._fail_with(result)
            return
        self._poller.call_at(self, None)
        if self._tunnel is None:
            self._established()
        else:
            self.phase = Phase.TUNNELLING
            self._poller.call_at(self, NETWORK_CONNECT_SECONDS)
            self._go_on_tunnelling()

    def _go_on_tunnelling(self) -> None:
        host, tunnel = self._socket, self._tunnel
        assert host is not None
        assert tunnel is not None
        if time.monotonic() > self._connect_until:
            self._fail(Errno.ETIMEDOUT, "the proxy does not answer")
            return
        try:
            while tunnel.to_send:
                tunnel.was_sent(host.send(tunnel.to_send))
            while not tunnel.is_open:
                # One byte too many would belong to the other side of the tunnel.
                tunnel.received(host.recv(tunnel.wanted))
        except BlockingIOError:
            self._poller.watch(self, host, read=not tunnel.to_send, write=bool(tunnel.to_send))
            return
        except ProxyFailed as failure:
            self._fail(Errno.ECONNREFUSED, str(failure))
            return
        except OSError as error:
            self._fail_with(error.errno or errno.ECONNRESET)
            return
        self._poller.call_at(self, None)
        self._established()

    def _established(self) -> None:
        self.phase = Phase.OPEN
        with self._lock:
            self._end.establish()
            self._room = self._end.room
        self._move()
