"""The clock that makes computing guests call the host.

Owns the ticker thread. Rules: it advances the engine's epoch only while some guest is inside `run`.
When the epoch advances, a computing guest calls its epoch callback at the next function entry or
loop iteration; a guest that waits in a host call does so afterwards. While all guests wait, ticks
are less frequent, until one resumes: a guest never computes much longer than a tick before the host
measures it.
"""

from __future__ import annotations

import threading
import time
from _thread import allocate_lock

from wasmsand.engine.placement import free_this_thread
from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.bindings import CData, lib

_SLOWEST = 8
"""While all guests wait in the host, tick up to this many times less often."""


class EpochTicker:
    """Advances the epoch of an engine, and of its second engine for threads, while guests run."""

    def __init__(self, engine: CData, seconds: float) -> None:
        self._engines: tuple[CData, ...] = (engine,)
        self._seconds = seconds
        self._wanted = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._noticed = False
        self._slow = False
        self._hurry = allocate_lock()
        self._hurry.acquire()

    def guest_resumed(self) -> None:
        """A guest that waited in the host resumes computing."""
        if self._slow:
            self._slow = False
            try:
                self._hurry.release()
            except RuntimeError:  # two threads did it at once
                pass

    def guest_entered(self) -> None:
        """A guest is about to run, and is registered in `hostcalls`."""
        self.guest_resumed()
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._start()

    def guest_ticked(self) -> None:
        """A guest noticed the epoch, so some guest is computing."""
        self._noticed = True

    def add(self, engine: CData) -> None:
        """Also advance the epoch of this engine."""
        self._engines = (*self._engines, engine)

    def advance(self) -> None:
        """Make every computing guest call its epoch callback now."""
        for engine in self._engines:
            lib.wasmtime_engine_increment_epoch(engine)

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None:
                free_this_thread()
                self._thread = threading.Thread(
                    target=self._run, name="wasmsand-epochs", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        factor = 1
        while True:
            self._wanted.wait()
            if factor > 1 and self._hurried(self._seconds * factor):
                factor = 1
            if factor == 1:
                time.sleep(self._seconds)
            if not hostcalls.any_running():
                self._wanted.clear()
                if hostcalls.any_running():  # one entered meanwhile
                    self._wanted.set()
                factor = 1
                continue
            factor = 1 if self._noticed else min(factor * 2, _SLOWEST)
            self._noticed = False
            self.advance()

    def _hurried(self, seconds: float) -> bool:
        """Sleep while all guests wait. True if one of them resumed."""
        self._slow = True
        hurried = self._hurry.acquire(timeout=seconds)
        self._slow = False
        return hurried
