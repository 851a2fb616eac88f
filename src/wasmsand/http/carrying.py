"""Ports of this machine that lead to a sandbox on a server.

Owns `Carriers`. Rules: each connection is a stream through the server, carried by two threads of
this process; their number is bounded. A connection whose stream cannot be opened is closed. If the
server reads no more, what it has sent still reaches the client.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Final

from wasmsand.sdk.errors import PortError, SandboxError
from wasmsand.sdk.ports import PortStream

_CARRIED_MAX: Final = 64
_PIECE: Final = 65_536


class Carriers:
    """Carries accepted connections. It must not refer to the backend, which may be collected."""

    def __init__(self, connect: Callable[[int], socket.socket]) -> None:
        """`connect` opens a stream to a port of the sandbox."""
        self._connect = connect
        self._lock = threading.Lock()
        self._count = 0  # guarded by the lock

    def has_room(self) -> bool:
        """Whether another connection can be carried."""
        return self._count < _CARRIED_MAX

    def __call__(self, port: int, connection: socket.socket) -> None:
        """Carry a connection, and own it. Does not wait."""
        with self._lock:
            self._count += 1
        try:
            _thread(self._carry, port, connection).start()
        except RuntimeError:  # no thread available
            connection.close()
            with self._lock:
                self._count -= 1

    def _carry(self, port: int, connection: socket.socket) -> None:
        try:
            connection.setblocking(True)
            with connection, PortStream(self._connect(port), port) as stream:
                upward = _thread(_to_server, connection, stream)
                upward.start()
                _to_client(stream, connection)
                upward.join()
        except (OSError, SandboxError):
            pass  # no stream: the client's connection is closed
        finally:
            connection.close()
            with self._lock:
                self._count -= 1


def _thread(work: Callable[..., None], *arguments: object) -> threading.Thread:
    return threading.Thread(target=work, args=arguments, name="wasmsand-carrier", daemon=True)


def _to_server(connection: socket.socket, stream: PortStream) -> None:
    """Carry what the client sends, until it ends or the server reads no more."""
    try:
        while data := connection.recv(_PIECE):
            stream.write(data)
        stream.finish()
    except PortError:
        pass  # the stream stays open for the answer; over https, it cannot be finished
    except OSError:
        stream.close()


def _to_client(stream: PortStream, connection: socket.socket) -> None:
    """Carry what the server sends, until it ends."""
    try:
        while data := stream.read(_PIECE):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    except (OSError, PortError):
        _end(connection)
        stream.close()


def _end(connection: socket.socket) -> None:
    """End the calls of both threads."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # not connected any more
