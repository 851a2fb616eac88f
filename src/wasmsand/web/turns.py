"""Turns among the threads of a program, without waiting.

Owns `WebTurn`, one per process with threads. Rules: as in `machine/turns.py`, only the thread that
has the turn runs the program; those who ask are served in order. A thread that computes keeps the
turn until its next call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class WebTurn:
    """The right to run the program of one process."""

    __slots__ = ("_soon", "_taken", "_waiting")

    def __init__(self, soon: Callable[[Callable[[], None]], None]) -> None:
        """The caller has the turn. `soon` calls a function when the current step is done."""
        self._soon = soon
        self._waiting: deque[Callable[[], None]] = deque()
        self._taken = True

    @property
    def wanted(self) -> bool:
        """Whether other threads wait for the turn."""
        return bool(self._waiting)

    def ask(self, got: Callable[[], None]) -> None:
        """Call `got` when the turn is the caller's."""
        if self._taken:
            self._waiting.append(got)
        else:
            self._taken = True
            self._soon(got)

    def give(self) -> None:
        """Pass the turn to the next thread."""
        if self._waiting:
            self._soon(self._waiting.popleft())
        else:
            self._taken = False
