"""Ports of this machine that lead to a sandbox.

Owns `HostListener`, a listening socket on 127.0.0.1, and `HostListeners`, those of one sandbox.
Rules: a port is opened only if the user asks for it, and only on 127.0.0.1. Accepted connections go
to `deliver`, on the poller's thread; while there is no room for one, it waits in the system's
queue. All listeners close with their sandbox.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import FORWARDS_MAX, PORT_BACKLOG
from wasmsand.machine.network.poller import Connected, Poller, poller

LOCAL_HOST: Final = "127.0.0.1"
_ACCEPTED_PER_STEP: Final = 16
"""Connections accepted before other sockets get their turn."""
_RETRY_SECONDS: Final = 0.1
"""When to look again for room, or for a free descriptor."""
_GONE: Final = (errno.ECONNABORTED, errno.EPROTO, errno.EINTR)
"""Errors of accept(2) about a single connection."""

Deliver = Callable[[int, socket.socket], None]
"""Takes an accepted connection to a port of the sandbox, and owns it from then on. Must not
wait."""


class HostListener(Connected):
    """A port of this machine that leads to a port of a sandbox."""

    def __init__(
        self, port: int, host_port: int, deliver: Deliver, has_room: Callable[[], bool]
    ) -> None:
        """Raises `KernelError` if the port of this machine cannot be opened."""
        self.port = port
        self._deliver = deliver
        self._has_room = has_room
        self._closing = False
        self._socket: socket.socket | None = _listen(host_port)
        self.host_port: int = self._socket.getsockname()[1]
        self._poller: Poller = poller()
        self._poller.post(self)

    def __repr__(self) -> str:
        return f"<port {self.host_port} of this machine for port {self.port} of a sandbox>"

    def close(self) -> None:
        """Stop listening; idempotent, from any thread. Connections stay open."""
        self._closing = True
        self._poller.post(self)

    def step(self) -> None:
        """See `Connected`."""
        listener = self._socket
        if listener is None:
            return
        if self._closing:
            self.give_up()
            return
        for _ in range(_ACCEPTED_PER_STEP):
            if not self._has_room():
                self._pause(listener)
                return
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _GONE:
                    continue
                self._pause(listener)  # no free descriptor, or no memory
                return
            self._deliver(self.port, connection)
        self._poller.watch(self, listener, read=True, write=False)

    def _pause(self, listener: socket.socket) -> None:
        self._poller.watch(self, listener, read=False, write=False)
        self._poller.call_at(self, _RETRY_SECONDS)

    def give_up(self) -> None:
        """See `Connected`."""
        listener, self._socket = self._socket, None
        self._poller.forget(self, listener)
        if listener is not None:
            listener.close()


def _listen(host_port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere the option would let others take the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOCAL_HOST, host_port))
        listener.listen(PORT_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        known = error.errno in (errno.EADDRINUSE, errno.EACCES)
        name = errno.errorcode[error.errno] if known and error.errno is not None else "EADDRINUSE"
        raise KernelError(
            Errno[name],
            f"port {host_port} of this machine cannot be opened ({error.strerror}); choose "
            "another host_port, or leave it out",
        ) from None
    return listener


class HostListeners:
    """The listeners of one sandbox, by port of the sandbox."""

    def __init__(self, deliver: Deliver, has_room: Callable[[], bool]) -> None:
        self._deliver = deliver
        self._has_room = has_room
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._listeners: dict[int, HostListener] = {}
        self._closed = False

    def open(self, port: int, host_port: int | None) -> int:
        """The port of this machine that leads to `port`. It is opened if there is none, or if
        there is another one than `host_port`. EMFILE, EADDRINUSE, EACCES; ESRCH after `close`."""
        with self._lock:
            if self._closed:
                raise KernelError(Errno.ESRCH, "the sandbox was closed")
            found = self._listeners.get(port)
            if found is not None and host_port in (None, found.host_port):
                return found.host_port
            if found is None and len(self._listeners) >= FORWARDS_MAX:
                raise KernelError(
                    Errno.EMFILE, f"{FORWARDS_MAX} ports are open already; close one first"
                )
            opened = HostListener(port, host_port or 0, self._deliver, self._has_room)
            self._listeners[port] = opened
        if found is not None:
            found.close()
        return opened.host_port

    def close_port(self, port: int) -> bool:
        """Close the port of this machine that leads to `port`; False if there is none."""
        with self._lock:
            found = self._listeners.pop(port, None)
        if found is not None:
            found.close()
        return found is not None

    def opened(self) -> dict[int, int]:
        """The ports of this machine, by port of the sandbox."""
        with self._lock:
            return {port: found.host_port for port, found in self._listeners.items()}

    def close(self) -> None:
        """Close all; idempotent."""
        with self._lock:
            self._closed = True
            found = list(self._listeners.values())
            self._listeners.clear()
        for listener in found:
            listener.close()
