"""Clocks of a sandbox.

Owns the source of time. Rules: times are integers in nanoseconds. A guest cannot set a clock. Every
deadline of guests and commands is a time of the sandbox's monotonic clock; code that waits for it
asks `host_seconds` how long that takes on the host. A clock that jumps calls its followers, so that
nobody keeps waiting for a time that has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECOND: Final = 1_000_000_000


class Clock:
    """Wall-clock time and monotonic time, in nanoseconds. Both default to the host's."""

    __slots__ = ("boot_ns", "monotonic", "realtime")

    def __init__(
        self,
        realtime: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.realtime = realtime
        self.monotonic = monotonic
        self.boot_ns = monotonic()

    @property
    def is_of_host(self) -> bool:
        """Whether monotonic time is the host's."""
        return self.monotonic is time.monotonic_ns

    def uptime(self) -> int:
        """Nanoseconds since the sandbox was created."""
        return self.monotonic() - self.boot_ns

    def deadline(self, seconds: float | None) -> int | None:
        """The monotonic time `seconds` from now; None means no limit."""
        return None if seconds is None else self.monotonic() + int(seconds * SECOND)

    def host_seconds(self, until_ns: int) -> float | None:
        """How many seconds the host must wait for this monotonic time. None: until the clock
        jumps."""
        return max(0.0, (until_ns - self.monotonic()) / SECOND)

    def follow(self, jumped: Callable[[], None]) -> None:
        """Call `jumped` after every jump, with no lock held. This clock never jumps."""

    def unfollow(self, jumped: Callable[[], None]) -> None:
        """Stop calling `jumped`; a call that has started may still arrive."""


class ManualClock(Clock):
    """A clock that stands still until `advance` moves it: tests skip hours with it, and programs
    that are stored at a checkpoint see no time pass."""

    __slots__ = ("_followers", "_monotonic_ns", "_realtime_ns")

    def __init__(self, realtime_ns: int = 0, monotonic_ns: int = SECOND) -> None:
        self._realtime_ns = realtime_ns
        self._monotonic_ns = monotonic_ns
        # Adding, removing and copying are atomic, so host threads need no lock.
        self._followers: dict[Callable[[], None], None] = {}
        super().__init__(lambda: self._realtime_ns, lambda: self._monotonic_ns)

    def advance(self, seconds: float) -> None:
        """Advance time in one step. The caller must not hold a sandbox's lock."""
        passed = int(seconds * SECOND)
        self._realtime_ns += passed
        self._monotonic_ns += passed
        for jumped in tuple(self._followers):
            jumped()

    def host_seconds(self, until_ns: int) -> float | None:
        return None if until_ns > self._monotonic_ns else 0.0

    def follow(self, jumped: Callable[[], None]) -> None:
        self._followers[jumped] = None

    def unfollow(self, jumped: Callable[[], None]) -> None:
        self._followers.pop(jumped, None)
