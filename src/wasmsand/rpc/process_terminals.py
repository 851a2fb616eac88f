"""Terminals of a sandbox in another process, as `BackendTerminal`.

Owns `ProcessTerminals`, a part of `ProcessBackend`, and `RpcTerminal`. Rules: one request waits for
a bounded time, so that a lost process is noticed; the caller's timeout spans any number of
requests.
"""

from __future__ import annotations

import os
import time
import weakref
from _thread import start_new_thread
from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.failures import failures
from wasmsand.rpc.params import Params
from wasmsand.rpc.shared_process import SandboxAddress
from wasmsand.sdk.backend import BackendTerminal, CommandRequest
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.sdk.polled_process import POLL_SECONDS

_MARGIN_SECONDS: Final = 30.0
"""How much later than the request's own timeout a process may respond on a busy host."""
_PIECE_BYTES: Final = 65536


class ProcessTerminals:
    """The terminals of a sandbox in another process."""

    _connection: SandboxAddress

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """See `Backend`."""
        wanted: dict[str, object] = {
            "command": list(request.argv),
            "environ": dict(request.environ),
            "cwd": request.cwd,
            "user": request.user,
            "cols": columns,
            "rows": rows,
        }
        with failures():
            opened = self._connection.call("terminals.open", wanted)
        return RpcTerminal(self._connection, opened.integer("terminal"), opened.integer("pid"))


class RpcTerminal:
    """A terminal in the other process."""

    def __init__(self, connection: SandboxAddress, number: int, pid: int) -> None:
        self._connection = connection
        self._number = number
        self._pid = pid
        self._finalizer = weakref.finalize(self, _release_later, connection, number, os.getpid())
        self._finalizer.atexit = False

    @property
    def pid(self) -> int:
        """See `BackendTerminal`."""
        return self._pid

    def _call(self, method: str, seconds: float | None = None, **params: object) -> Params:
        params = {"terminal": self._number, **params}
        if seconds is not None:
            params["timeoutMs"] = seconds * 1000
        with failures():
            return self._connection.call(method, params, (seconds or 0.0) + _MARGIN_SECONDS)

    def read(self, count: int = _PIECE_BYTES, timeout_seconds: float | None = None) -> bytes:
        """See `BackendTerminal`."""
        deadline = _deadline(timeout_seconds)
        while True:
            result = self._call("terminals.read", _step(deadline), count=count)
            if not result.flag("timedOut"):
                return result.data("data")
            if _is_over(deadline):
                raise TimeoutError

    def write(self, data: bytes, timeout_seconds: float | None = None) -> int:
        """See `BackendTerminal`."""
        deadline = _deadline(timeout_seconds)
        done = 0
        while done < len(data):
            piece = data[done : done + _PIECE_BYTES]
            encoded = values.data_out(piece)
            written = self._call("terminals.write", _step(deadline), data=encoded)
            done += written.integer("written")
            if done < len(data) and _is_over(deadline):
                break
        return done

    def resize(self, rows: int, columns: int) -> None:
        """See `BackendTerminal`."""
        self._call("terminals.resize", rows=rows, cols=columns)

    def wait(self, timeout_seconds: float | None = None) -> int | None:
        """See `BackendTerminal`."""
        deadline = _deadline(timeout_seconds)
        while True:
            result = self._call("terminals.wait", _step(deadline))
            code = result.optional(Params.integer, "exitCode")
            if code is not None or _is_over(deadline):
                return code

    def kill(self) -> None:
        """See `BackendTerminal`."""
        try:
            self._call("terminals.kill")
        except SandboxClosedError:
            pass  # the sandbox has ended, and the program with it

    def close(self) -> None:
        """See `BackendTerminal`."""
        try:
            self._call("terminals.close")
        except SandboxClosedError:
            pass  # the sandbox has ended, and the terminal with it


def _release_later(connection: SandboxAddress, number: int, owner: int) -> None:
    """Release the terminal on another thread: garbage collection may run in a thread that writes to
    the pipe. In a forked process, do nothing: the terminal belongs to the parent."""
    if os.getpid() == owner:
        start_new_thread(_release, (connection, number))


def _release(connection: SandboxAddress, number: int) -> None:
    connection.notify("terminals.release", terminal=number)


def _deadline(timeout_seconds: float | None) -> float | None:
    return None if timeout_seconds is None else time.monotonic() + timeout_seconds


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _step(deadline: float | None) -> float:
    """How long the next request waits."""
    if deadline is None:
        return POLL_SECONDS
    return max(0.0, min(POLL_SECONDS, deadline - time.monotonic()))
