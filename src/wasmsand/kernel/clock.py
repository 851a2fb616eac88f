"""Clocks of a sandbox.

Owns where time comes from. Rules: nanoseconds as int everywhere; tests may give
their own sources; the guest cannot set a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SECOND = 1_000_000_000


class Clock:
    """Wall time and monotonic time, in nanoseconds."""

    __slots__ = ("boot_ns", "monotonic", "realtime")

    def __init__(
        self,
        realtime: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.realtime = realtime
        self.monotonic = monotonic
        self.boot_ns = monotonic()

    def uptime(self) -> int:
        """Nanoseconds since the sandbox was created."""
        return self.monotonic() - self.boot_ns
