"""Clocks: clock_res_get and clock_time_get.

Rules: CPU clocks measure the calling process, which has one thread.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.wasi.context import WasiContext
from wasmsand.kernel.errno import Errno, KernelError

REALTIME: Final = 0
MONOTONIC: Final = 1
PROCESS_CPU: Final = 2
THREAD_CPU: Final = 3


def now(context: WasiContext, clock: int) -> int:
    """The current time of a clock in nanoseconds; EINVAL for an unknown clock."""
    if clock == REALTIME:
        return context.kernel.clock.realtime()
    if clock == MONOTONIC:
        return context.kernel.clock.monotonic()
    if clock in (PROCESS_CPU, THREAD_CPU):
        return context.cpu_time_ns()
    raise KernelError(Errno.EINVAL)


def clock_res_get(context: WasiContext, clock: int, result: int) -> int:
    """The resolution of a clock."""
    now(context, clock)
    context.memory.write_u64(result, 1)
    return 0


def clock_time_get(context: WasiContext, clock: int, precision: int, result: int) -> int:
    """The time of a clock, at the highest precision."""
    context.memory.write_u64(result, now(context, clock))
    return 0
