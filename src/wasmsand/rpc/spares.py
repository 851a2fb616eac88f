"""Processes that are kept ready for the next `Sandbox(isolation="process")`.

A process takes a few tenths of a second to start; one that waits already makes a sandbox in
some milliseconds. Rules: nothing is kept unless somebody asks (`keep_spares`: a server does);
as many as were asked for, and one is started at a time; a spare has had no sandbox, and is used
for one only; a forked process has none.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from wasmsand.rpc.client import RpcConnection

_MAX_SPARES: Final = 64


class _Spares:
    """The spares of this process."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._ready: list[tuple[int, RpcConnection]] = []
        """Connections, and the longest line of each."""
        self._wanted = 0
        self._line_bytes = 0
        self._is_filling = False

    def keep(self, count: int, line_bytes: int) -> None:
        """From now on keep `count` processes for lines of `line_bytes`; 0 ends them."""
        with self._lock:
            self._wanted, self._line_bytes = min(count, _MAX_SPARES), line_bytes
            surplus = self._ready[self._wanted :]
            del self._ready[self._wanted :]
        for _, connection in surplus:
            connection.close(wait=False)
        self._fill_later()

    def take(self, line_bytes: int) -> RpcConnection | None:
        """A process that waits and can have lines of `line_bytes`, or None."""
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
        except RuntimeError:  # no thread left: sandboxes start their processes themselves
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
                connection.call("prepare", {})  # answered when it is ready
            except Exception:
                # Whoever makes a sandbox is told what is wrong; here nobody listens.
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
    """Keep `count` processes ready, for sandboxes with lines of `line_bytes` at most."""
    _spares.keep(count, line_bytes)


def take_spare(line_bytes: int) -> RpcConnection | None:
    """A process that waits, for a new sandbox; None if there is none."""
    return _spares.take(line_bytes)


def _after_fork() -> None:
    global _spares
    _spares = _Spares()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
