"""Returning freed memory to the operating system.

Owns what the C library's allocator is told. Rules: a process has few arenas, unless its user has
set their number. After a large sandbox has ended, the allocator is asked to return free memory:
shortly after, when the sandbox's threads have freed their memory, at most once every few seconds,
and on a separate thread, because the request takes about 50 ms. A C library without such functions
is left alone.

Why: without the request, freed memory stays with the process. After sandboxes that had filled 120
MB of files, 200 MB of 205 remained, and 90 after the request. Also, every thread can add an arena
with its own freed memory: after 15 minutes of attacks, 17 arenas held 336 MB in a process with
sandboxes, of which 42 MB were in use; 12 held 500 MB in a server.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any, Final

_DELAY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_VARIABLE: Final = "MALLOC_ARENA_MAX"
_TUNABLE: Final = "glibc.malloc.arena_max"

CLibrary = Any
"""An object with the C library's functions as attributes: cffi's library, or `c_library()`."""


def c_library() -> CLibrary:
    """The C library, for a process that has not loaded an engine."""
    import ctypes  # takes 2 ms

    return ctypes.CDLL(None)


class FreedMemory:
    """Returns freed memory from time to time."""

    def __init__(
        self, start_thread: Callable[[Callable[[], None]], None], library: CLibrary
    ) -> None:
        self._start_thread = start_thread
        self._library = library
        self._working = allocate_lock()
        self._last = -_PAUSE_SECONDS

    def give_back_soon(self) -> None:
        """Something large was freed, or is about to be."""
        if not self._working.acquire(False):
            return  # a request is already pending
        try:
            self._start_thread(self._work)
        except RuntimeError:  # the host has no thread available
            self._working.release()

    def _work(self) -> None:
        try:
            pause = self._last + _PAUSE_SECONDS - time.monotonic()
            time.sleep(max(_DELAY_SECONDS, pause))
        finally:
            self._working.release()
        self._last = time.monotonic()
        give_back_now(self._library)


def give_back_now(library: CLibrary) -> None:
    """Ask the allocator to return free memory; takes some milliseconds."""
    try:
        library.malloc_trim(0)
    except AttributeError:
        pass  # only the GNU C library has it


def have_few_arenas(library: CLibrary) -> None:
    """Bound the number of the allocator's arenas in this process, unless its user has set it."""
    if _VARIABLE in os.environ or _TUNABLE in os.environ.get("GLIBC_TUNABLES", ""):
        return
    try:
        library.mallopt(_M_ARENA_MAX, _ARENAS)
    except AttributeError:
        pass  # only the GNU C library has it
