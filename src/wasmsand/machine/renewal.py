"""The host's periodic re-preparation of programs that start prepared.

Owns which memory a start of such a program begins with. The memory stored in the image is the same
everywhere, and so are the random numbers that the program drew during preparation, such as the seed
of Python's hashes. So a host prepares the program again with random numbers of its own, and later
starts begin with that memory. Rules: no start waits for a preparation. There is no timer: a start
that finds the newest preparation too old triggers the next one in the background, so an idle host
does nothing. Only one preparation runs at a time, and the first one only if the host keeps starting
the program. The number of images in use by processes is bounded, because each costs its whole
memory. If a preparation fails, starts continue with the memory there is.

The preparing thread does not have a lower priority: it sometimes holds the interpreter's lock, and
then every other thread would wait for it to be scheduled.
"""

from __future__ import annotations

import logging
import math
import os
import time
import weakref
from _thread import allocate_lock
from collections.abc import Callable
from functools import partial
from typing import Final

from wasmsand.engine.abilities import MemoryImage
from wasmsand.engine.protocol import Engine
from wasmsand.machine.image import ProgramFile, base_image, prepared_programs

log = logging.getLogger("wasmsand.machine")

VARIABLE: Final = "WASMSAND_RENEWAL"
"""Host environment variable: `off` makes all starts use the image's own preparation."""
FIRST_AFTER_SECONDS: Final = 1.0
"""Delay after the first start, so that short-lived hosts do not pay for a preparation."""
RENEWED_AFTER_SECONDS: Final = 60.0
"""Preparing Python takes 0.45 s of processor time: less than one percent of a processor."""
IMAGES_MAX: Final = 4
"""The most images of one program at once, including old ones that processes still use."""


def newest_image(engine: Engine, key: str) -> MemoryImage | None:
    """The memory image from which the module with this key starts; None for its own data."""
    plain = prepared_programs().get(key)
    if plain is None or os.environ.get(VARIABLE) == "off":
        return None
    if not engine.abilities.memory_images.available:
        return None
    renewal = _renewals.get((id(engine), key))
    if renewal is None:
        made = Renewal(partial(_prepare, engine, plain), engine.start_thread)
        renewal = _renewals.setdefault((id(engine), key), made)
    return renewal.newest()


def _prepare(engine: Engine, plain: ProgramFile) -> MemoryImage:
    # Imported here, because `checkpoint` imports `machine`, which imports this module.
    from wasmsand.machine.checkpoint import capture_at_checkpoint

    try:
        return capture_at_checkpoint(plain.names[0], image=base_image(), engine=engine)
    finally:
        engine.unload(plain.sha256)  # hardly anyone else needs its code


class Renewal:
    """The preparations of one program. Thread-safe."""

    def __init__(
        self,
        prepare: Callable[[], MemoryImage],
        start_thread: Callable[[Callable[[], None]], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prepare` is slow; it is called on a thread that `start_thread` starts."""
        self._prepare = prepare
        self._start_thread = start_thread
        self._monotonic = monotonic
        self._newest: MemoryImage | None = None
        self._alive: weakref.WeakSet[MemoryImage] = weakref.WeakSet()
        self._lock = allocate_lock()
        # Guarded by the lock:
        self._due: float | None = None
        """When a start may trigger the next preparation; None before the first start."""
        self._under_way = False

    def newest(self) -> MemoryImage | None:
        """The image with which a start begins; None for the module's own data."""
        now = self._monotonic()
        if self._due is None or now >= self._due:
            self._begin(now)
        return self._newest

    def _begin(self, now: float) -> None:
        with self._lock:
            if self._due is None:
                self._due = now + FIRST_AFTER_SECONDS
            if self._under_way or now < self._due:
                return
            if len(self._alive) >= IMAGES_MAX:
                self._due = now + RENEWED_AFTER_SECONDS
                return
            self._under_way = True
        try:
            self._start_thread(self._renew)
        except RuntimeError as error:  # no thread available: the start itself must not fail
            log.info("no thread for preparing a program: %s", error)
            with self._lock:
                self._due = now + RENEWED_AFTER_SECONDS
                self._under_way = False

    def _renew(self) -> None:
        due = math.inf  # after a failure, do not try again
        try:
            image = self._prepare()
            self._alive.add(image)
            self._newest = image
            due = self._monotonic() + RENEWED_AFTER_SECONDS
        except OSError as error:
            log.info("no memory images on this host, programs start from the image: %s", error)
        except Exception:
            log.exception("preparing a program failed; it starts from its earlier memory")
        with self._lock:
            self._due = due
            self._under_way = False


_renewals: dict[tuple[int, str], Renewal] = {}
"""By engine and module. A renewal references its engine, so the engine's id stays unique."""
