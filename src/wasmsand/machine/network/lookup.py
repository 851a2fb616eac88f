"""Work that blocks a thread of the host: look-ups of names, and questions to the user's code.

Owns `Workers`, one per host process. Rules: at most `_THREADS_MAX` threads, which end when they
have nothing to do; orders wait in a queue, and each sandbox bounds how many it has there. The
threads are daemons, because a look-up cannot be cancelled.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from wasmsand.engine.placement import free_this_thread
from wasmsand.machine.bug_log import log_bug

_THREADS_MAX: Final = 8
_IDLE_SECONDS: Final = 5.0


class Workers:
    """Threads for calls that block."""

    def __init__(self, threads_max: int = _THREADS_MAX, name: str = "wasmsand-lookup") -> None:
        self._threads_max = threads_max
        self._name = name
        self._changed = threading.Condition()
        self._orders: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0

    def submit(self, act: Callable[[], None]) -> None:
        """Call `act` soon on a thread of its own."""
        with self._changed:
            self._orders.append(act)
            if self._idle >= len(self._orders):
                self._changed.notify()
            elif self._threads < self._threads_max:
                free_this_thread()
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._threads += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._orders:
                    self._idle += 1
                    self._changed.wait(_IDLE_SECONDS)
                    self._idle -= 1
                    if not self._orders:
                        self._threads -= 1
                        return
                act = self._orders.popleft()
            try:
                act()
            except Exception:
                log_bug("host bug in %r", act)
            del act


_workers: dict[int, Workers] = {}


def workers() -> Workers:
    """The workers of this host process; a forked process has its own."""
    return _workers.setdefault(os.getpid(), Workers())


def look_up(name: str) -> tuple[str, ...]:
    """The addresses of a name, as the host resolves it; empty if it has none. Blocks."""
    import socket  # not needed by those who only want threads

    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
