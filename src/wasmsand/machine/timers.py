"""Host timers for guest alarms.

Owns the one thread that calls `fire_timers` of any sandbox when it is due. Rules:
the thread exists only while a timer is armed; it holds sandboxes weakly.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol


class TimerOwner(Protocol):
    """A sandbox that has timers."""

    def fire_timers(self) -> int | None:
        """Fire what is due; when to call again (monotonic ns), or None."""


class TimerService:
    """Calls owners at the times they asked for."""

    def __init__(self, start_thread: Callable[[Callable[[], None]], None]) -> None:
        self._start_thread = start_thread
        self._changed = threading.Condition()
        self._due: list[tuple[int, int, weakref.ref[TimerOwner]]] = []
        self._sequence = itertools.count()
        self._running = False

    def arm(self, owner: TimerOwner, when_ns: int) -> None:
        """Call `owner.fire_timers` at `when_ns` of the monotonic clock."""
        with self._changed:
            heapq.heappush(self._due, (when_ns, next(self._sequence), weakref.ref(owner)))
            if not self._running:
                self._running = True
                self._start_thread(self._run)
            else:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._running = False
                    return
                when, _, reference = self._due[0]
                wait = (when - time.monotonic_ns()) / 1e9
                if wait > 0:
                    if reference() is None:
                        heapq.heappop(self._due)
                    else:
                        self._changed.wait(min(wait, 60.0))
                    continue
                heapq.heappop(self._due)
            owner = reference()
            if owner is not None:
                again = owner.fire_timers()
                if again is not None:
                    self.arm(owner, again)
