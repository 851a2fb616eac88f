"""The loaded wasmtime C library, with a small typed interface.

Owns the only reference to the shared library, and the conversions that every caller needs (strings
from C, errors to exceptions). Rules: the module that owns a C object creates it, and `ffi.gc` frees
it. Errors returned by C functions are taken here at once, so that nothing leaks. cffi is untyped:
`CData` marks C values.

The library is part of the PyPI package `wasmtime`. That package is located but never imported: its
own bindings take 90 ms to import and are 20 times slower per call.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path
from typing import Any, TypeAlias

from wasmsand.engine.wasmtime import _c_types

CData: TypeAlias = Any
"""A C value or pointer."""

SUPPORTED_RELEASE = "50"
"""The major release of wasmtime whose struct layouts `c_declarations` describes."""

_LIBRARY_NAMES = {
    "linux": "_libwasmtime.so",
    "darwin": "_libwasmtime.dylib",
    "win32": "_wasmtime.dll",
}
_MACHINES = {"AMD64": "x86_64", "arm64": "aarch64", "ARM64": "aarch64"}


class WasmtimeError(Exception):
    """An error message from wasmtime."""


class EngineUnavailable(RuntimeError):
    """No usable wasmtime library was found; the message says what to install."""


def _find_library() -> tuple[Path, str]:
    """The shared library, and the exact release that it belongs to ("" if that is not known)."""
    wanted = f"install wasmtime=={SUPPORTED_RELEASE}.* from PyPI"
    spec = importlib.util.find_spec("wasmtime")
    if spec is None or spec.origin is None:
        raise EngineUnavailable(f"the Python package `wasmtime` is not installed: {wanted}")
    package = Path(spec.origin).parent
    releases = [
        entry.name.removeprefix("wasmtime-").removesuffix(".dist-info")
        for entry in package.parent.glob("wasmtime-*.dist-info")
    ]
    if releases and not any(r.split(".")[0] == SUPPORTED_RELEASE for r in releases):
        raise EngineUnavailable(f"wasmtime {releases[0]} is installed, not release 50: {wanted}")
    machine = _MACHINES.get(platform.machine(), platform.machine())
    library = package / f"{sys.platform}-{machine}" / _LIBRARY_NAMES.get(sys.platform, "")
    if not library.is_file():
        raise EngineUnavailable(f"wasmtime has no library for {sys.platform} on {machine}")
    return library, releases[0] if len(releases) == 1 else ""


ffi: Any = _c_types.ffi
LIBRARY, RELEASE = _find_library()
lib: Any = ffi.dlopen(str(LIBRARY))
NULL: CData = ffi.NULL


def take_bytes(vector: CData) -> bytes:
    """The content of a `wasm_byte_vec_t *` that we own; frees it."""
    try:
        return bytes(ffi.buffer(vector.data, vector.size)) if vector.size else b""
    finally:
        lib.wasm_byte_vec_delete(vector)


def take_error(error: CData) -> str:
    """The message of a `wasmtime_error_t *`; frees it."""
    message = ffi.new("wasm_byte_vec_t *")
    lib.wasmtime_error_message(error, message)
    lib.wasmtime_error_delete(error)
    return take_bytes(message).decode("utf-8", "replace")


def check(error: CData) -> None:
    """Raise `WasmtimeError` if a C function returned an error."""
    if error:
        raise WasmtimeError(take_error(error))


def name_of(vector: CData) -> str:
    """The text of a `const wasm_byte_vec_t *` that C owns."""
    return bytes(ffi.buffer(vector.data, vector.size)).decode("utf-8", "replace")


def wat_to_wasm(text: str) -> bytes:
    """Translate the WebAssembly text format; raises `WasmtimeError`."""
    source = text.encode()
    wasm = ffi.new("wasm_byte_vec_t *")
    check(lib.wasmtime_wat2wasm(source, len(source), wasm))
    return take_bytes(wasm)
