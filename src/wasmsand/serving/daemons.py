"""Threads that are kept for the next call, and never hold up the end of the process.

Rules: they are daemons, because a call that hangs must not keep the process alive (an
executor's threads are joined at exit); one that had nothing to do for a while ends. How many
there are is decided by whoever starts calls.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

IDLE_SECONDS = 20.0
"""How long a thread waits for its next call."""


class _Daemon:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()


class Daemons:
    """Threads of one server."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._idle: list[_Daemon] = []
        self._threads = 0

    @property
    def busy(self) -> int:
        """Calls that run."""
        with self._lock:
            return self._threads - len(self._idle)

    def start(self, call: Callable[[], None]) -> None:
        """Run `call`, which must not raise, on a thread, now. Raises `RuntimeError` if the
        system has no thread left."""
        with self._lock:
            daemon = self._idle.pop() if self._idle else None
            if daemon is None:
                self._threads += 1
        if daemon is None:
            daemon = _Daemon()
            try:
                threading.Thread(
                    target=self._live, args=(daemon,), name=self._name, daemon=True
                ).start()
            except RuntimeError:
                with self._lock:
                    self._threads -= 1
                raise
        daemon.calls.put(call)

    def _live(self, daemon: _Daemon) -> None:
        while True:
            try:
                call = daemon.calls.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if daemon in self._idle:
                        self._idle.remove(daemon)
                        self._threads -= 1
                        return
                continue  # a call is on its way
            call()
            del call  # what it holds must not live as long as this thread
            with self._lock:
                self._idle.append(daemon)
