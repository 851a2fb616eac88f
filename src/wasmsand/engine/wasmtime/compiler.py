"""From WebAssembly bytes to compiled modules.

Owns calling the compiler, and rules of our own. Rules: every defect of the bytes is
`ModuleRejected`, with the reason.
"""

from __future__ import annotations

import os
from pathlib import Path

from wasmsand.engine.forking import native
from wasmsand.engine.placement import free_this_thread
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.bindings import (
    CData,
    WasmtimeError,
    check,
    ffi,
    lib,
    take_bytes,
)

_MAGIC = b"\0asm"
_HEADER_BYTES = 8
_START_SECTION = 8


def _sections(wasm: bytes) -> list[int]:
    """The section numbers of a valid module, in order."""
    found, at = [], _HEADER_BYTES
    while at < len(wasm):
        found.append(wasm[at])
        at, size, shift = at + 1, 0, 0
        while True:
            byte = wasm[at]
            at, size, shift = at + 1, size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        at += size
    return found


def compile_module(engine: CData, wasm: bytes) -> CData:
    """A `wasmtime_module_t *` that frees itself. This can take seconds."""
    if not wasm.startswith(_MAGIC):
        # wasmtime would try to parse it as text.
        raise ModuleRejected("not a WebAssembly module: does not start with \\0asm")
    module = ffi.new("wasmtime_module_t **")
    try:
        free_this_thread()  # wasmtime starts its compiler's threads
        check(lib.wasmtime_module_new(engine, wasm, len(wasm), module))
    except WasmtimeError as error:
        raise ModuleRejected(f"not a module this engine can run: {error}") from None
    compiled = ffi.gc(module[0], lib.wasmtime_module_delete)
    if _START_SECTION in _sections(wasm):
        # It would run at instantiation: before calls can be answered, and perhaps on a thread whose
        # stack is too small for a guest.
        raise ModuleRejected("has a start section; export the function as `_start` instead")
    return compiled


def serialise(module: CData) -> bytes:
    """The compiled module as file content for `open_compiled`."""
    content = ffi.new("wasm_byte_vec_t *")
    check(lib.wasmtime_module_serialize(module, content))
    return take_bytes(content)


def load_compiled(engine: CData, content: bytes) -> CData:
    """A `wasmtime_module_t *` from the output of `serialise`."""
    module = ffi.new("wasmtime_module_t **")
    with native():
        check(lib.wasmtime_module_deserialize(engine, content, len(content), module))
    return ffi.gc(module[0], lib.wasmtime_module_delete)


def open_compiled(engine: CData, path: Path) -> CData:
    """A `wasmtime_module_t *` mapped from a file with the output of `serialise`.

    The file is trusted: it is machine code. Raises `WasmtimeError` if it is damaged or was made
    with other settings.
    """
    module = ffi.new("wasmtime_module_t **")
    with native():
        check(lib.wasmtime_module_deserialize_file(engine, os.fsencode(path), module))
    return ffi.gc(module[0], lib.wasmtime_module_delete)
