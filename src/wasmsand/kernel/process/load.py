"""Load averages.

Owns how load averages decay. Rules: there is no background sampling; the averages are updated when
they are read, from the processor time used since the last update. So they count processes that
computed, not those that waited for a processor.
"""

from __future__ import annotations

import math
from typing import Final

from wasmsand.kernel.clock import SECOND

_PERIODS_NS: Final = (60 * SECOND, 5 * 60 * SECOND, 15 * 60 * SECOND)
_SAMPLE_NS: Final = 5 * SECOND
"""Linux's sampling interval; reading more often changes nothing."""


class LoadAverages:
    """The averages over 1, 5 and 15 minutes."""

    __slots__ = ("_averages", "_cpu_ns", "_uptime_ns")

    def __init__(self) -> None:
        self._averages = (0.0, 0.0, 0.0)
        self._uptime_ns = 0
        self._cpu_ns = 0

    def averages(self, uptime_ns: int, cpu_ns: int) -> tuple[float, float, float]:
        """The current averages, given that all processes together have used `cpu_ns`."""
        elapsed = uptime_ns - self._uptime_ns
        if elapsed >= _SAMPLE_NS:
            load = max(0, cpu_ns - self._cpu_ns) / elapsed
            one, five, fifteen = [
                load + (average - load) * math.exp(-elapsed / period)
                for average, period in zip(self._averages, _PERIODS_NS, strict=True)
            ]
            self._averages = one, five, fifteen
            self._uptime_ns, self._cpu_ns = uptime_ns, cpu_ns
        return self._averages
