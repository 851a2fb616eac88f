"""What all modules and instances of one engine share."""

from __future__ import annotations

from dataclasses import dataclass

from wasmsand.engine.wasmtime.bindings import CData
from wasmsand.engine.wasmtime.compile_cache import CompileCache
from wasmsand.engine.wasmtime.config import EngineSettings
from wasmsand.engine.wasmtime.epochs import EpochTicker
from wasmsand.engine.wasmtime.fault_handlers import FaultHandlers
from wasmsand.engine.wasmtime.imports import ImportTable
from wasmsand.engine.wasmtime.shared_memory import MemorySharing
from wasmsand.engine.wasmtime.spare_stores import SpareStores
from wasmsand.engine.wasmtime.threads import ThreadPool


@dataclass(frozen=True, slots=True)
class Runtime:
    """The C engine, its imports, and its services."""

    settings: EngineSettings
    engine: CData
    cache: CompileCache
    imports: ImportTable
    ticker: EpochTicker
    threads: ThreadPool
    fault_handlers: FaultHandlers
    sharing: MemorySharing
    spares: SpareStores
