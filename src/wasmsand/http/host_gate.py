"""Refuses new sandboxes while the host is full.

Owns `HostGate`: the memory of the server's processes and the load of the host, measured from time
to time. Rules: a measurement is at most `_FRESH_SECONDS` old. Until the next one, each admitted
sandbox counts with `_NEW_BYTES`, so that a burst cannot pass. What the system does not report is
not limited. A refusal is 503 with `Retry-After`; with a store, the server first pauses idle
sandboxes to make room.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wasmsand.http.failures import ApiFailure

if TYPE_CHECKING:
    from wasmsand.http.settings import Settings

_FRESH_SECONDS: Final = 1.0
_NEW_BYTES: Final = 16 << 20
"""What a new sandbox is expected to need at first."""
_RETRY_SECONDS: Final = 5.0
_PROC: Final = Path("/proc")


class HostGate:
    """Admission of new sandboxes."""

    def __init__(
        self,
        host_memory: int | None,
        max_load: float | None,
        *,
        memory: Callable[[], int | None] | None = None,
        load: Callable[[], float | None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`host_memory` bounds the memory of this process and its children, `max_load` the host's
        load average per core. None is no limit."""
        self._host_memory = host_memory
        self._max_load = max_load
        self._memory = memory or memory_of_processes
        self._load = load or load_per_core
        self._clock = clock
        self._measured = float("-inf")
        self._used: int | None = None
        self._loaded: float | None = None
        self._admitted = 0

    @classmethod
    def of(cls, settings: Settings) -> HostGate | None:
        """The gate that the settings want."""
        if settings.host_memory is None and settings.max_load is None:
            return None
        return cls(settings.host_memory, settings.max_load)

    def admit(self) -> None:
        """Count a new sandbox. Raises `server_full`."""
        now = self._clock()
        if now - self._measured >= _FRESH_SECONDS:
            self._used = None if self._host_memory is None else self._memory()
            self._loaded = None if self._max_load is None else self._load()
            self._measured, self._admitted = now, 0
        if self._loaded is not None and self._loaded > (self._max_load or 0):
            raise _full(
                f"the load of the host is {self._loaded:.1f} per core; try later, or start the "
                "server with a larger --max-load"
            )
        if self._used is not None and self._host_memory is not None:
            used = self._used + (self._admitted + 1) * _NEW_BYTES
            if used > self._host_memory:
                raise _full(
                    f"the sandboxes use {self._used} of {self._host_memory} bytes of memory; try "
                    "later, or start the server with a larger --host-memory"
                )
        self._admitted += 1


def _full(message: str) -> ApiFailure:
    return ApiFailure(503, "server_full", message, retry_after=_RETRY_SECONDS)


def load_per_core() -> float | None:
    """The load average of the last minute, per core; None if the system has none."""
    if not hasattr(os, "getloadavg"):
        return None
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def memory_of_processes() -> int | None:
    """What this process and its descendants hold of the host's memory, without files that they
    map, which they share; None if the system does not say."""
    total = 0
    for pid in family_of(os.getpid()):
        try:
            status = (_PROC / str(pid) / "status").read_text()
        except OSError:
            continue  # it has ended
        for line in status.splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total or None


def family_of(root: int) -> Iterator[int]:
    """A process and its descendants."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        try:
            for task in os.listdir(_PROC / str(pid) / "task"):
                children = (_PROC / str(pid) / "task" / task / "children").read_text()
                waiting += map(int, children.split())
        except OSError:
            continue
