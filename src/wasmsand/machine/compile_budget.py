"""The compile budget of one sandbox.

Owns how much processor time and how many modules a sandbox may spend on compiling programs that
its guests made, and the limits for one module by its size. Rules: a compilation is charged whether
it succeeds or not. The budget is regained with time, so that a long-lived sandbox does not get
stuck. Only one thread at a time uses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from wasmsand.engine.compile_orders import CompileLimits
from wasmsand.kernel.limits import (
    COMPILE_BUDGET_MODULES,
    COMPILE_BUDGET_SECONDS,
    COMPILE_BUDGET_SHARE,
    COMPILE_MEMORY_BASE,
    COMPILE_MEMORY_MAX,
    COMPILE_MEMORY_PER_BYTE,
    COMPILE_MODULES_PER_SECOND,
    COMPILE_QUEUE_MAX,
    COMPILE_SECONDS_BASE,
    COMPILE_SECONDS_MAX,
    COMPILE_SECONDS_PER_MIB,
    COMPILED_BYTES_MAX,
    MIB,
    MODULE_SHAPE_MAX,
    SMALL_MODULE_BYTES,
)

_WORTHWHILE_SECONDS: Final = 1
"""Time limits are whole seconds, so a compilation is not started with less than this left."""


class BudgetSpent(Exception):
    """The budget is used up; the message says which one and when to try again."""


def seconds_for(size: int) -> int:
    """Processor seconds allowed for a module of this size."""
    wanted = COMPILE_SECONDS_BASE + COMPILE_SECONDS_PER_MIB * size // MIB
    return min(wanted, COMPILE_SECONDS_MAX)


class CompileBudget:
    """The budget of one sandbox."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._seconds = COMPILE_BUDGET_SECONDS
        self._modules = COMPILE_BUDGET_MODULES
        self._looked_at = monotonic()

    @property
    def spent(self) -> float:
        """Seconds of the budget that are used up."""
        self._regain()
        return COMPILE_BUDGET_SECONDS - self._seconds

    def limits(self, size: int) -> CompileLimits:
        """The limits for a module of this size. Raises `BudgetSpent`."""
        self._regain()
        if self._modules < 1:
            raise BudgetSpent(
                f"this sandbox has compiled {COMPILE_BUDGET_MODULES:.0f} programs; it may compile "
                f"another in {(1 - self._modules) / COMPILE_MODULES_PER_SECOND:.0f} s"
            )
        if self._seconds < _WORTHWHILE_SECONDS:
            wait = (_WORTHWHILE_SECONDS - self._seconds) / COMPILE_BUDGET_SHARE
            raise BudgetSpent(
                f"this sandbox has used {COMPILE_BUDGET_SECONDS:.0f} s of processor time for "
                f"compiling programs; try again in {wait:.0f} s"
            )
        memory = COMPILE_MEMORY_BASE + COMPILE_MEMORY_PER_BYTE * size
        return CompileLimits(
            cpu_seconds=min(seconds_for(size), int(self._seconds)),
            memory_bytes=min(memory, COMPILE_MEMORY_MAX),
            output_bytes=COMPILED_BYTES_MAX,
            shape=MODULE_SHAPE_MAX,
            small=size <= SMALL_MODULE_BYTES,
            queue=COMPILE_QUEUE_MAX,
        )

    def charge(self, cpu_seconds: float) -> None:
        """Charge one compilation that was started."""
        self._regain()
        self._seconds -= cpu_seconds
        self._modules -= 1

    def _regain(self) -> None:
        now = self._monotonic()
        passed, self._looked_at = now - self._looked_at, now
        self._seconds = min(COMPILE_BUDGET_SECONDS, self._seconds + passed * COMPILE_BUDGET_SHARE)
        self._modules = min(
            COMPILE_BUDGET_MODULES, self._modules + passed * COMPILE_MODULES_PER_SECOND
        )
