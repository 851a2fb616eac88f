"""Which engine this host process uses.

Owns the choice, and the engine that all sandboxes of the process share. Rules: nothing outside
`wasmsand.engine` imports an engine's own package (`scripts/check_layers.py` checks this); other
code asks here and uses the interface in `protocol`. An engine's package is imported on first use,
because it loads native code.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import NamedTuple

from wasmsand.engine.forking import in_child
from wasmsand.engine.protocol import Engine

_engine: Engine | None = None
_lock = threading.Lock()
_abandoned: list[Engine] = []


def new_engine(*, parallel_compilation: bool = True, with_shipped: bool = True) -> Engine:
    """A separate engine. Without parallel compilation, it starts no thread when it is created.
    `with_shipped`: it uses the compiled modules of installed packages."""
    from wasmsand.engine.wasmtime.config import EngineSettings
    from wasmsand.engine.wasmtime.engine import WasmtimeEngine

    return WasmtimeEngine(
        EngineSettings(parallel_compilation=parallel_compilation),
        shipped=None if with_shipped else (),
    )


def import_engine() -> None:
    """Import the engine's package, and start nothing."""
    import wasmsand.engine.wasmtime.engine  # noqa: F401


def default_engine() -> Engine:
    """The engine that all sandboxes of this process share; created at the first call."""
    global _engine
    if _engine is None:
        with _lock:
            if _engine is None:
                # The compiler's threads do not exist in a forked process.
                _engine = new_engine(parallel_compilation=not _abandoned)
    return _engine


def _forget_engine() -> None:
    # The engine's threads do not exist in a forked process. The old engine is not freed: freeing
    # what other threads were using is not safe.
    global _engine, _lock
    if _engine is not None:
        _abandoned.append(_engine)
        _engine = None
    _lock = threading.Lock()


in_child(_forget_engine)


class HostPlaces(NamedTuple):
    """Host directories that an engine uses."""

    compiled_modules: Path
    """Compiled modules: machine code that this and other processes run."""
    scratch: Path
    """Unnamed files that the engine writes and nobody else opens."""


def host_cache() -> Path:
    """The directory of the host that holds everything that this package caches."""
    from wasmsand.engine.wasmtime.compile_cache import default_directory

    return default_directory().absolute().parent


def settle_places() -> HostPlaces:
    """Find the engine's directories, create them if possible, and make this process and its
    children use them from now on, whatever happens to the user's home directory."""
    from wasmsand.engine.wasmtime.compile_cache import UNNAMED, VARIABLE, default_directory

    compiled = default_directory().absolute()
    os.environ[VARIABLE] = str(compiled.parent)
    scratch = compiled / UNNAMED
    try:
        compiled.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        pass  # not writable: the engine keeps such files in memory
    return HostPlaces(compiled, scratch)
