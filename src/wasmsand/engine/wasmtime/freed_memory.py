"""Giving memory back to the operating system.

Owns what the C library's allocator is told. Rules: it has few arenas, unless the user has set their
number; it is asked for what it keeps after a large sandbox has ended, a moment later, when its
threads have freed what they had, and not more often than every few seconds; on a thread of its own,
since it takes some 50 ms; where the C library has no such requests, nothing happens.

Without the second, freed memory stays with the process: after sandboxes that had filled 120 MB of
files, 200 MB of 205 were still there, and 90 after the request. Without the first, every thread of
a program may bring an arena, and what is left in each adds up: 17 arenas kept 336 MB after a
quarter of an hour of attacks, of which 42 MB were in use.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Final

from wasmsand.engine.wasmtime.bindings import lib

_DELAY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_SET_BY_USER: Final = ("MALLOC_ARENA_MAX", "glibc.malloc.arena_max")
"""The variable, and the tunable in `GLIBC_TUNABLES`, that set the number of arenas."""


class FreedMemory:
    """Gives freed memory back, now and then."""

    def __init__(self, start_thread: Callable[[Callable[[], None]], None]) -> None:
        self._start_thread = start_thread
        self._working = allocate_lock()
        self._last = -_PAUSE_SECONDS

    def give_back_soon(self) -> None:
        """Something large was freed, or is about to be."""
        if not self._working.acquire(False):
            return  # whoever has it has not begun, or waits to
        try:
            self._start_thread(self._work)
        except RuntimeError:  # the host has no threads left
            self._working.release()

    def _work(self) -> None:
        try:
            pause = self._last + _PAUSE_SECONDS - time.monotonic()
            time.sleep(max(_DELAY_SECONDS, pause))
        finally:
            self._working.release()
        self._last = time.monotonic()
        give_back_now()


def give_back_now() -> None:
    """Have the allocator return what is free, which takes some milliseconds."""
    try:
        lib.malloc_trim(0)
    except AttributeError:
        pass  # only the GNU C library has it


def have_few_arenas() -> None:
    """Bound the number of the allocator's arenas in this process, unless the user has."""
    variable, tunable = _SET_BY_USER
    if variable in os.environ or tunable in os.environ.get("GLIBC_TUNABLES", ""):
        return
    try:
        lib.mallopt(_M_ARENA_MAX, _ARENAS)
    except AttributeError:
        pass  # only the GNU C library has it
