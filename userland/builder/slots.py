"""Which build begins next, and how many run at once; which source is fetched next.

Owns the slots that builds take, and the turns of downloads. Rules: of the builds that could begin,
that with the greatest weight is next; so it is with sources. The weight is the time from a build's
start to the end of the last build that waits for it: the longest chains must not begin last. A
build can begin when its source is there and all builds that it needs have ended. The end of a build
gives its slot back and makes others ready in one step: if each thread had to wake up first, the
fastest one would get the slot.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Slots:
    """The slots of one run of the builder."""

    def __init__(
        self, count: int, needs: Mapping[str, set[str]], weights: Mapping[str, float]
    ) -> None:
        self._free = count
        self._weights = weights
        self._missing = {name: {*needed, f"source of {name}"} for name, needed in needs.items()}
        self._ready: set[str] = set()
        self._running: set[str] = set()
        self._changed = threading.Condition()

    def fetched(self, name: str) -> None:
        """The source of a recipe is there."""
        with self._changed:
            self._ends(f"source of {name}")

    def take(self, name: str) -> None:
        """Wait for a slot for this recipe, whose source and dependencies are there."""
        with self._changed:
            self._changed.wait_for(lambda: self._free > 0 and name == self._next())
            self._ready.remove(name)
            self._running.add(name)
            self._free -= 1
            self._changed.notify_all()

    def built(self, name: str) -> None:
        """The output of a recipe is there; it gives its slot back if it had one."""
        with self._changed:
            self._leave(name)
            self._ends(name)

    def failed(self, name: str) -> None:
        """A recipe will not be built; it gives its slot back if it had one."""
        with self._changed:
            self._leave(name)

    def _next(self) -> str:
        return max(self._ready, key=lambda name: (self._weights[name], name))

    def _ends(self, event: str) -> None:
        for name, missing in self._missing.items():
            if event in missing:
                missing.remove(event)
                if not missing:
                    self._ready.add(name)
        self._changed.notify_all()

    def _leave(self, name: str) -> None:
        if name in self._running:
            self._running.remove(name)
            self._free += 1
        self._ready.discard(name)
        # If it was cached, nothing makes it ready any more.
        self._missing.pop(name, None)
        self._changed.notify_all()


class Turns:
    """Lets one thread at a time go on: of those that wait, the one with the greatest weight."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._waiting: set[str] = set()
        self._taken = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many threads wait for their turn."""
        return len(self._waiting)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Wait for this recipe's turn, which lasts as long as the block."""
        with self._changed:
            self._waiting.add(name)
            self._changed.wait_for(lambda: not self._taken and name == self._next())
            self._waiting.remove(name)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()

    def _next(self) -> str:
        return max(self._waiting, key=lambda name: (self._weights[name], name))
