"""A gate that a thread waits at until it is opened.

Owns `ResponseGate`. Like `threading.Event`, but made of a single lock: a signal handler that raises
in the middle of a wait (Ctrl-C) leaves the gate intact. An Event is made of a condition
variable, which such an exception can leave locked for ever, or unlock twice. Rules: a gate that was
opened stays open; one thread waits, any number of threads may open.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock


class ResponseGate:
    """Closed at first."""

    __slots__ = ("_lock", "is_open")

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()
        self.is_open = False

    def open(self) -> None:
        """Let the thread pass, now and later."""
        self.is_open = True
        try:
            self._lock.release()
        except RuntimeError:
            pass  # another thread has opened it

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the gate is open, for at most this time. True if it is open."""
        if not self.is_open:
            limit = -1 if seconds is None else min(seconds, threading.TIMEOUT_MAX)
            self._lock.acquire(True, limit)
        return self.is_open
