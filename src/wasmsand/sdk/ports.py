"""Servers in a sandbox, and how their user reaches them: `sandbox.ports`.

Owns `Ports` and `PortStream`. Rules: nothing is reachable unless the user asks for it here.
Arguments are validated here; everything else is the backend's.
"""

from __future__ import annotations

import builtins
import errno
import select
import threading
import time
from typing import TYPE_CHECKING, Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import CANCELLATION
from wasmsand.sdk.errors import PortError, PortTimeoutError, SandboxClosedError
from wasmsand.sdk.results import PortInfo

if TYPE_CHECKING:
    import socket

WAIT_TIMEOUT_MS: Final = 60_000
CONNECT_TIMEOUT_MS: Final = 10_000
READ_BYTES: Final = 65_536
_READ_MAX: Final = 1 << 24
_LONGEST_WAIT_MS: Final = 1_000_000
"""Systems bound the time of a wait. Waking up early only costs another wait."""
_NOT_READY: Final = ("SSLWantReadError", "SSLWantWriteError")
_SHOWN_PORTS: Final = 8
_STEP_SECONDS: Final = 1.0


class PortStream:
    """A connection to a server in the sandbox: `sandbox.ports.connect(port)`.

    Example:
        with sandbox.ports.connect(7000) as stream:
            stream.write(b"hello\\n")
            stream.read()
    """

    def __init__(self, connection: socket.socket, port: int) -> None:
        # Several threads may use the stream, with timeouts of their own.
        connection.setblocking(False)
        self._lock = threading.Lock()  # TLS must not read and write at the same moment
        self._connection = connection
        self._port = port

    @property
    def port(self) -> int:
        """The port of the sandbox."""
        return self._port

    def read(self, count: int = READ_BYTES, *, timeout_ms: float | None = None) -> bytes:
        """Wait for data, and return up to `count` bytes of it; empty at the end of the stream.

        Example:
            while data := stream.read():
                print(data)

        Raises `PortTimeoutError` if there is no data within `timeout_ms`.
        """
        count = arguments.positive_integer("count", count)
        deadline = _deadline(timeout_ms)
        try:
            while True:
                try:
                    with self._lock:
                        return self._connection.recv(min(count, _READ_MAX))
                except OSError as error:
                    _require_block(error)
                self._wait(False, deadline, "sent nothing")
        except OSError as error:
            raise self._failure(error) from None

    def write(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Send all of `data`; wait while the server does not read. Text is sent as UTF-8.

        Example:
            stream.write("GET / HTTP/1.0\\r\\n\\r\\n")

        Raises `PortTimeoutError` if `timeout_ms` passes first; then a part of `data` may have
        been sent.
        """
        rest = memoryview(arguments.content("data", data))
        deadline = _deadline(timeout_ms)
        try:
            while rest:
                try:
                    with self._lock:
                        rest = rest[self._connection.send(rest) :]
                    continue
                except OSError as error:
                    _require_block(error)
                self._wait(True, deadline, "did not read everything")
        except OSError as error:
            raise self._failure(error) from None

    def finish(self) -> None:
        """Send no more data: the server reads the end of the stream, and may still answer.

        Example:
            stream.finish()
        """
        import socket
        import ssl

        if isinstance(self._connection, ssl.SSLSocket):
            raise PortError(
                "EOPNOTSUPP: one direction of a stream over https cannot be closed alone; use "
                "close()", "EOPNOTSUPP", self._port,
            )  # fmt: skip
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Close the stream. Calling it again does nothing.

        Example:
            stream.close()
        """
        import socket

        try:  # end a `read` of another thread
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not connected any more
        self._connection.close()

    def _wait(self, to_write: bool, deadline: float | None, what: str) -> None:
        """Wait until the connection can be used. Raises `PortTimeoutError`."""
        while True:
            seconds = None if deadline is None else deadline - time.monotonic()
            if seconds is not None and seconds <= 0:
                message = f"ETIMEDOUT: the server on port {self._port} {what} in time"
                raise PortTimeoutError(message, "ETIMEDOUT", self._port)
            if _is_ready(self._connection, to_write, seconds):
                return

    def _failure(self, error: OSError) -> PortError:
        if isinstance(error, PortError):
            return error
        name = errno.errorcode.get(error.errno or 0, "EIO")
        cause = "the stream was closed" if name == "EBADF" else (error.strerror or str(error))
        return PortError(f"{name}: {cause} (port {self._port})", name, self._port)

    def __enter__(self) -> PortStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<PortStream of port {self._port}>"


def _deadline(timeout_ms: float | None) -> float | None:
    seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
    return None if seconds is None else time.monotonic() + seconds


def _require_block(error: OSError) -> None:
    """Raise `error` unless it only means that the connection is not ready."""
    if not isinstance(error, BlockingIOError) and type(error).__name__ not in _NOT_READY:
        raise error


def _is_ready(connection: socket.socket, to_write: bool, seconds: float | None) -> bool:
    """Wait until the connection can be used; False if it cannot in time."""
    if connection.fileno() < 0:
        raise OSError(errno.EBADF, "closed")
    if not hasattr(select, "poll"):
        wanted = [connection]
        ready = select.select([] if to_write else wanted, wanted if to_write else [], [], seconds)
        return any(ready)
    poll = select.poll()
    poll.register(connection, select.POLLOUT if to_write else select.POLLIN)
    return bool(poll.poll(None if seconds is None else min(seconds * 1000 + 1, _LONGEST_WAIT_MS)))


class Ports:
    """Servers in one sandbox: `sandbox.ports`.

    A program of the sandbox that listens on a TCP port can be reached from this machine, if you ask
    for it here. Nothing else can reach it.

    Example:
        server = sandbox.commands.start("python3 -m http.server 8000")
        sandbox.ports.wait(8000)
        urllib.request.urlopen(sandbox.ports.url(8000)).read()
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def url(self, port: int, *, host_port: int | None = None) -> str:
        """Make a port of the sandbox reachable for programs on this machine; return its URL.

        Example:
            sandbox.ports.url(8000)                  # such as "http://127.0.0.1:40123"
            sandbox.ports.url(8000, host_port=8000)  # "http://127.0.0.1:8000"

        This opens a port on 127.0.0.1: a free one, or `host_port`. Any protocol over TCP can use it
        until `close(port)` or the end of the sandbox. The program may start to listen later (see
        `wait`). For a sandbox on a server, the URL is one of the server's, and requests need the
        server's token; with `host_port` (0 for a free one), it is a port of this machine that leads
        through the server. Raises `PortError`.
        """
        port = arguments.port("port", port)
        if host_port is not None:
            host_port = arguments.host_port("host_port", host_port)
        return self._attachment.backend.open_port(port, host_port)

    def connect(self, port: int, *, timeout_ms: float | None = CONNECT_TIMEOUT_MS) -> PortStream:
        """Connect to a server in the sandbox.

        Example:
            with sandbox.ports.connect(7000) as stream:
                stream.write(b"hello\\n")
                stream.read()

        No port of this machine is opened. Raises `PortError`: ECONNREFUSED if no program listens on
        the port.
        """
        port = arguments.port("port", port)
        seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
        return PortStream(self._attachment.backend.connect_port(port, seconds), port)

    def wait(self, port: int, *, timeout_ms: float | None = WAIT_TIMEOUT_MS) -> None:
        """Wait until a program listens on a port of the sandbox.

        Example:
            sandbox.commands.start("python3 -m http.server 8000")
            sandbox.ports.wait(8000)

        Raises `PortTimeoutError` if none does within `timeout_ms`.
        """
        port = arguments.port("port", port)
        seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
        if not self._wait(port, seconds):
            try:
                others = ", ".join(str(found.port) for found in self.list()[:_SHOWN_PORTS])
            except SandboxClosedError:
                others = ""
            message = f"ETIMEDOUT: no program listens on port {port} after {timeout_ms} ms"
            message += f"; programs listen on {others}" if others else "; no program listens"
            raise PortTimeoutError(message, "ETIMEDOUT", port)

    def _wait(self, port: int, seconds: float | None) -> bool:
        backend, cancellation = self._attachment.backend, CANCELLATION.get()
        if cancellation is None:
            return backend.wait_port(port, seconds)
        # In steps: the task that waits for this thread may be cancelled.
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _STEP_SECONDS if until is None else max(0.0, until - time.monotonic())
            if backend.wait_port(port, min(left, _STEP_SECONDS)):
                return True
            if left <= _STEP_SECONDS and until is not None:
                return False
            if cancellation.cancelled:
                return False

    def list(self) -> builtins.list[PortInfo]:
        """Return the ports on which programs of the sandbox listen, sorted.

        Example:
            [found.port for found in sandbox.ports.list()]
        """
        return self._attachment.backend.listening_ports()

    def close(self, port: int) -> bool:
        """Close the port of this machine that `url` has opened; False if there is none.

        Example:
            sandbox.ports.close(8000)

        Open connections stay open. The program in the sandbox is not told.
        """
        return self._attachment.backend.close_port(arguments.port("port", port))

    def __repr__(self) -> str:
        return f"<Ports of {self._attachment!r}>"
