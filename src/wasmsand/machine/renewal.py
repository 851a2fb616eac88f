"""The memory with which prepared programs start, and the host's periodic re-preparation of them.

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
from wasmsand.machine.image import base_image, image_at, image_programs
from wasmsand.machine.image_directory import ProgramFile, prepared_program

log = logging.getLogger("wasmsand.machine")

VARIABLE: Final = "WASMSAND_RENEWAL"
"""Host environment variable: `off` makes all starts use the image's own preparation."""
FIRST_AFTER_SECONDS: Final = 1.0
"""Delay after the first start, so that short-lived hosts do not pay for a preparation: this long
for each `FIRST_AFTER_BYTES` of stored memory, because a program with more takes longer to prepare.
"""
FIRST_AFTER_BYTES: Final = 16 << 20
RENEWED_AFTER_SECONDS: Final = 60.0
"""Preparing the small Python takes 0.45 s: less than one percent of a processor."""
RENEWED_AFTER_COSTS: Final = 100
"""A program is prepared again after at least so many times what the last preparation took."""
IMAGES_MAX: Final = 4
"""The most images of one program at once, including old ones that processes still use."""


class PreparedMemories:
    """The memory with which programs start on one engine; see `loading.Memories`. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, Renewal] = {}

    def find(self, key: str) -> MemoryImage | None:
        """The newest memory, or None if its file has to be read first. Returns at once."""
        renewal = self._known.get(key)
        if renewal is None:
            program = prepared_program(key)
            assert program.prepared is not None
            image = self._engine.abilities.memory_images.find(program.prepared.memory)
            if image is None:
                return None
            renewal = self._know(key, program, image)
        return self._newest(renewal)

    def load(self, key: str) -> MemoryImage:
        """The newest memory. Raises `ModuleRejected` if the file that it comes from is damaged."""
        renewal = self._known.get(key)
        if renewal is None:
            program = prepared_program(key)
            assert program.prepared is not None
            image = self._engine.abilities.memory_images.load(program.prepared.memory)
            renewal = self._know(key, program, image)
        return self._newest(renewal)

    def stored(self, key: str) -> MemoryImage:
        """The memory of the image itself, which is the same on every host. Raises
        `ModuleRejected` if its file is damaged."""
        if key not in self._known:
            self.load(key)
        return self._known[key].stored

    def _know(self, key: str, program: ProgramFile, image: MemoryImage) -> Renewal:
        renewal = Renewal(
            image, partial(_prepare, self._engine, program), self._engine.start_thread
        )
        return self._known.setdefault(key, renewal)

    def _newest(self, renewal: Renewal) -> MemoryImage:
        renewable = self._engine.abilities.memory_images.available
        if not renewable or os.environ.get(VARIABLE) == "off":
            return renewal.stored
        return renewal.newest()


def prepared_memories(engine: Engine) -> PreparedMemories:
    """The prepared memories that all machines on this engine share."""
    found = _memories.get(id(engine))
    if found is None:
        found = _memories.setdefault(id(engine), PreparedMemories(engine))
    return found


_memories: dict[int, PreparedMemories] = {}
"""By engine. The value references its engine, so the engine's id stays unique."""


def _prepare(engine: Engine, program: ProgramFile) -> MemoryImage:
    # Imported here, because `checkpoint` imports `machine`, which imports this module.
    from wasmsand.machine.checkpoint import capture_at_checkpoint

    assert program.prepared is not None
    entry = program.prepared.memory.start.entry
    image = base_image() if program in image_programs() else image_at(program.path.parent)
    return capture_at_checkpoint(program.names[0], entry, image=image, engine=engine)


class Renewal:
    """The preparations of one program. Thread-safe."""

    def __init__(
        self,
        stored: MemoryImage,
        prepare: Callable[[], MemoryImage],
        start_thread: Callable[[Callable[[], None]], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stored` is the memory of the image. `prepare` is slow; it is called on a thread that
        `start_thread` starts."""
        self.stored = stored
        self._prepare = prepare
        self._start_thread = start_thread
        self._monotonic = monotonic
        self._newest = stored
        self._alive: weakref.WeakSet[MemoryImage] = weakref.WeakSet()
        self._lock = allocate_lock()
        # Guarded by the lock:
        self._due: float | None = None
        """When a start may trigger the next preparation; None before the first start."""
        self._under_way = False

    def newest(self) -> MemoryImage:
        """The image with which a start begins."""
        now = self._monotonic()
        if self._due is None or now >= self._due:
            self._begin(now)
        return self._newest

    def _begin(self, now: float) -> None:
        with self._lock:
            if self._due is None:
                parts = max(1.0, self.stored.size / FIRST_AFTER_BYTES)
                self._due = now + FIRST_AFTER_SECONDS * parts
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
        begun = self._monotonic()
        try:
            image = self._prepare()
            self._alive.add(image)
            self._newest = image
            now = self._monotonic()
            due = now + max(RENEWED_AFTER_SECONDS, RENEWED_AFTER_COSTS * (now - begun))
        except OSError as error:
            log.info("no memory images on this host, programs start from the image: %s", error)
        except Exception:
            log.exception("preparing a program failed; it starts from its earlier memory")
        with self._lock:
            self._due = due
            self._under_way = False
