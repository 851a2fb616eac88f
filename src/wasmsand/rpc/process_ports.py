"""`ProcessPorts`: the operations on ports of a sandbox in a separate process.

A part of `ProcessBackend`. Rules: this process opens the ports of this machine, and passes each
connection to the process of the sandbox, which moves the bytes; so no byte of a connection passes
through this process.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from wasmsand.rpc import values
from wasmsand.rpc.descriptors import DescriptorSender
from wasmsand.sdk.errors import SandboxClosedError, UnsupportedError
from wasmsand.sdk.host_ports import HostPorts, host_ports
from wasmsand.sdk.results import PortInfo

if TYPE_CHECKING:
    from wasmsand.rpc.params import Params
    from wasmsand.rpc.shared_process import SandboxAddress

_CONNECT_SECONDS: Final = 10.0


class ProcessPorts:
    """The ports of a sandbox in a separate process."""

    _connection: SandboxAddress
    _host_ports: HostPorts | None = None
    _receives = False

    def _call_within(self, seconds: float | None, method: str, **params: object) -> Params:
        raise NotImplementedError

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        sender = self._sender()
        seconds = _CONNECT_SECONDS if timeout_seconds is None else timeout_seconds
        mine, guests = socket.socketpair()
        try:
            with guests:
                number = sender.send_numbered(port, guests)
            self._call_within(
                seconds, "ports.attach", port=port, socket=number, timeoutMs=seconds * 1000
            )
        except OSError:
            mine.close()
            raise SandboxClosedError("the process of the sandbox takes no sockets") from None
        except BaseException:
            mine.close()
            raise
        return mine

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """See `Backend`."""
        milliseconds = None if timeout_seconds is None else timeout_seconds * 1000
        found = self._call_within(timeout_seconds, "ports.wait", port=port, timeoutMs=milliseconds)
        return found.flag("listens")

    def listening_ports(self) -> list[PortInfo]:
        """See `Backend`."""
        found = self._call_within(_CONNECT_SECONDS, "ports.list").objects("ports")
        return [values.record_in(item, PortInfo) for item in found]

    def open_port(self, port: int, host_port: int | None) -> str:
        """See `Backend`."""
        sender = self._sender()
        opened = host_ports(
            self, lambda: HostPorts(self, _Passing(sender, self._connection.number))
        )
        return opened.open(port, host_port)

    def close_port(self, port: int) -> bool:
        """See `Backend`."""
        return self._host_ports is not None and self._host_ports.close_port(port)

    def close_ports(self) -> None:
        """Close all ports of this machine that lead to the sandbox."""
        if self._host_ports is not None:
            self._host_ports.close()

    def _sender(self) -> DescriptorSender:
        sender = self._connection.descriptors
        if sender is None:
            raise UnsupportedError(
                'isolation="process" does not offer ports on this system; use isolation="none"'
            )
        if not self._receives:
            self._call_within(_CONNECT_SECONDS, "ports.receive")
            self._receives = True
        return sender


class _Passing:
    """Passes accepted connections to the process of the sandbox."""

    def __init__(self, sender: DescriptorSender, sandbox: int) -> None:
        self._sender = sender
        self._sandbox = sandbox

    def __call__(self, port: int, connection: socket.socket) -> None:
        with connection:
            try:
                self._sender.send(self._sandbox, port, connection)
            except OSError:
                pass  # it has ended, or takes no more: the connection is closed
