"""A C store with its one instance.

Owns every use of the C API for an instance that exists: its memory, globals, functions, limits.
Rules: nothing of C is touched after `free`; whoever kept a view of the memory gets a ValueError
then, not another guest's memory. What calls into the guest mean is `instance`'s part.
"""

from __future__ import annotations

from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib
from wasmsand.engine.wasmtime.holdings import TableRoom
from wasmsand.engine.wasmtime.traps import discard_failure, take_failure

WASM_PAGE = 65536
NEVER = 1 << 40
"""A deadline that no epoch reaches."""
_I32 = 0


class InstantiationFailed(Exception):
    """wasmtime's reason."""


class GuestStore:
    """One instance of a module, in C."""

    def __init__(
        self, engine: CData, prepared: CData, memory_limit: int, table_room: TableRoom
    ) -> None:
        self.closed = False
        self._memory_limit = -1
        self._table_room = table_room
        self._views: list[memoryview] = []
        self._functions: dict[str, tuple[CData, CData]] = {}
        self._store = ffi.gc(lib.wasmtime_store_new(engine, NULL, NULL), lib.wasmtime_store_delete)
        self.context: CData = lib.wasmtime_store_context(self._store)
        self.limit_memory(memory_limit)
        self.set_epoch_callback()
        # Filling memory and tables may run compiled code; nobody answers its ticks yet.
        self.set_deadline(NEVER)
        self._instance = ffi.new("wasmtime_instance_t *")
        trap = ffi.new("wasm_trap_t **")
        error = lib.wasmtime_instance_pre_instantiate(prepared, self.context, self._instance, trap)
        if error or trap[0]:
            reason = str(take_failure(self.context, error, trap[0]))
            ffi.release(self._store)
            raise InstantiationFailed(reason)
        self._memory_export = self._export("memory")
        self.memory: CData = ffi.addressof(self._memory_export.of, "memory")
        self.memory_base: CData = lib.wasmtime_memory_data(self.context, self.memory)

    def limit_memory(self, limit: int) -> None:
        """The memory cannot grow past `limit` bytes from now on."""
        if limit != self._memory_limit:
            self._memory_limit = limit
            tables, elements = self._table_room
            lib.wasmtime_store_limiter(self._store, limit, elements, 1, tables, 1)

    def set_epoch_callback(self) -> None:
        """Have the guest's ticks answered."""
        lib.wasmtime_store_epoch_deadline_callback(
            self._store, hostcalls.EPOCH_CALLBACK, NULL, NULL
        )

    def set_deadline(self, epochs: int) -> None:
        """The guest's next tick comes after so many epochs."""
        lib.wasmtime_context_set_epoch_deadline(self.context, epochs)

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        self.require_open()
        return int(lib.wasmtime_memory_data_size(self.context, self.memory))

    def memory_view(self) -> memoryview:
        """The memory as it is now, writable; released by `free`."""
        size = self.memory_size()
        if not self._views or len(self._views[-1]) != size:
            self._views.append(memoryview(ffi.buffer(self.memory_base, size)))
        return self._views[-1]

    def grow_memory(self, size: int) -> bool:
        """Make the memory `size` bytes; false if that is not possible."""
        pages = (size - self.memory_size()) // WASM_PAGE
        if pages:
            error = lib.wasmtime_memory_grow(
                self.context, self.memory, pages, ffi.new("uint64_t *")
            )
            discard_failure(error, NULL)
            return not error
        return True

    def read_memory_again(self) -> None:
        """Make wasmtime ask for the address and size of a memory of the host."""
        check(lib.wasmtime_memory_grow(self.context, self.memory, 0, ffi.new("uint64_t *")))

    def read_global(self, name: str) -> int:
        """The value of an exported i32 global, unsigned."""
        export, value = self._export(name), ffi.new("wasmtime_val_t *")
        lib.wasmtime_global_get(self.context, ffi.addressof(export.of, "global"), value)
        return int(value.of.i32) & 0xFFFF_FFFF

    def set_global(self, name: str, value: int) -> None:
        """Set an exported mutable i32 global."""
        export = self._export(name)  # must outlive the pointer into it
        variable = ffi.addressof(export.of, "global")
        check(lib.wasmtime_global_set(self.context, variable, _i32(value)))

    def function(self, name: str) -> CData:
        """The `wasmtime_func_t *` of an exported function."""
        found = self._functions.get(name)
        if found is None:
            export = self._export(name)
            found = self._functions[name] = (export, ffi.addressof(export.of, "func"))
        return found[1]

    def call(self, name: str, argument: int | None) -> tuple[CData, CData]:
        """Call an exported function that takes nothing or one i32. The C error and trap, each of
        which may be NULL, belong to the caller."""
        function = self.function(name)
        trap = ffi.new("wasm_trap_t **")
        arguments, count = NULL, 0
        if argument is not None:
            arguments, count = _i32(argument), 1
        error = lib.wasmtime_func_call(self.context, function, arguments, count, NULL, 0, trap)
        return error, trap[0]

    def require_open(self) -> None:
        """Raise `RuntimeError` after `free`."""
        if self.closed:
            raise RuntimeError("the instance is closed")

    def free(self) -> None:
        """Free everything in C; called once."""
        self.closed = True
        for view in self._views:
            view.release()
        self._views.clear()
        self._functions.clear()
        ffi.release(self._store)

    def _export(self, name: str) -> CData:
        """The `wasmtime_extern_t *` of an export that the module is known to have."""
        self.require_open()
        export = ffi.new("wasmtime_extern_t *")
        encoded = name.encode()
        found = lib.wasmtime_instance_export_get(
            self.context, self._instance, encoded, len(encoded), export
        )
        assert found, name
        return export


def _i32(value: int) -> CData:
    """A `wasmtime_val_t *` of an unsigned 32-bit number."""
    result = ffi.new("wasmtime_val_t *")
    result.kind = _I32
    result.of.i32 = value - (value >> 31 << 32)
    return result
