"""Giving memory back to the operating system.

Owns when the C library's allocator is asked for what it keeps. Rules: it is asked after a large
sandbox has ended, a moment later, when its threads have freed what they had, and not more often
than every few seconds; on a thread of its own, since it takes some 50 ms; where the C library has
no such request, nothing happens.

Without it freed memory stays with the process, in arenas of many threads: after sandboxes that had
filled 120 MB of files, 200 MB of 205 were still there, and 90 after the request.
"""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import Final

from wasmsand.engine.wasmtime.bindings import lib

_DELAY_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0


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
