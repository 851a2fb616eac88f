"""Servers in a sandbox, and how their user reaches them: `sandbox.ports`.

Owns `Ports` and `PortStream`. Rules: nothing is reachable unless the user asks for it here.
Arguments are validated here; everything else is the backend's.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.errors import PortError, PortTimeoutError, SandboxClosedError
from wasmsand.sdk.results import PortInfo

if TYPE_CHECKING:
    import socket

WAIT_TIMEOUT_MS: Final = 60_000
CONNECT_TIMEOUT_MS: Final = 10_000
READ_BYTES: Final = 65_536
_SHOWN_PORTS: Final = 8


class PortStream:
    """A connection to a server in the sandbox: `sandbox.ports.connect(port)`.

    Example:
        with sandbox.ports.connect(7000) as stream:
            stream.write(b"hello\\n")
            stream.read()
    """

    def __init__(self, connection: socket.socket, port: int) -> None:
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
        seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
        try:
            self._connection.settimeout(seconds)
            return self._connection.recv(min(count, 1 << 24))
        except OSError as error:
            raise self._failure(error, "sent nothing") from None

    def write(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Send all of `data`; wait while the server does not read. Text is sent as UTF-8.

        Example:
            stream.write("GET / HTTP/1.0\\r\\n\\r\\n")

        Raises `PortTimeoutError` if `timeout_ms` passes first; then a part of `data` may have
        been sent.
        """
        content = arguments.content("data", data)
        seconds = arguments.timeout_seconds("timeout_ms", timeout_ms)
        try:
            self._connection.settimeout(seconds)
            self._connection.sendall(content)
        except OSError as error:
            raise self._failure(error, "did not read what was sent") from None

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
            raise self._failure(error, "") from None

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

    def _failure(self, error: OSError, what: str) -> PortError:
        import errno

        port = self._port
        if isinstance(error, TimeoutError):
            message = f"ETIMEDOUT: the server on port {port} {what} in time"
            return PortTimeoutError(message, "ETIMEDOUT", port)
        name = errno.errorcode.get(error.errno or 0, "EIO")
        cause = "the stream was closed" if name == "EBADF" else (error.strerror or str(error))
        return PortError(f"{name}: {cause} (port {port})", name, port)

    def __enter__(self) -> PortStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<PortStream of port {self._port}>"


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
        `wait`). For a sandbox on a server, the URL is one of the server's; requests need the
        server's token, and `host_port` cannot be chosen. Raises `PortError`.
        """
        port = arguments.port("port", port)
        if host_port is not None:
            host_port = arguments.port("host_port", host_port)
        return self._attachment.backend.open_port(port, host_port)

    def connect(
        self, port: int, *, timeout_ms: float | None = CONNECT_TIMEOUT_MS
    ) -> PortStream:
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
        backend = self._attachment.backend
        if not backend.wait_port(port, seconds):
            try:
                others = ", ".join(str(found.port) for found in self.list()[:_SHOWN_PORTS])
            except SandboxClosedError:
                others = ""
            message = f"ETIMEDOUT: no program listens on port {port} after {timeout_ms} ms"
            message += f"; programs listen on {others}" if others else "; no program listens"
            raise PortTimeoutError(message, "ETIMEDOUT", port)

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
