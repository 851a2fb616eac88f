"""`LocalPorts`: the operations on ports of a sandbox whose machine runs in this process.

A part of `LocalBackend`. Rules: nothing of the host's network is imported before a sandbox uses it;
the errors of the kernel become public exceptions here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wasmsand.machine import Machine
from wasmsand.sdk.errors import PortError, SandboxClosedError, port_errors
from wasmsand.sdk.host_ports import HostPorts, host_ports
from wasmsand.sdk.results import PortInfo

if TYPE_CHECKING:
    import socket


class LocalPorts:
    """The ports of a machine."""

    _machine: Machine
    _host_ports: HostPorts | None = None

    @contextmanager
    def _port_errors(self, port: int) -> Iterator[None]:
        try:
            with port_errors(port):
                yield
        except PortError as error:
            if error.errno_name == "ESRCH":  # another thread has closed the machine meanwhile
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox") from None
            raise

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        with self._port_errors(port):
            return self._machine.ports.connect(port, timeout_seconds)

    def attach_port(self, port: int, host: socket.socket, timeout_seconds: float | None) -> None:
        """Like `connect_port`, for an existing socket, which is owned from now on."""
        with self._port_errors(port):
            self._machine.ports.attach(port, host, timeout_seconds)

    def attach_port_soon(self, port: int, host: socket.socket) -> None:
        """Like `attach_port`, but do not wait; reset `host` if the connection fails."""
        self._machine.ports.attach_soon(port, host)

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """See `Backend`."""
        with self._port_errors(port):
            return self._machine.ports.wait(port, timeout_seconds)

    def listening_ports(self) -> list[PortInfo]:
        """See `Backend`."""
        import socket

        def text(host: bytes) -> str:
            return socket.inet_ntop(socket.AF_INET if len(host) == 4 else socket.AF_INET6, host)

        found = self._machine.ports.listening()
        return [PortInfo(port, text(address.host), pid) for port, address, pid in found]

    def open_port(self, port: int, host_port: int | None) -> str:
        """See `Backend`."""
        ports = self._machine.ports
        opened = host_ports(self, lambda: HostPorts(self, ports.attach_soon, ports.has_room))
        return opened.open(port, host_port)

    def close_port(self, port: int) -> bool:
        """See `Backend`."""
        return self._host_ports is not None and self._host_ports.close_port(port)

    def close_ports(self) -> None:
        """Close all ports of this machine that lead to the sandbox."""
        if self._host_ports is not None:
            self._host_ports.close()
