"""Spare processes for `Sandbox(isolation="process")`.

A process takes some hundredths of a second to fork and confine, and a few tenths where it must be
started; a spare one creates a sandbox in some milliseconds. Rules: there are no spares unless
`keep_spares` is called, as a server does; they are started one at a time; a spare never had a
sandbox and is used for only one; a forked process has no spares.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from wasmsand.rpc.client import RpcConnection

_MAX_SPARES: Final = 64


class _Spares:
    """The spare processes of this process."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._ready: list[tuple[int, RpcConnection]] = []
        """The spares' longest lines and connections."""
        self._wanted = 0
        self._line_bytes = 0
        self._is_filling = False

    def keep(self, count: int, line_bytes: int) -> None:
        """From now on keep `count` processes for lines of `line_bytes`; 0 ends all spares."""
        with self._lock:
            self._wanted, self._line_bytes = min(count, _MAX_SPARES), line_bytes
            surplus = self._ready[self._wanted :]
            del self._ready[self._wanted :]
        for _, connection in surplus:
            connection.close(wait=False)
        self._fill_later()

    def take(self, line_bytes: int) -> RpcConnection | None:
        """A spare that accepts lines of `line_bytes`, or None."""
        if os.getpid() != self._owner:
            return None
        found, gone = None, []
        with self._lock:
            while self._ready and found is None:
                longest, connection = self._ready.pop(0)
                if connection.is_open and longest >= line_bytes:
                    found = connection
                else:
                    gone.append(connection)
        for connection in gone:
            connection.close(wait=False)
        self._fill_later()
        return found

    def _fill_later(self) -> None:
        with self._lock:
            if self._is_filling or len(self._ready) >= self._wanted:
                return
            self._is_filling = True
        try:
            threading.Thread(target=self._fill, name="wasmsand-spares", daemon=True).start()
        except RuntimeError:  # no thread available: sandboxes start their own processes
            with self._lock:
                self._is_filling = False

    def _fill(self) -> None:
        while True:
            with self._lock:
                if len(self._ready) >= self._wanted:
                    self._is_filling = False
                    return
                line_bytes = self._line_bytes
            try:
                connection = RpcConnection(line_bytes)
                connection.call("prepare", {})  # returns when the process is ready
            except Exception:
                # Ignore it: the next sandbox starts its own process and reports the problem.
                with self._lock:
                    self._is_filling = False
                return
            with self._lock:
                is_wanted = len(self._ready) < self._wanted
                if is_wanted:
                    self._ready.append((line_bytes, connection))
            if not is_wanted:
                connection.close(wait=False)


_spares = _Spares()


def keep_spares(count: int, line_bytes: int) -> None:
    """Keep `count` spare processes, for sandboxes with lines of up to `line_bytes`."""
    _spares.keep(count, line_bytes)


def take_spare(line_bytes: int) -> RpcConnection | None:
    """A spare process for a new sandbox; None if there is none."""
    return _spares.take(line_bytes)


def _after_fork() -> None:
    global _spares
    _spares = _Spares()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
