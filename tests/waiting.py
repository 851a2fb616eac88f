"""Waiting for what another thread or process does. Every wait has a bound."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds: far more than a working host needs, however busy it is."""


def eventually(
    condition: Callable[[], object], seconds: float = PATIENCE, pause: float = 0.005
) -> bool:
    """Wait until the condition holds; False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def wait_until(
    condition: Callable[[], object],
    failure: str = "the condition never became true",
    seconds: float = PATIENCE,
    pause: float = 0.005,
) -> None:
    """Wait until the condition holds; the test fails if it does not within `seconds`."""
    assert eventually(condition, seconds, pause), failure
