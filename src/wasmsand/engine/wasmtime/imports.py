"""What guests of one engine can import.

Owns the C linker and the list of names in it. Rules: the two functions of the Linux ABI are always
defined; all others are defined by `offer`, and stay. The linker is used under a lock, because it is
not thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from wasmsand.engine.protocol import HostFunction
from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib
from wasmsand.engine.wasmtime.hostcalls import (
    FORK_CALLBACK,
    FUNCTION_CALLBACK,
    PROCEDURE_CALLBACK,
    SYSCALL_CALLBACK,
    number_of,
)

FORK_IMPORT = ("linux", "fork")
_VALUE_TYPES = {"i": 0, "I": 1}
"""Value types of the C API, by letter."""


class ImportTable:
    """The functions to which imports are resolved."""

    def __init__(self, engine: CData) -> None:
        self._linker = ffi.gc(lib.wasmtime_linker_new(engine), lib.wasmtime_linker_delete)
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._names: set[tuple[str, str]] = set()
        self._define(("linux", "syscall"), "iiiiiii", "i", SYSCALL_CALLBACK)
        self._define(FORK_IMPORT, "i", "i", FORK_CALLBACK)

    def __contains__(self, name: tuple[str, str]) -> bool:
        """Whether a function with this module and name is defined."""
        return name in self._names

    def offer(self, functions: Sequence[HostFunction]) -> bool:
        """Define the functions that are not defined yet. True if there were any."""
        if functions and (functions[-1].module, functions[-1].name) in self._names:
            return False  # the usual case: every machine offers the same functions
        with self._lock:
            for function in functions:
                name = (function.module, function.name)
                if name not in self._names:
                    callback = FUNCTION_CALLBACK if function.results else PROCEDURE_CALLBACK
                    self._define(
                        name, function.parameters, function.results, callback, number_of(function)
                    )
        return True

    def prepare(self, module: CData) -> CData:
        """A `wasmtime_instance_pre_t *` that frees itself; raises `WasmtimeError`."""
        prepared = ffi.new("wasmtime_instance_pre_t **")
        with self._lock:
            check(lib.wasmtime_linker_instantiate_pre(self._linker, module, prepared))
        return ffi.gc(prepared[0], lib.wasmtime_instance_pre_delete)

    def _define(
        self,
        name: tuple[str, str],
        parameters: str,
        results: str,
        callback: CData,
        environment: int = 0,
    ) -> None:
        module, function = (part.encode() for part in name)
        signature = lib.wasm_functype_new(_value_types(parameters), _value_types(results))
        try:
            check(
                lib.wasmtime_linker_define_func_unchecked(
                    self._linker,
                    module,
                    len(module),
                    function,
                    len(function),
                    signature,
                    ffi.cast("void *", callback),
                    ffi.cast("void *", environment),
                    NULL,
                )
            )
        finally:
            lib.wasm_functype_delete(signature)
        self._names.add(name)


def _value_types(letters: str) -> CData:
    vector = ffi.new("wasm_valtype_vec_t *")
    types = [lib.wasm_valtype_new(_VALUE_TYPES[letter]) for letter in letters]
    lib.wasm_valtype_vec_new(vector, len(types), ffi.new("wasm_valtype_t *[]", types))
    return vector
