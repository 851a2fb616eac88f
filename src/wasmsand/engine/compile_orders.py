"""Orders to compile modules that guests made.

Owns the content of an order, its cancellation, and how it can fail. Rules: a module that a guest
made is hostile, so every order has limits. The caller can cancel its order from another thread.
`abilities.CompileWorkers` executes orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from wasmsand.engine.protocol import ModuleRejected


class CompileTooCostly(ModuleRejected):
    """Compiling exceeded a limit; the message says which."""

    def __init__(self, message: str, *, of_time: bool) -> None:
        super().__init__(message)
        self.of_time = of_time


class CompileUnavailable(Exception):
    """The host cannot compile this now, through no fault of the module; the message says why."""


class CompileCancelled(Exception):
    """The order was cancelled."""


class CompileCancellation:
    """Cancels a compilation from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the compilation. Idempotent; never waits."""
        with self._lock:
            self.cancelled = True
            for callback in self._callbacks:
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Within this block, call `callback` on cancellation. It must not wait."""
        with self._lock:
            if self.cancelled:
                raise CompileCancelled
            self._callbacks.append(callback)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """The limits of one compilation."""

    cpu_seconds: int
    memory_bytes: int
    output_bytes: int
    shape: Mapping[str, int]
    """Limits on the module's content; the names are those in `kernel/limits.py`."""
    small: bool
    """Whether it compiles quickly, so that it need not wait for larger modules."""
    queue: int
    """How many orders may wait at the same time."""


@dataclass(slots=True)
class CompileOrder:
    """One module to compile."""

    key: str
    """The sha256 of its bytes, in hexadecimal."""
    size: int
    pieces: Callable[[], Iterable[bytes]]
    """Reads the module. An exception raised by it ends the compilation."""
    limits: CompileLimits
    priority: float
    """Among waiting orders, the smallest number goes first."""
    cancellation: CompileCancellation
    limited_by_module: bool = True
    """Whether the limits are those for every module of this size. If so, a module that exceeds them
    stays rejected."""
    begun: bool = False
    """Whether a compilation started, and so must be charged; set by the engine."""
    cpu_seconds: float = 0.0
    """Processor time used; set by the engine."""
