"""`HttpLife`: the life of a sandbox on a server, seen from the client.

A part of `HttpBackend`. Rules: a sandbox that this client created is killed when its backend is
closed or collected; one that was found by its id is killed only on request.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from contextlib import suppress
from typing import Any

from wasmsand.http.answers import object_of
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import SandboxError
from wasmsand.sdk.results import SandboxInfo
from wasmsand.sdk.served_backend import ServedBackend
from wasmsand.sdk.state import Running

_PAUSE_SECONDS = 180.0


class HttpLife(ServedBackend):
    """Where a sandbox of a server is in its life."""

    _transport: Transport
    _path: str

    def _begin_life(self, *, is_found: bool) -> None:
        self.is_found = is_found
        self._is_open = True
        self._kills = True
        self._finalizer = weakref.finalize(self, _abandon, self._transport, self._path, os.getpid())
        # At interpreter exit nothing is sent; the sandbox expires.
        self._finalizer.atexit = False
        if is_found:
            self._finalizer.detach()

    def info(self) -> SandboxInfo:
        """See `ServedBackend`."""
        return info_of(object_of(self._transport.ask("GET", self._path)))

    def set_timeout(self, seconds: float) -> None:
        """See `ServedBackend`."""
        self._transport.ask("POST", f"{self._path}/timeout", value={"seconds": seconds})

    def pause(self, running: Running) -> None:
        """See `ServedBackend`."""
        self._tell_variables()
        self._transport.ask(
            "POST", f"{self._path}/pause", value={"running": running}, seconds=_PAUSE_SECONDS
        )

    def resume(self) -> None:
        """See `ServedBackend`."""
        self._transport.ask("POST", f"{self._path}/resume", value={}, seconds=_PAUSE_SECONDS)

    def keep_alive(self) -> None:
        """See `ServedBackend`."""
        with suppress(SandboxError):  # a client can leave a server that does not answer
            self._tell_variables()
        self._kills = False

    def _tell_variables(self) -> None:
        """Tell the server the variables that the user has changed."""
        raise NotImplementedError

    def _hand_over(self) -> None:
        """Another object has the sandbox from now on."""
        self._is_open = False
        self._finalizer.detach()

    def _end_life(self) -> None:
        if not self._is_open:
            return
        self._hand_over()
        if self._kills:
            _kill(self._transport, self._path)
        else:
            self._transport.close()


def info_of(state: dict[str, Any]) -> SandboxInfo:
    """A server's description of a sandbox."""
    return SandboxInfo(
        id=str(state["id"]),
        state="paused" if state["state"] == "paused" else "running",
        metadata=dict(state["metadata"]),
        created=float(state["created_at"]),
        expires_in_seconds=float(state["expires_in_seconds"]),
    )


def _kill(transport: Transport, path: str) -> None:
    try:
        transport.ask("DELETE", path)
    except SandboxError:
        pass  # the sandbox has ended, or will expire
    transport.close()


def _abandon(transport: Transport, path: str, owner: int) -> None:
    """Kill a sandbox that is no longer referenced, on a thread: garbage collection must not wait
    for the network. In a forked process, do nothing: the sandbox belongs to the parent."""
    if os.getpid() == owner:
        start_new_thread(_kill, (transport, path))
