"""A priority queue of deadlines.

Owns `Deadlines`, keys ordered by time. Rules: a key has one time; setting it again replaces the
time. Cancelled and replaced entries do not accumulate: the heap has at most about two entries per
key.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_SLACK: Final = 64


class Deadlines(Generic[Key]):
    """Keys, each with the time at which it is due."""

    __slots__ = ("_heap", "_next", "_times")

    def __init__(self) -> None:
        self._times: dict[Key, tuple[int, int]] = {}
        """By key: its time, and the number of its valid entry."""
        self._heap: list[tuple[int, int, Key]] = []
        """Entries by time; some are outdated."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._times)

    def __contains__(self, key: Key) -> bool:
        return key in self._times

    @property
    def entries(self) -> int:
        """The number of entries in the heap, including outdated ones."""
        return len(self._heap)

    def get(self, key: Key) -> int | None:
        """When `key` is due, or None."""
        found = self._times.get(key)
        return None if found is None else found[0]

    def set(self, key: Key, when: int) -> None:
        """Set or replace the time at which `key` is due."""
        number = self._next
        self._next = number + 1
        self._times[key] = (when, number)
        heapq.heappush(self._heap, (when, number, key))
        self._tidy()

    def cancel(self, key: Key) -> None:
        """Remove `key`."""
        if self._times.pop(key, None) is not None:
            self._tidy()

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._times) + _SLACK:
            self._heap = [(when, number, key) for key, (when, number) in self._times.items()]
            heapq.heapify(self._heap)

    def _drop_old(self) -> None:
        heap, times = self._heap, self._times
        while heap:
            when, number, key = heap[0]
            if times.get(key) == (when, number):
                return
            heapq.heappop(heap)

    def earliest(self) -> int | None:
        """When the first key is due, or None."""
        self._drop_old()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key, if it is due."""
        self._drop_old()
        if not self._heap or self._heap[0][0] > now:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._times[key]
        return key
