"""Modules that guests made: compiled by a worker, checked, cached.

Owns the path from an order to a module. Rules: no such module is compiled in this process, unless
the host's user requests it. Only modules that passed every check enter the cache; rejected modules
are remembered, so that starting them again costs nothing. The host never holds a whole module or a
whole result in memory, only pieces.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from signal import Signals
from typing import Final

from wasmsand.engine.compile_orders import CompileOrder, CompileTooCostly, CompileUnavailable
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.bindings import LIBRARY, CData, WasmtimeError
from wasmsand.engine.wasmtime.compile_cache import NewEntry
from wasmsand.engine.wasmtime.compile_pool import CompilePool, shared_pool
from wasmsand.engine.wasmtime.compiler import (
    compile_module,
    load_compiled,
    open_compiled,
    serialise,
)
from wasmsand.engine.wasmtime.config import PARALLEL_COMPILATION, configuration
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.engine.wasmtime.module_shape import Refused, Unreadable, check_shape
from wasmsand.engine.wasmtime.runtime import Runtime
from wasmsand.engine.wasmtime.worker_process import (
    MODE_VARIABLE,
    Outcome,
    OutputTooLarge,
    WorkerSetup,
)

logger = logging.getLogger("wasmsand.engine")

REJECTIONS_MAX: Final = 1024
_TIME_SIGNALS: Final = ("SIGXCPU", "SIGALRM")
_KILLED: Final = 9


class ApartCompiler:
    """Compiles for one engine, with the workers of this host process."""

    def __init__(
        self,
        runtime: Runtime,
        probe: bytes,
        find: Callable[[str], WasmtimeModule | None],
        remember: Callable[[str, CData], WasmtimeModule],
    ) -> None:
        """`probe` is an empty module as compiled by the engine; `find` returns a module that need
        not be compiled; `remember` checks a module and registers it with the engine."""
        self._runtime = runtime
        self._probe = probe
        self._find = find
        self._remember = remember
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._rejections: OrderedDict[str, str] = OrderedDict()

    def compile(self, order: CompileOrder) -> WasmtimeModule:
        """The module. Raises as described in `abilities.CompileWorkers`."""
        self._require_not_rejected(order.key)
        require_permission()
        pool = shared_pool()
        try:
            with pool.admitted(order):
                # Another order may have compiled it meanwhile.
                self._require_not_rejected(order.key)
                return self._find(order.key) or self._compile(order, pool)
        except CompileTooCostly as rejected:
            if order.limited_by_module:
                self._reject(order.key, str(rejected))
            raise
        except ModuleRejected as rejected:
            self._reject(order.key, str(rejected))
            raise

    def forget_rejections(self) -> None:
        """Rejected modules may be accepted now."""
        with self._lock:
            self._rejections.clear()

    def _compile(self, order: CompileOrder, pool: CompilePool) -> WasmtimeModule:
        started = time.monotonic()
        entry = self._runtime.cache.begin(order.key, transient=True)
        content = bytearray()  # used if the cache is not writable
        with entry or nullcontext():
            sink = content.extend if entry is None else entry.write
            try:
                if os.environ.get(MODE_VARIABLE) == "in-process":
                    outcome = self._compile_here(order, sink)
                else:
                    outcome = pool.run(self._setup(order), order, sink)
            except OutputTooLarge:
                raise CompileTooCostly(
                    f"compiles to more than {order.limits.output_bytes} bytes", of_time=False
                ) from None
            _require_success(order, outcome)
            logger.info(
                "compiled module %s... (%d bytes) in a worker in %.2f s, %.2f s of processor time",
                order.key[:12],
                order.size,
                time.monotonic() - started,
                outcome.cpu_seconds,
            )
            module = self._remember(order.key, self._open(entry, content))
            if entry is not None:
                entry.commit()
            return module

    def _compile_here(self, order: CompileOrder, sink: Callable[[bytes], None]) -> Outcome:
        """Used if the host's user disabled workers."""
        order.begun = True
        wasm, started = b"".join(order.pieces()), time.thread_time()
        try:
            check_shape(wasm, order.limits.shape)
        except (Refused, Unreadable) as refusal:
            return Outcome(str(refusal), 0, 0.0)
        sink(serialise(compile_module(self._runtime.engine, wasm)))
        order.cpu_seconds = time.thread_time() - started
        return Outcome(None, 0, order.cpu_seconds)

    def _open(self, entry: NewEntry | None, content: bytearray) -> CData:
        try:
            if entry is None:
                return load_compiled(self._runtime.engine, bytes(content))
            if not entry.finish():
                raise CompileUnavailable("the compiled program could not be written to the cache")
            return open_compiled(self._runtime.engine, entry.temporary)
        except WasmtimeError as error:
            raise CompileUnavailable(f"the compiled program cannot be opened: {error}") from None

    def _setup(self, order: CompileOrder) -> WorkerSetup:
        settings = dict(configuration(self._runtime.settings))
        settings[PARALLEL_COMPILATION] = False  # one processor per worker, and the worker forks
        return WorkerSetup(
            str(LIBRARY), tuple(settings.items()), tuple(order.limits.shape.items()), self._probe
        )

    def _require_not_rejected(self, key: str) -> None:
        with self._lock:
            reason = self._rejections.get(key)
            if reason is not None:
                self._rejections.move_to_end(key)
                raise ModuleRejected(reason)

    def _reject(self, key: str, reason: str) -> None:
        with self._lock:
            self._rejections[key] = reason
            if len(self._rejections) > REJECTIONS_MAX:
                self._rejections.popitem(last=False)


def require_permission() -> None:
    """Raise `ModuleRejected` if the host's user does not want compilations in this process."""
    if os.environ.get(MODE_VARIABLE) == "never":
        raise ModuleRejected(
            f"not compiled yet, and {MODE_VARIABLE}=never: run `wasmsand warm` without it"
        )


def _require_success(order: CompileOrder, outcome: Outcome) -> None:
    """Raise the exception for an outcome, unless the module was compiled."""
    if outcome.rejection is not None:
        raise ModuleRejected(outcome.rejection)
    if outcome.code == 0:
        return
    limits, signal = order.limits, -outcome.code
    name = Signals(signal).name if signal in set(Signals) else ""
    logger.info("the compiler of module %s... ended with %d", order.key[:12], outcome.code)
    if name in _TIME_SIGNALS or outcome.cpu_seconds >= limits.cpu_seconds:
        raise CompileTooCostly(
            f"takes more than {limits.cpu_seconds} s of processor time to compile", of_time=True
        )
    if signal == _KILLED:
        raise CompileUnavailable("the compiler of this program was killed")
    raise CompileTooCostly(
        f"takes more than {limits.memory_bytes} bytes of memory to compile"
        + ("" if name == "SIGABRT" else f", or crashes the compiler ({name or outcome.code})"),
        of_time=False,
    )
