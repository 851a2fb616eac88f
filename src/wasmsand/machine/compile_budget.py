"""What compiling costs one sandbox.

Owns the budget of processor time and modules that a sandbox spends on compiling what its guests
made, and the limits of one module by its size. Rules: what a compilation took is charged
whether it succeeded or not; the budget is regained with time, so that a sandbox that lives long
is not stuck; one thread at a time uses it.
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
"""A compilation is not begun with less: limits of time are in whole seconds."""


class BudgetSpent(Exception):
    """The sandbox has to wait; the message says for what."""


def seconds_for(size: int) -> int:
    """Processor time that a module of this size may take."""
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
        """Seconds of the budget that are spent."""
        self._regain()
        return COMPILE_BUDGET_SECONDS - self._seconds

    def limits(self, size: int) -> CompileLimits:
        """For a module of this size; raises `BudgetSpent`."""
        self._regain()
        if self._modules < 1:
            raise BudgetSpent(
                f"this sandbox has had {COMPILE_BUDGET_MODULES:.0f} programs compiled; it may "
                f"have another in {(1 - self._modules) / COMPILE_MODULES_PER_SECOND:.0f} s"
            )
        if self._seconds < _WORTHWHILE_SECONDS:
            wait = (_WORTHWHILE_SECONDS - self._seconds) / COMPILE_BUDGET_SHARE
            raise BudgetSpent(
                f"this sandbox has spent {COMPILE_BUDGET_SECONDS:.0f} s of a processor on "
                f"compiling programs; it may go on in {wait:.0f} s"
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
        """A compilation was begun, and took so long."""
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
