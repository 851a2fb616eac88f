"""Stores of ended copies, used again for the next copies of the same program.

Owns `SpareStores`. A new memory costs a page fault for each page that is copied to it, and freeing
it costs as much again: together half of the time of a fork. The memory of a copy that has ended has
these pages already. Rules: a store is used again only in the sandbox in which it ran, and only for
a copy of the same program. Whoever takes it overwrites every page that it has written
(`Spare.written`), so that nothing is left of the copy that ran before. Spare stores are few, small,
and freed after a moment: they are on no sandbox's account.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.engine.wasmtime.store import GuestStore

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.layered_image import LayeredImage
    from wasmsand.engine.wasmtime.memory_image import MappedImage
    from wasmsand.engine.wasmtime.module import WasmtimeModule

SPARES_MAX: Final = 16
"""Spare stores of this host process at the same time."""
MEMORY_MAX: Final = 32 << 20
"""The largest memory of a spare store: its page map is read when its copy ends."""
SPARE_EXCEPTION_BYTES: Final = 256 << 10
"""The largest exception heap of a spare store."""
WRITTEN_MAX: Final = 1 << 20
"""How much of its memory a spare store may have written."""


class Spare(NamedTuple):
    """A store that can be used again."""

    store: GuestStore
    realm: object
    module: WasmtimeModule
    image: MappedImage | LayeredImage | None
    size: int
    """Bytes of its memory."""
    written: list[tuple[int, int]]
    """The parts of its memory that were written (start and end)."""
    since: float


class SpareStores:
    """All spare stores of an engine. Any thread may use it."""

    def __init__(self, seconds: float) -> None:
        """A store is kept for `seconds` at least, unless newer ones take its place."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._spares: list[Spare] = []
        """The oldest first; guarded by the lock."""

    def keep(self, spare: Spare) -> None:
        """From now on, `take` may return this store."""
        with self._lock:
            self._spares.append(spare)
            oldest = self._spares.pop(0) if len(self._spares) > SPARES_MAX else None
        if oldest is not None:
            oldest.store.free()

    def take(
        self,
        realm: object,
        module: WasmtimeModule,
        image: MappedImage | LayeredImage | None,
        size: int,
    ) -> Spare | None:
        """A store for a copy of a program of this sandbox, whose memory has `size` bytes: the one
        that was kept last, because it is most likely in the processor's caches."""
        spares = self._spares
        if not spares:
            return None
        with self._lock:
            for index in range(len(spares) - 1, -1, -1):
                spare = spares[index]
                if (
                    spare.realm is realm
                    and spare.module is module
                    and spare.image is image
                    and spare.size <= size  # a memory cannot shrink
                ):
                    del spares[index]
                    return spare
        return None

    def free_old(self) -> None:
        """Free the stores that nobody has taken for a while."""
        before = time.monotonic() - self._seconds
        with self._lock:
            old = [spare for spare in self._spares if spare.since < before]
            self._spares = [spare for spare in self._spares if spare.since >= before]
        for spare in old:
            spare.store.free()

    def __len__(self) -> int:
        """The number of spare stores."""
        return len(self._spares)
