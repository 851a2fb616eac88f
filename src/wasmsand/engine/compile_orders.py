"""Orders to compile modules that guests made.

Owns what such an order says, how it is cancelled, and how it can fail. Rules: a module that a
guest made is hostile until it is compiled, so every order has limits; whoever gives an order can
cancel it from another thread. `abilities.CompileWorkers` takes orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from wasmsand.engine.protocol import ModuleRejected


class CompileTooCostly(ModuleRejected):
    """Compiling took more than its limits; the message says of what."""

    def __init__(self, message: str, *, of_time: bool) -> None:
        super().__init__(message)
        self.of_time = of_time


class CompileUnavailable(Exception):
    """The host cannot compile this now, which is not the module's fault; says why."""


class CompileCancelled(Exception):
    """Nobody wants the module any more."""


class CompileCancellation:
    """Ends a compilation from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.cancelled = False

    def cancel(self) -> None:
        """End it; idempotent. Never waits."""
        with self._lock:
            self.cancelled = True
            for callback in self._callbacks:
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have `callback` called when it is cancelled, in this block only. It must not wait."""
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
    """What a compilation may cost."""

    cpu_seconds: int
    memory_bytes: int
    output_bytes: int
    shape: Mapping[str, int]
    """What the module may hold; names as in `kernel/limits.py`."""
    small: bool
    """Whether it is done soon, so that it need not wait for larger ones."""
    queue: int
    """How many others may wait at the same time."""


@dataclass(slots=True)
class CompileOrder:
    """One module to compile."""

    key: str
    """The hex sha256 of its bytes."""
    size: int
    pieces: Callable[[], Iterable[bytes]]
    """Reads the module. An exception that it raises ends the compilation."""
    limits: CompileLimits
    priority: float
    """Of the orders that wait, the one with the smallest number goes first."""
    cancellation: CompileCancellation
    limited_by_module: bool = True
    """Whether the limits are those of every module of this size. Then a module that exceeds them
    is rejected from now on."""
    begun: bool = False
    """Whether a compilation began, and so must be paid for; set by the engine."""
    cpu_seconds: float = 0.0
    """Processor time that it took; set by the engine."""
