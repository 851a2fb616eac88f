"""Programs that start prepared are prepared again by the host, now and then.

Owns which memory a start of such a program begins with. The image's own preparation is the
same everywhere, and with it whatever the program drew at random then, as the seed of Python's
hashes. So a host prepares the program once more, with random numbers of its own, and later
starts begin with that. Rules: no start waits for it; there is no timer, a start that finds
the newest preparation old has the next one made beside it, so that a host where nothing starts
does nothing; there is one at a time, and the first only when the host goes on starting the
program; images that processes still live in are few, since each costs its whole memory;
whatever fails, starts go on with what there is.

The thread that prepares has no lower priority than others: it holds the interpreter's lock now
and then, for which everybody would wait until it is its turn.
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
"""Of the host's environment: `off` leaves all starts with the preparation of the image."""
FIRST_AFTER_SECONDS: Final = 1.0
"""After the first start. A host that starts a few programs and ends does not pay for it."""
RENEWED_AFTER_SECONDS: Final = 60.0
"""Python takes 0.45 s of a processor to prepare: less than a hundredth of one."""
IMAGES_MAX: Final = 4
"""Images of one program that there are at once, old ones that processes live in included."""


def newest_image(engine: Engine, key: str) -> MemoryImage | None:
    """What a start of the module with this key begins with; None is its own data."""
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
    # Which imports the machine, whose programs these are.
    from wasmsand.machine.checkpoint import capture_at_checkpoint

    try:
        return capture_at_checkpoint(plain.names[0], image=base_image(), engine=engine)
    finally:
        engine.unload(plain.sha256)  # most likely nobody else wants its code in memory


class Renewal:
    """The preparations of one program; any thread may ask for the newest."""

    def __init__(
        self,
        prepare: Callable[[], MemoryImage],
        start_thread: Callable[[Callable[[], None]], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`prepare` takes long, and is called on a thread that `start_thread` starts."""
        self._prepare = prepare
        self._start_thread = start_thread
        self._monotonic = monotonic
        self._newest: MemoryImage | None = None
        self._alive: weakref.WeakSet[MemoryImage] = weakref.WeakSet()
        self._lock = allocate_lock()
        # Guarded by the lock:
        self._due: float | None = None
        """When a start may have the next one made; None before the first start."""
        self._under_way = False

    def newest(self) -> MemoryImage | None:
        """What a start is to begin with."""
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
        except RuntimeError as error:  # the host has no thread left: not the start's fault
            log.info("no thread to prepare a program on: %s", error)
            with self._lock:
                self._due = now + RENEWED_AFTER_SECONDS
                self._under_way = False

    def _renew(self) -> None:
        due = math.inf  # what failed once is not tried again
        try:
            image = self._prepare()
            self._alive.add(image)
            self._newest = image
            due = self._monotonic() + RENEWED_AFTER_SECONDS
        except OSError as error:
            log.info("the host has no memory images, starts have that of the image: %s", error)
        except Exception:
            log.exception("a program could not be prepared again; its starts go on as before")
        with self._lock:
            self._due = due
            self._under_way = False


_renewals: dict[tuple[int, str], Renewal] = {}
"""By engine and module; a renewal holds its engine, so the number stays its own."""
