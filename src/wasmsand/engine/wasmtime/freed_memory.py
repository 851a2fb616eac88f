"""Giving memory back to the operating system.

Owns what the C library's allocator is told. Rules: the allocator has two arenas, unless the user
has set their number; after a large sandbox has ended, the allocator is asked to return free memory,
a moment later, when the sandbox's threads have freed theirs, and at most once in a few seconds. The
request takes some 50 ms, so it has a thread of its own. Other C libraries know neither setting, and
nothing happens there.

Without the request, freed memory stays with the process: after sandboxes that had filled 120 MB of
files, 200 MB of 205 were still there, and 90 after the request. Without the bound, every thread of
a program may bring an arena, and the rest in each adds up: 17 arenas kept 336 MB after a
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
            return  # a request is waiting to be made
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
