"""WebAssembly: the protocol, and the engine of this host process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.engine import WasmtimeEngine

_engine: WasmtimeEngine | None = None
_lock = threading.Lock()


def default_engine() -> WasmtimeEngine:
    """The engine that all sandboxes of this process share, made at the first call."""
    global _engine
    if _engine is None:
        with _lock:
            if _engine is None:
                from wasmsand.engine.wasmtime.config import EngineSettings
                from wasmsand.engine.wasmtime.engine import WasmtimeEngine

                _engine = WasmtimeEngine(EngineSettings(parallel_compilation=not _abandoned))
    return _engine


def _forget_engine() -> None:
    # A forked process has none of the engine's threads. The old one is left as it is:
    # freeing what other threads were using is not safe.
    global _engine, _lock
    if _engine is not None:
        _abandoned.append(_engine)
        _engine = None
    _lock = threading.Lock()


_abandoned: list[WasmtimeEngine] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_engine)
