"""Compiled programs: their imports and exports, and creating instances.

Owns one C module and its prepared instantiation. Rules: a module is checked against the guest ABI
once, when it is loaded, so that instances can rely on the types of what they call. A failed check
raises `ModuleRejected`, which names the import or export.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from wasmsand.engine.asyncify import ASYNCIFY_FUNCTIONS
from wasmsand.engine.protocol import BEGINNING, ModuleRejected, NeedsMemory, Start
from wasmsand.engine.wasmtime.bindings import CData, WasmtimeError, ffi, lib, name_of
from wasmsand.engine.wasmtime.guest_thread import THREAD_START, WasmtimeThread
from wasmsand.engine.wasmtime.holdings import TableRoom, table_rooms
from wasmsand.engine.wasmtime.imports import FORK_IMPORT
from wasmsand.engine.wasmtime.instance import STACK_POINTER, WasmtimeInstance
from wasmsand.engine.wasmtime.layered_image import LayeredImage
from wasmsand.engine.wasmtime.memory_image import MappedImage
from wasmsand.engine.wasmtime.runtime import Runtime
from wasmsand.engine.wasmtime.shared_memory import ThreadModule
from wasmsand.engine.wasmtime.store import WASM_PAGE, GuestStore, InstantiationFailed

_FUNCTION, _GLOBAL, _MEMORY = 0, 1, 3
"""Kinds of exports in the C API."""
_NAMED_IMPORTS = 8
"""How many unknown imports a message names; more would hide the message."""
_NAME_CHARACTERS = 120
"""How much of a name a message shows, because guests choose names."""
_I32 = ffi.gc(lib.wasm_valtype_new(0), lib.wasm_valtype_delete)


class Exports(NamedTuple):
    """The exports that have a meaning in the guest ABI."""

    functions: dict[str, int]
    """Functions without a result, by their number of i32 parameters."""
    constants: frozenset[str]
    """Immutable i32 globals."""
    variables: frozenset[str]
    """Mutable i32 globals."""
    memory_pages: int | None
    """The initial size of the memory named `memory`."""


class WasmtimeModule:
    """A compiled program, shared by all its instances; see `protocol.Module`."""

    def __init__(self, runtime: Runtime, key: str, module: CData) -> None:
        self.key = key
        self.imports = _imports(module)
        self.exports = _exports(module)
        self.runtime = runtime
        self.forks = FORK_IMPORT in self.imports
        self.constant_values: dict[str, int] = {}
        """Values of `exports.constants` that instances have read."""
        self.stack_reserve: int | None = None
        """The initial C stack pointer of an instance; None before the first instance."""
        self.instance_bytes = 0
        """What an instance uses beside its memory and exceptions; 0 before the first one."""
        most = TableRoom(runtime.settings.tables, runtime.settings.table_elements)
        self._table_rooms = table_rooms(most)
        self.table_room = self._table_rooms[0]
        """The smallest size in which its tables fit; a guess before the first instance."""
        self.compiled = module
        self._prepared: CData | None = None
        self._prepare_lock = threading.Lock()
        self._first_lock = threading.Lock()
        self._instantiated = False
        self._for_threads: ThreadModule | None = None

    def instantiate(
        self,
        memory_limit: int,
        image: MappedImage | LayeredImage | None = None,
        *,
        start: Start = BEGINNING,
    ) -> WasmtimeInstance:
        """See `protocol.Module`, and `abilities.MemoryImages` for the `image`, which has a start of
        its own."""
        prepared = self._prepared or self._prepare()
        if image is not None:
            start = image.start
        needed = max((self.exports.memory_pages or 0) * WASM_PAGE, start.memory_size)
        if needed > memory_limit:
            raise NeedsMemory(
                f"needs {needed} bytes of memory to start, more than the limit of "
                f"{memory_limit}; raise memory_limit_bytes"
            )
        if not self._instantiated:
            self._learn(prepared, memory_limit)
        try:
            instance = WasmtimeInstance(self, self._new_store(prepared, memory_limit))
        except InstantiationFailed as failure:
            # Instantiation worked before, so the host is out of some resource.
            raise MemoryError(f"no room for another guest: {failure}") from None
        if start is not BEGINNING:
            self._begin_with(start, image, instance)
        return instance

    def _new_store(self, prepared: CData, memory_limit: int) -> GuestStore:
        return GuestStore(self.runtime.engine, prepared, memory_limit, self.table_room)

    def _learn(self, prepared: CData, memory_limit: int) -> None:
        """Find out what every instance needs. Raises `ModuleRejected` if that is too much."""
        with self._first_lock:
            if self._instantiated:
                return
            instance = self._try_table_rooms(prepared, memory_limit)
            try:
                used = instance.record_bytes()
                self.stack_reserve = instance.stack_pointer() or 0
            finally:
                instance.close()
            most = self.runtime.settings.instance_bytes
            if used > most:
                raise ModuleRejected(
                    f"cannot be instantiated: its globals and imports take {used} bytes, "
                    f"more than {most}"
                )
            self.instance_bytes = used + self.table_room.cost
            self._instantiated = True

    def _try_table_rooms(self, prepared: CData, memory_limit: int) -> WasmtimeInstance:
        for room in self._table_rooms:
            self.table_room = room
            try:
                return WasmtimeInstance(self, self._new_store(prepared, memory_limit))
            except InstantiationFailed as failure:
                reason = failure
        raise ModuleRejected(
            f"cannot be instantiated: {reason} (at most {room.tables} tables of "
            f"{room.elements} elements)"
        )

    def _begin_with(
        self, start: Start, image: MappedImage | LayeredImage | None, instance: WasmtimeInstance
    ) -> None:
        try:
            if self.exports.functions.get(start.entry) != 0:
                raise ModuleRejected(f"exports no function `{start.entry}` of the right type")
            if not start.variables.keys() <= self.exports.variables:
                raise ModuleRejected("the memory image belongs to another program")
            instance.begin_with(start)
            if image is not None:
                image.lay_under(instance)
        except BaseException:
            instance.close()  # its memory may be partly replaced
            raise

    def start_thread(
        self, first: WasmtimeInstance, stack_pointer: int, argument: int
    ) -> WasmtimeThread:
        """See `abilities.ProgramThreads`."""
        if self.exports.functions.get(THREAD_START) != 1:
            raise ModuleRejected(f"exports no function `{THREAD_START}` of the right type")
        if STACK_POINTER not in self.exports.variables:
            raise ModuleRejected(f"exports no variable `{STACK_POINTER}`")
        idle = WasmtimeThread.take_idle(first, stack_pointer, argument)
        if idle is not None:
            return idle
        with self._prepare_lock:
            if self._for_threads is None:
                initial_bytes = (self.exports.memory_pages or 0) * WASM_PAGE
                self._for_threads = self.runtime.sharing.open(self, initial_bytes)
        try:
            return WasmtimeThread(self, self._for_threads, first, stack_pointer, argument)
        except InstantiationFailed as failure:
            raise MemoryError(f"no room for another thread: {failure}") from None

    def check(self) -> None:
        """Raise `ModuleRejected` if this cannot be instantiated, apart from lack of memory."""
        self._check_imports()
        self._check_exports()
        self._prepare()

    def _prepare(self) -> CData:
        with self._prepare_lock:
            if self._prepared is None:
                try:
                    self._prepared = self.runtime.imports.prepare(self.compiled)
                except WasmtimeError as error:
                    raise ModuleRejected(str(error)) from None
            return self._prepared

    def _check_imports(self) -> None:
        offered = self.runtime.imports
        unknown = [
            ".".join(wanted)[:_NAME_CHARACTERS] for wanted in self.imports if wanted not in offered
        ]
        if unknown:
            named = ", ".join(unknown[:_NAMED_IMPORTS])
            more = len(unknown) - _NAMED_IMPORTS
            raise ModuleRejected(
                f"unknown import: {named}" + (f" and {more} more" if more > 0 else "")
            )

    def _check_exports(self) -> None:
        if self.exports.memory_pages is None:
            raise ModuleRejected("exports no memory named `memory`")
        needed = {"_start": 0}
        if self.forks:
            needed |= ASYNCIFY_FUNCTIONS
        for name, parameters in needed.items():
            if self.exports.functions.get(name) != parameters:
                library = "_initialize" in self.exports.functions and name == "_start"
                raise ModuleRejected(
                    f"exports no function `{name}` of the right type"
                    + (": it is a library (`_initialize`), not a program" if library else "")
                )


def _imports(module: CData) -> tuple[tuple[str, str], ...]:
    vector = ffi.new("wasm_importtype_vec_t *")
    lib.wasmtime_module_imports(module, vector)
    try:
        return tuple(
            (
                name_of(lib.wasm_importtype_module(vector.data[i])),
                name_of(lib.wasm_importtype_name(vector.data[i])),
            )
            for i in range(vector.size)
        )
    finally:
        lib.wasm_importtype_vec_delete(vector)


def _is_i32(value_type: CData) -> bool:
    # Not with `wasm_valtype_kind`, which aborts the process for a type that it has no number for.
    return bool(lib.wasmtime_wasm_valtype_equal(value_type, _I32))


def _exports(module: CData) -> Exports:
    functions: dict[str, int] = {}
    constants: set[str] = set()
    variables: set[str] = set()
    memory_pages: int | None = None
    vector = ffi.new("wasm_exporttype_vec_t *")
    lib.wasmtime_module_exports(module, vector)
    try:
        for i in range(vector.size):
            name = name_of(lib.wasm_exporttype_name(vector.data[i]))
            kind = lib.wasm_exporttype_type(vector.data[i])
            match lib.wasm_externtype_kind(kind):
                case k if k == _FUNCTION:
                    signature = lib.wasm_externtype_as_functype_const(kind)
                    parameters = lib.wasm_functype_params(signature)
                    if lib.wasm_functype_results(signature).size == 0 and all(
                        _is_i32(parameters.data[j]) for j in range(parameters.size)
                    ):
                        functions[name] = parameters.size
                case k if k == _GLOBAL:
                    variable = lib.wasm_externtype_as_globaltype_const(kind)
                    if _is_i32(lib.wasm_globaltype_content(variable)):
                        mutable = lib.wasm_globaltype_mutability(variable)
                        (variables if mutable else constants).add(name)
                case k if k == _MEMORY and name == "memory":
                    memory = lib.wasm_externtype_as_memorytype_const(kind)
                    memory_pages = lib.wasmtime_memorytype_minimum(memory)
    finally:
        lib.wasm_exporttype_vec_delete(vector)
    return Exports(functions, frozenset(constants), frozenset(variables), memory_pages)
