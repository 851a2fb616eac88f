"""Host timers for guests' alarms and for the time limits of commands.

Owns the thread that calls the `fire_timers` method of owners when their time comes; all machines on
the host's time share one service per engine. Rules: the thread exists only while a timer is armed.
It references owners weakly. An owner has one entry, at the earliest time that it asked for, until
it is called, cancelled or collected. It is called at most every `TIMER_GAP_NS`, so that a guest
cannot keep the thread busy. An owner that fails does not affect the others.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.deadlines import Deadlines
from wasmsand.kernel.limits import TIMER_GAP_NS
from wasmsand.machine.bug_log import log_bug

log = logging.getLogger("wasmsand.machine")

_LONGEST_WAIT: Final = 60.0


class TimerOwner(Protocol):
    """A sandbox with timers, or a command with a time limit."""

    def fire_timers(self) -> int | None:
        """Fire the timers that are due. Return the next time to call (monotonic ns), or None."""


class TimerService:
    """Calls owners at the times they asked for."""

    def __init__(
        self, start_thread: Callable[[Callable[[], None]], None], clock: Clock | None = None
    ) -> None:
        """`clock` defaults to the host's time."""
        self._start_thread = start_thread
        self._clock = clock or Clock()
        self._changed = threading.Condition()
        # Guarded by the condition's lock:
        self._due: Deadlines[weakref.ref[TimerOwner]] = Deadlines()
        self._running = False
        # The collector may run while this lock is held, so it only appends to this queue.
        self._collected: deque[weakref.ref[TimerOwner]] = deque()
        self._clock.follow(self._clock_jumped)

    @property
    def entries(self) -> int:
        """How many entries are stored, including outdated ones."""
        with self._changed:
            return self._due.entries

    def arm(self, owner: TimerOwner, when_ns: int) -> None:
        """Call `owner.fire_timers` at `when_ns` on the monotonic clock, or earlier."""
        with self._changed:
            self._forget_collected()
            key = weakref.ref(owner, self._collected.append)
            armed = self._due.get(key)
            if armed is not None and armed <= when_ns:
                return
            first = self._due.earliest()
            self._due.set(key, when_ns)
            if self._running:
                if first is None or when_ns < first:
                    self._changed.notify()
                return
            try:
                self._start_thread(self._run)
                self._running = True
            except RuntimeError as error:  # the next call of `arm` tries again
                log.info("no thread for timers: %s", error)

    def cancel(self, owner: TimerOwner) -> None:
        """Remove the owner's timer."""
        with self._changed:
            key = weakref.ref(owner)
            if key in self._due:
                self._due.cancel(key)
                self._changed.notify()

    def _clock_jumped(self) -> None:
        with self._changed:
            self._changed.notify()

    def _forget_collected(self) -> None:
        while self._collected:
            self._due.cancel(self._collected.popleft())

    def _run(self) -> None:
        while True:
            with self._changed:
                self._forget_collected()
                when = self._due.earliest()
                if when is None:
                    self._running = False
                    return
                now = self._clock.monotonic()
                if when > now:
                    seconds = self._clock.host_seconds(when)
                    self._changed.wait(
                        _LONGEST_WAIT if seconds is None else min(seconds, _LONGEST_WAIT)
                    )
                    continue
                key = self._due.take_due(now)
            owner = key() if key is not None else None
            if owner is not None:
                self._call(owner)
            del owner  # let it be collected while this thread waits

    def _call(self, owner: TimerOwner) -> None:
        try:
            again = owner.fire_timers()
        except Exception:
            log_bug("host bug in a timer of %r", owner)
            return
        if again is not None:
            self.arm(owner, max(again, self._clock.monotonic() + TIMER_GAP_NS))
