"""A pool of daemon threads.

Rules: the threads are daemons, because a call that hangs must not keep the process alive (the
threads of an executor are joined at exit); an idle thread ends after `IDLE_SECONDS`. The pool
does not limit their number; its callers do.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

IDLE_SECONDS = 20.0
"""How long an idle thread waits for its next call."""


class _Daemon:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()


class Daemons:
    """The threads of one server."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._idle: list[_Daemon] = []
        self._threads = 0

    @property
    def busy(self) -> int:
        """The number of running calls."""
        with self._lock:
            return self._threads - len(self._idle)

    def start(self, call: Callable[[], None]) -> None:
        """Run `call`, which must not raise, on a thread. Raises `RuntimeError` if the system
        cannot start another thread."""
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
                continue  # a call is about to be assigned
            call()
            del call  # release the objects that it refers to
            with self._lock:
                self._idle.append(daemon)
