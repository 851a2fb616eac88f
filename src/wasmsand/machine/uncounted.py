"""Compilations that commands wait for, and the time that they take.

Owns `UncountedTime`, the time that a sandbox has spent on compiling programs of the image, and
telling the user about such a compilation. Rules: the user did nothing to cause the wait, and it
happens once per machine; so it does not count against any timeout of the sandbox's commands. Only
programs that the host trusts are meant: a guest cannot stop the clock with a program of its own.
Somebody is told at once, by the program's name. By default that is the log `wasmsand.engine`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from wasmsand.kernel.clock import Clock

logger = logging.getLogger("wasmsand.engine")

SLOW_TO_COMPILE: Final = 256 * 1024
"""From this size on, a compilation takes long enough for a warning."""
_LEAST_WAIT_NS: Final = 20_000_000
"""How often somebody whose deadline moves looks again."""


class Compilation(NamedTuple):
    """A program that is about to be compiled, or was compiled."""

    program: str
    """Its name as a user knows it."""
    size: int
    """Bytes of the portable module."""
    is_over: bool


Listener = Callable[[Compilation], None]


def _log(compilation: Compilation) -> None:
    if not compilation.is_over:
        level = logging.WARNING if compilation.size >= SLOW_TO_COMPILE else logging.INFO
        logger.log(
            level,
            "compiling %s for this machine; this happens once, and does not count against timeouts "
            "(`wasmsand warm` compiles all programs in advance)",
            compilation.program,
        )


_listener: Listener = _log


def tell_of_compilations(listener: Listener) -> None:
    """From now on, tell `listener` in place of the log. It is called on any thread."""
    global _listener
    _listener = listener


class UncountedTime:
    """How long the programs of one sandbox waited for compilations."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state: tuple[int, int | None] = (0, None)
        """Finished time, and when the current compilation began. Replaced as a whole, so that
        readers need no lock. A sandbox compiles one program at a time."""

    def total_ns(self) -> int:
        """The time up to now."""
        finished, since = self._state
        return finished if since is None else finished + self._clock.monotonic() - since

    @contextmanager
    def counting(self) -> Iterator[None]:
        """The time of this block does not count."""
        finished, _ = self._state
        began = self._clock.monotonic()
        self._state = (finished, began)
        try:
            yield
        finally:
            self._state = (finished + self._clock.monotonic() - began, None)


@contextmanager
def announced(program: str, size: int) -> Iterator[None]:
    """Tell of a compilation, at its beginning and at its end."""
    _listener(Compilation(program, size, False))
    try:
        yield
    finally:
        _listener(Compilation(program, size, True))


class Deadline:
    """The end of a command's time, which moves while programs are compiled."""

    __slots__ = ("_at", "_clock", "_uncounted")

    def __init__(self, clock: Clock, uncounted: UncountedTime, at_ns: int | None) -> None:
        """`at_ns`: if nothing is compiled; None for no end."""
        self._clock = clock
        self._uncounted = uncounted
        self._at = None if at_ns is None else at_ns - uncounted.total_ns()

    @property
    def ns(self) -> int | None:
        """The end as it is now. Whoever waits for it has to check `is_past` then."""
        if self._at is None:
            return None
        return self._at + self._uncounted.total_ns()

    @property
    def next_look_ns(self) -> int | None:
        """When to look again: at the end, but not at once."""
        end = self.ns
        return None if end is None else max(end, self._clock.monotonic() + _LEAST_WAIT_NS)

    @property
    def is_past(self) -> bool:
        """Whether the time is up."""
        end = self.ns
        return end is not None and self._clock.monotonic() >= end
