"""`HostPorts`: the ports of this machine that lead to one sandbox.

Backends of sandboxes on this machine use it. Rules: nothing of the host's network is imported
before a port is opened; the ports close with the sandbox, and when its backend is
garbage-collected.
"""

from __future__ import annotations

import os
import threading
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from wasmsand.sdk.errors import PortError, SandboxClosedError, port_errors

if TYPE_CHECKING:
    import socket

    from wasmsand.machine.network.listening import HostListeners


_making = threading.Lock()


def _renew_lock() -> None:
    # In a forked process, no thread is left that could release it.
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class _WithHostPorts(Protocol):
    _host_ports: HostPorts | None


class HostPorts:
    """The opened ports of one sandbox."""

    def __init__(
        self,
        backend: object,
        deliver: Callable[[int, socket.socket], None],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """`deliver` takes the connections, and owns them; it must not refer to `backend`."""
        from wasmsand.machine.network.listening import HostListeners

        self._listeners = HostListeners(deliver, has_room)
        finalizer = weakref.finalize(backend, _abandon, self._listeners, os.getpid())
        finalizer.atexit = False

    def open(self, port: int, host_port: int | None) -> str:
        """See `Backend.open_port`."""
        from wasmsand.machine.network.listening import LOCAL_HOST

        try:
            with port_errors(port):
                return f"http://{LOCAL_HOST}:{self._listeners.open(port, host_port or None)}"
        except PortError as error:
            if error.errno_name == "ESRCH":  # another thread has closed the sandbox meanwhile
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox") from None
            raise

    def close_port(self, port: int) -> bool:
        """See `Backend.close_port`."""
        return self._listeners.close_port(port)

    def close(self) -> None:
        """Close all ports; idempotent."""
        self._listeners.close()


def host_ports(backend: _WithHostPorts, make: Callable[[], HostPorts]) -> HostPorts:
    """The opened ports of a backend, which `make` makes when they are first used."""
    with _making:
        if backend._host_ports is None:
            backend._host_ports = make()
        return backend._host_ports


def _abandon(listeners: HostListeners, owner: int) -> None:
    """The backend was garbage-collected, maybe on a thread that holds a lock: use another one."""
    if os.getpid() == owner:
        start_new_thread(listeners.close, ())
