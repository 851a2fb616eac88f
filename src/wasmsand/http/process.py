"""A started command of a server's sandbox, as the SDK's `BackendProcess`.

Rules: waiting is done by the server, for a bounded time per request, so that a server
that is gone is noticed; a batch of output that was asked for is kept by the server until
the next is.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import start_new_thread
from typing import Any, Final

from wasmsand.http.answers import ended_of, exact_bytes, object_of
from wasmsand.http.transport import Transport
from wasmsand.sdk.backend import STDIN, Ended, Output
from wasmsand.sdk.errors import ForkedError, SandboxError

_POLL_SECONDS: Final = 20.0
_PIECE: Final = 1024 * 1024
"""Of input that one request carries: what the command does not take is sent again."""


class HttpProcess:
    """A command that a server runs."""

    def __init__(self, transport: Transport, path: str, pid: int) -> None:
        self._transport = transport
        self._path = path
        self._pid = pid
        self._reading = threading.Lock()
        # Guarded by the lock:
        self._number = 0
        self._owner = os.getpid()
        weakref.finalize(self, _forget, transport, path, self._owner).atexit = False

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._pid

    def now(self) -> float:
        """See `BackendProcess`: the host's time, for the other side measures relative times."""
        return time.monotonic()

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        if os.getpid() != self._owner:  # two readers would take each other's output
            raise ForkedError.here("command")
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        with self._reading:
            while True:
                step = _step(deadline)
                batch = self._get("/output", after=self._number, wait_ms=step * 1000)
                fresh = batch["number"] != self._number
                self._number = batch["number"]
                if fresh or batch["ended"]:
                    return tuple(
                        Output(piece["fd"], exact_bytes(piece.get("text"), piece.get("base64")))
                        for piece in batch["pieces"]
                    )
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        done = 0
        while done < len(data):
            query = {"fd": fd, "wait_ms": _step(deadline) * 1000}
            piece = data[done : done + _PIECE]
            answer = self._transport.ask("POST", f"{self._path}/input", query=query, content=piece)
            written = int(object_of(answer)["written"])
            done += written
            if written < len(piece) and deadline is not None and time.monotonic() >= deadline:
                break
        return done

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        self._transport.ask("DELETE", f"{self._path}/input", query={"fd": fd})

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            end = self._get("", wait_ms=_step(deadline) * 1000)["end"]
            if end is not None:
                return ended_of(end)
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def kill(self) -> None:
        """See `BackendProcess`."""
        self._transport.ask("POST", f"{self._path}/kill")

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        return object_of(self._transport.ask("GET", self._path + part, query=query))


def _step(deadline: float | None) -> float:
    """How long one request waits."""
    if deadline is None:
        return _POLL_SECONDS
    return max(0.0, min(_POLL_SECONDS, deadline - time.monotonic()))


def _forget(transport: Transport, path: str, owner: int) -> None:
    """Nobody reads it any more. The collector must not wait for a network; and a forked process
    that forgets its copy does not speak for its parent."""
    if os.getpid() != owner:
        return

    def ask() -> None:
        try:
            transport.ask("DELETE", path)
        except SandboxError:
            pass  # the sandbox is gone, and the command with it

    start_new_thread(ask, ())
