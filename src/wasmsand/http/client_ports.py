"""`HttpPorts`: the operations on ports of a server's sandbox.

A part of `HttpBackend`. Rules: the URL of a port is one of the server's, which passes requests on.
A port of this machine is opened if the user asks for it (`host_port`), or if the server may move to
another machine. A stream is a request that leaves HTTP (`Upgrade`).
"""

from __future__ import annotations

import socket
import time
from typing import Any, Final

from wasmsand.http.carrying import Carriers
from wasmsand.http.client_streams import open_stream
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import PortError, port_error
from wasmsand.sdk.host_ports import HostPorts, host_ports
from wasmsand.sdk.results import PortInfo

TUNNEL_PROTOCOL: Final = "wasmsand-stream"
"""The value of `Upgrade` for a stream to a port."""
_WAIT_STEP_MS: Final = 20_000.0
_ANSWER_SECONDS: Final = 30.0


class HttpPorts:
    """The ports of a server's sandbox."""

    _transport: Transport
    _path: str
    _host_ports: HostPorts | None = None

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        raise NotImplementedError

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        return _open_stream(self._transport, self._path, port, timeout_seconds)

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """See `Backend`."""
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            step = _WAIT_STEP_MS
            if until is not None:
                step = min(step, max(0.0, (until - time.monotonic()) * 1000))
            if self._get(f"/listening/{port}", wait_ms=step)["listens"]:
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def listening_ports(self) -> list[PortInfo]:
        """See `Backend`."""
        return [PortInfo(**item) for item in self._get("/listening")["ports"]]

    def open_port(self, port: int, host_port: int | None) -> str:
        """See `Backend`."""
        self._get(f"/listening/{port}")  # raises if the sandbox is gone
        if host_port is None and self._transport.has_stable_address:
            return self._transport.address_of(f"{self._path}/ports/{port}")
        transport, path = self._transport, self._path

        def make() -> HostPorts:
            carriers = Carriers(lambda port: _open_stream(transport, path, port, None))
            return HostPorts(self, carriers, carriers.has_room)

        return host_ports(self, make).open(port, host_port)

    def close_port(self, port: int) -> bool:
        """See `Backend`."""
        return self._host_ports is not None and self._host_ports.close_port(port)

    def close_ports(self) -> None:
        """Close all ports of this machine that lead to the sandbox."""
        if self._host_ports is not None:
            self._host_ports.close()


def _open_stream(
    transport: Transport, path: str, port: int, timeout_seconds: float | None
) -> socket.socket:
    """A stream to a port of the sandbox at `path`. Raises `PortError`, `ConnectionLostError`."""
    seconds = _ANSWER_SECONDS if timeout_seconds is None else timeout_seconds + _ANSWER_SECONDS
    headers = {"Upgrade": TUNNEL_PROTOCOL, "Content-Length": "0"}
    try:
        return open_stream(transport, "POST", f"{path}/tunnels/{port}", headers, seconds)[0]
    except PortError as failure:
        raise port_error(str(failure), failure.errno_name, port) from None
