"""The host's look-ups for one sandbox.

Owns `HostAddresses`. Rules: look-ups run on worker threads, a bounded number at once per sandbox;
those who want the same name wait for the same look-up. Answers are kept for a moment, so that a
look-up and the connections after it ask the host once. An address is decided when it is connected
to, never here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from wasmsand.kernel.limits import (
    NETWORK_LOOKUPS_MAX,
    NETWORK_NAMES_MAX,
    NETWORK_WAITING_MAX,
)
from wasmsand.machine.network.lookup import look_up, workers

Addresses = tuple[str, ...]
_FRESH_SECONDS: Final = 10.0


class TooManyLookups(Exception):
    """The sandbox has as many look-ups under way as it may."""


class HostAddresses:
    """The addresses of names, as the host resolves them."""

    def __init__(
        self,
        resolve: Callable[[str], Addresses] = look_up,
        fresh_seconds: float = _FRESH_SECONDS,
    ) -> None:
        """`resolve` blocks, and is called on a worker thread. An answer is used again for
        `fresh_seconds`."""
        self._resolve = resolve
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Addresses]] = {}
        self._waiting: dict[str, list[Callable[[Addresses], None]]] = {}
        self._waiters = 0
        """How many wait for all names together: a guest can ask again and again."""

    def find(self, name: str, done: Callable[[Addresses], None]) -> Addresses | None:
        """The addresses of `name` if they are known; otherwise None, and `done` is called with them
        later, on a worker thread. Raises `TooManyLookups`."""
        with self._lock:
            known = self._known.get(name)
            if known is not None and known[0] > time.monotonic():
                return known[1]
            waiting = self._waiting.get(name)
            if self._waiters >= NETWORK_WAITING_MAX:
                raise TooManyLookups
            if waiting is None and len(self._waiting) >= NETWORK_LOOKUPS_MAX:
                raise TooManyLookups
            self._waiters += 1
            if waiting is not None:
                waiting.append(done)
                return None
            self._waiting[name] = [done]
        workers().submit(partial(self._look_up, name))
        return None

    def _look_up(self, name: str) -> None:
        addresses: Addresses = ()
        try:
            addresses = self._resolve(name)
        finally:
            with self._lock:
                while len(self._known) >= NETWORK_NAMES_MAX:
                    del self._known[next(iter(self._known))]
                self._known[name] = (time.monotonic() + self._fresh_seconds, addresses)
                waiting = self._waiting.pop(name)
                self._waiters -= len(waiting)
            for done in waiting:
                done(addresses)
