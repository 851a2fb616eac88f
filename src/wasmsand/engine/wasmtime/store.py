"""A C store with its one instance.

Owns every use of the C API for an existing instance: its memory, globals, functions, limits. Rules:
C is not touched after `free`; an old view of the memory then raises ValueError instead of showing
another guest's memory. `instance` decides what calls into the guest mean.
"""

from __future__ import annotations

from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib
from wasmsand.engine.wasmtime.holdings import TableRoom
from wasmsand.engine.wasmtime.traps import discard_failure, take_failure

WASM_PAGE = 65536
NEVER = 1 << 40
"""A deadline that is never reached."""
_I32 = 0


class InstantiationFailed(Exception):
    """The message is wasmtime's reason."""


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
        self._globals: dict[str, tuple[CData, CData]] = {}
        """Exports that were looked up: the C object, and the pointer into it."""
        self._store = ffi.gc(lib.wasmtime_store_new(engine, NULL, NULL), lib.wasmtime_store_delete)
        self.context: CData = lib.wasmtime_store_context(self._store)
        self.limit_memory(memory_limit)
        self.set_epoch_callback()
        # Initializing memory and tables may run compiled code, but ticks cannot be answered yet.
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
        """From now on the memory cannot grow past `limit` bytes."""
        if limit != self._memory_limit:
            self._memory_limit = limit
            tables, elements = self._table_room
            lib.wasmtime_store_limiter(self._store, limit, elements, 1, tables, 1)

    def set_epoch_callback(self) -> None:
        """Install the callback for the guest's ticks."""
        lib.wasmtime_store_epoch_deadline_callback(
            self._store, hostcalls.EPOCH_CALLBACK, NULL, NULL
        )

    def set_deadline(self, epochs: int) -> None:
        """Set after how many epochs the guest's next tick comes."""
        lib.wasmtime_context_set_epoch_deadline(self.context, epochs)

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        if self.closed:
            self.require_open()
        return int(lib.wasmtime_memory_data_size(self.context, self.memory))

    def memory_view(self) -> memoryview:
        """The current memory, writable; the view is released by `free`."""
        size = self.memory_size()
        if not self._views or len(self._views[-1]) != size:
            self._views.append(memoryview(ffi.buffer(self.memory_base, size)))
        return self._views[-1]

    def grow_memory(self, size: int) -> bool:
        """Grow the memory to `size` bytes; False if that is not possible."""
        pages = (size - self.memory_size()) // WASM_PAGE
        if pages:
            error = lib.wasmtime_memory_grow(
                self.context, self.memory, pages, ffi.new("uint64_t *")
            )
            discard_failure(error, NULL)
            return not error
        return True

    def read_memory_again(self) -> None:
        """Make wasmtime read the address and size of a host-provided memory again."""
        check(lib.wasmtime_memory_grow(self.context, self.memory, 0, ffi.new("uint64_t *")))

    def read_global(self, name: str) -> int:
        """The value of an exported i32 global, unsigned."""
        value = ffi.new("wasmtime_val_t *")
        lib.wasmtime_global_get(self.context, self._global(name), value)
        return int(value.of.i32) & 0xFFFF_FFFF

    def set_global(self, name: str, value: int) -> None:
        """Set an exported mutable i32 global."""
        check(lib.wasmtime_global_set(self.context, self._global(name), _i32(value)))

    def _global(self, name: str) -> CData:
        """The `wasmtime_global_t *` of an exported global."""
        found = self._globals.get(name)
        if found is None:
            export = self._export(name)  # must outlive the pointer into it
            found = self._globals[name] = (export, ffi.addressof(export.of, "global"))
        return found[1]

    def function(self, name: str) -> CData:
        """The `wasmtime_func_t *` of an exported function."""
        found = self._functions.get(name)
        if found is None:
            export = self._export(name)
            found = self._functions[name] = (export, ffi.addressof(export.of, "func"))
        return found[1]

    def call(self, name: str, argument: int | None) -> tuple[CData, CData]:
        """Call an exported function with no parameter or one i32. Returns the C error and trap,
        each possibly NULL, which the caller owns."""
        found = self._functions.get(name)
        function = self.function(name) if found is None else found[1]
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
        self._globals.clear()
        ffi.release(self._store)

    def hand_over(self) -> GuestStore:
        """Move everything in C to a new object, for another program; this one is closed."""
        self.require_open()
        self.closed = True
        for view in self._views:
            view.release()
        successor = GuestStore.__new__(GuestStore)
        successor.__dict__.update(self.__dict__)
        successor.closed = False
        successor._views = []
        return successor

    def _export(self, name: str) -> CData:
        """The `wasmtime_extern_t *` of an export that the module has."""
        if self.closed:
            self.require_open()
        export = ffi.new("wasmtime_extern_t *")
        encoded = name.encode()
        found = lib.wasmtime_instance_export_get(
            self.context, self._instance, encoded, len(encoded), export
        )
        assert found, name
        return export


def _i32(value: int) -> CData:
    """A `wasmtime_val_t *` with an unsigned 32-bit number."""
    result = ffi.new("wasmtime_val_t *")
    result.kind = _I32
    result.of.i32 = value - (value >> 31 << 32)
    return result
