"""The wasmtime engine: modules by content, threads, time.

Owns loading: a module is compiled once per machine and mapped once per process. Rules: one thread
at a time loads a given module; others wait for it. Whoever loads a module knows its program, and
says that it is compiled.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from wasmsand.engine.abilities import Abilities, CopiedImages
from wasmsand.engine.compile_orders import CompileOrder
from wasmsand.engine.freed_memory import FreedMemory, have_few_arenas
from wasmsand.engine.protocol import GuestUnwind, HostFunction
from wasmsand.engine.shipped_modules import ShippedIndex, installed_indexes
from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.abilities import (
    WasmtimeCopies,
    WasmtimeImages,
    WasmtimeMemoryControl,
    WasmtimeThreads,
)
from wasmsand.engine.wasmtime.apart import ApartCompiler, require_permission
from wasmsand.engine.wasmtime.bindings import RELEASE, CData, WasmtimeError, lib
from wasmsand.engine.wasmtime.compile_cache import CompileCache, default_directory
from wasmsand.engine.wasmtime.compiler import compile_module, open_compiled, serialise
from wasmsand.engine.wasmtime.config import EngineSettings, fingerprint, new_engine, probe
from wasmsand.engine.wasmtime.epochs import EpochTicker
from wasmsand.engine.wasmtime.fault_handlers import FaultHandlers
from wasmsand.engine.wasmtime.imports import ImportTable
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.engine.wasmtime.runtime import Runtime
from wasmsand.engine.wasmtime.shared_memory import MemorySharing
from wasmsand.engine.wasmtime.shipped import ShippedModules
from wasmsand.engine.wasmtime.spare_stores import SpareStores
from wasmsand.engine.wasmtime.threads import ThreadPool

logger = logging.getLogger("wasmsand.engine")

_KEY = re.compile(r"[0-9a-f]{64}")
_EXIT_PATIENCE_SECONDS = 0.3


class HostExiting(GuestUnwind):
    """The host's interpreter is about to exit, and the guest with it."""


class WasmtimeEngine:
    """Runs guests with wasmtime; see `protocol.Engine`."""

    def __init__(
        self,
        settings: EngineSettings | None = None,
        cache_directory: Path | None = None,
        shipped: Sequence[ShippedIndex] | None = None,
    ) -> None:
        """`shipped`: the compiled modules that may be used, by default those of installed
        packages."""
        settings = settings or EngineSettings()
        self.tick_seconds = settings.tick_seconds
        have_few_arenas(lib)
        engine = new_engine(settings)
        probed = probe(engine)
        self._cache = CompileCache(cache_directory or default_directory(), fingerprint(probed))
        indexes = installed_indexes() if shipped is None else shipped
        self._shipped = ShippedModules(indexes, engine, RELEASE, self._cache)
        ticker = EpochTicker(engine, settings.tick_seconds)
        self.guest_resumed = ticker.guest_resumed  # directly, because it is called at every wait
        spares = SpareStores(settings.idle_thread_seconds)
        self._runtime = Runtime(
            settings=settings,
            engine=engine,
            cache=self._cache,
            imports=ImportTable(engine),
            ticker=ticker,
            threads=ThreadPool(
                settings.thread_stack_bytes, settings.idle_thread_seconds, spares.free_old
            ),
            fault_handlers=FaultHandlers(),
            sharing=MemorySharing(settings, ticker, self._cache, self._shipped),
            spares=spares,
        )
        self.abilities = Abilities(
            compile_workers=self,
            program_threads=WasmtimeThreads(),
            memory_copies=WasmtimeCopies(),
            memory_images=WasmtimeImages(self._cache) if os.name == "posix" else CopiedImages(),
            memory_control=WasmtimeMemoryControl(),
            give_memory_back=FreedMemory(self.start_thread, lib).give_back_soon,
        )
        self._apart = ApartCompiler(self._runtime, probed, self.find, self._remember)
        self._lock = threading.Lock()
        # Guarded by the lock:
        self.compilations = 0
        """How many modules this process has compiled, those of guests not counted."""
        self._loaded: weakref.WeakValueDictionary[str, WasmtimeModule] = (
            weakref.WeakValueDictionary()
        )
        self._recent: OrderedDict[str, WasmtimeModule] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}
        _engines.add(self)

    def offer(self, functions: Sequence[HostFunction]) -> None:
        """See `protocol.Engine`."""
        if self._runtime.imports.offer(functions):
            self._apart.forget_rejections()  # rejected modules may import them

    def load(self, key: str, read: Callable[[], bytes]) -> WasmtimeModule:
        """The module with this content key: from memory, from the cache, or compiled."""
        module = self._recall(key)
        if module is not None:
            return module
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a content key: {key!r}")
        with self._lock:
            turn = self._loading.setdefault(key, threading.Lock())
        try:
            with turn:
                module = self._recall(key)
                if module is None:
                    self._cache.keep(key)
                    compiled = self._open(key) or self._compile(key, read())
                    module = self._remember(key, compiled)
                return module
        finally:
            with self._lock:
                self._loading.pop(key, None)

    def find(self, key: str, *, check: bool = False) -> WasmtimeModule | None:
        """The module with this content key, if it need not be compiled. `check`: a file of an
        installed package may be checked now, which takes longer."""
        module = self._recall(key)
        if module is None and (check or self.is_compiled(key)):
            compiled = self._open(key)
            if compiled is not None:
                module = self._remember(key, compiled)
        return module

    def compile_apart(self, order: CompileOrder) -> WasmtimeModule:
        """See `abilities.CompileWorkers`."""
        if not _KEY.fullmatch(order.key):
            raise ValueError(f"not a content key: {order.key!r}")
        return self.find(order.key, check=True) or self._apart.compile(order)

    def is_compiled(self, key: str) -> bool:
        """Whether `load` would need no compilation."""
        with self._lock:
            if key in self._loaded:
                return True
        return self._cache.find(key) is not None or self._shipped.is_checked(key)

    def keep_compiled(self, key: str) -> None:
        """See `protocol.Engine`."""
        self._cache.keep(key)

    def comes_compiled(self, key: str) -> bool:
        """See `protocol.Engine`."""
        return self._shipped.has(key)

    def why_not_compiled(self) -> Sequence[str]:
        """See `protocol.Engine`."""
        return self._shipped.unusable

    def unload(self, key: str) -> None:
        """Drop our reference to the module; callers that hold one keep it alive."""
        with self._lock:
            self._recent.pop(key, None)

    def start_thread(self, target: Callable[[], None]) -> None:
        """Run `target` on a pooled thread whose stack is deep enough for a guest."""
        self._runtime.threads.start(target)

    def interrupt(self) -> None:
        """Make every guest that computes call its `tick` at once."""
        self._runtime.ticker.advance()

    def _recall(self, key: str) -> WasmtimeModule | None:
        with self._lock:
            module = self._loaded.get(key)
            if module is not None:
                self._keep(key, module)
            return module

    def _remember(self, key: str, compiled: CData) -> WasmtimeModule:
        module = WasmtimeModule(self._runtime, key, compiled)
        module.check()
        with self._lock:
            self._loaded[key] = module
            self._keep(key, module)
        return module

    def _keep(self, key: str, module: WasmtimeModule) -> None:
        self._recent[key] = module
        self._recent.move_to_end(key)
        if len(self._recent) > self._runtime.settings.cached_modules:
            self._recent.popitem(last=False)

    def _open(self, key: str) -> CData | None:
        path = self._cache.find(key)
        if path is None:
            return self._shipped.open(key)
        try:
            return open_compiled(self._runtime.engine, path)
        except WasmtimeError as error:
            logger.warning("compiled module %s is unusable, compiling it again: %s", path, error)
            self._cache.discard(path)
            return None

    def _compile(self, key: str, wasm: bytes) -> CData:
        if hashlib.sha256(wasm).hexdigest() != key:
            raise ValueError(f"the bytes of module {key} have a different hash")
        require_permission()
        started = time.monotonic()
        compiled = compile_module(self._runtime.engine, wasm)
        with self._lock:
            self.compilations += 1
        logger.info(
            "compiled module %s... (%d bytes) in %.2f s",
            key[:12],
            len(wasm),
            time.monotonic() - started,
        )
        if self._cache.store(key, serialise(compiled)) is None:
            return compiled
        # All processes share the file's pages, but not those of `compiled`.
        return self._open(key) or compiled


def _end_guests() -> None:
    """Make computing guests leave C code before the interpreter exits.

    A thread that returned to a finalized interpreter would be ended in the middle of C frames,
    which aborts the process.
    """
    deadline = time.monotonic() + _EXIT_PATIENCE_SECONDS
    while (guests := hostcalls.running_guests()) and time.monotonic() < deadline:
        for guest in guests:
            guest.fail(HostExiting())
        for engine in list(_engines):
            engine.interrupt()
        time.sleep(0.002)


_engines: weakref.WeakSet[WasmtimeEngine] = weakref.WeakSet()
atexit.register(_end_guests)
