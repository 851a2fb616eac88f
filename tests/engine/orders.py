"""Orders to compile a module apart, for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

from wasmsand.engine.compile_orders import CompileCancellation, CompileLimits, CompileOrder
from wasmsand.kernel.limits import COMPILED_BYTES_MAX, MIB, MODULE_SHAPE_MAX

NO_LIMITS = dict.fromkeys(MODULE_SHAPE_MAX, 1 << 40)
"""No limits on shape, so that the limits of the worker process end a compilation."""


def order(
    wasm: bytes,
    *,
    cpu_seconds: int = 20,
    memory_bytes: int = 512 * MIB,
    output_bytes: int = COMPILED_BYTES_MAX,
    shape: Mapping[str, int] = MODULE_SHAPE_MAX,
    small: bool = False,
    queue: int = 64,
    priority: float = 0.0,
    pieces: Callable[[], Iterable[bytes]] | None = None,
) -> CompileOrder:
    """An order for these bytes."""
    return CompileOrder(
        key=hashlib.sha256(wasm).hexdigest(),
        size=len(wasm),
        pieces=pieces or (lambda: [wasm]),
        limits=CompileLimits(cpu_seconds, memory_bytes, output_bytes, shape, small, queue),
        priority=priority,
        cancellation=CompileCancellation(),
    )
