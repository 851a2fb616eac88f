"""One program in memory.

Owns a C store with its one instance: memory, exported functions, the way in and out of
the guest. Rules: a guest runs only on a thread of the pool, whose stack is deep enough that
the guest's own limit is reached first; the first exception of a host call or the first trap
ends the instance, also when it happened in a nested call; nothing of C is touched after
`close`.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from typing import TYPE_CHECKING

from wasmsand.engine.forking import renewed_in_child
from wasmsand.engine.protocol import HostCalls, Instance
from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib
from wasmsand.engine.wasmtime.fork import Asyncify, Phase
from wasmsand.engine.wasmtime.holdings import StoreRecord
from wasmsand.engine.wasmtime.memory_image import MemoryImage
from wasmsand.engine.wasmtime.resident_pages import PAGE, ThreadStack, resident_bytes
from wasmsand.engine.wasmtime.traps import discard_failure, take_failure

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.guest_thread import WasmtimeThread
    from wasmsand.engine.wasmtime.module import WasmtimeModule

WASM_PAGE = 65536
STACK_POINTER = "__stack_pointer"
_NESTED_CALLS_MAX = 16
"""Signal handlers interrupting each other; deeper ones have to wait."""
_STACK_LEFT_MIN = 4096
"""Bytes of C stack that a handler can begin with."""
_HOST_CALL_STACK = 1 << 20
"""Stack that a host call at a guest's deepest point may use."""
_NEVER = 1 << 40
_I32 = 0
_sharing = allocate_lock()
"""Guards who uses whose memory."""
renewed_in_child(globals(), "_sharing")


class InstantiationFailed(Exception):
    """wasmtime's reason."""


class WasmtimeInstance:
    """One running program; see `protocol.Instance`."""

    def __init__(
        self, module: WasmtimeModule, prepared: CData, memory_limit: int, engine: CData
    ) -> None:
        self._module = module
        self._table_room = module.table_room
        self._memory_limit = -1
        self._views: list[memoryview] = []
        self._functions: dict[str, tuple[CData, CData]] = {}
        self._calls: HostCalls | None = None
        self._failure: BaseException | None = None
        self._depth = 0
        self.nested = 0
        """How many `call`s are under way."""
        self._started = self._ended = self._closed = False
        self._threads = 0
        self.idle_threads: list[WasmtimeThread] = []
        """Instances on this memory whose threads have ended."""
        self._close_wanted = False
        self.image: MemoryImage | None = None
        """What the memory began with, if not with the module's data."""
        self._record: StoreRecord | None = None
        self._stack: ThreadStack | None = None
        """Of the thread that it runs on."""
        self.asyncify = Asyncify(self) if module.forks else None
        self._store = ffi.gc(lib.wasmtime_store_new(engine, NULL, NULL), lib.wasmtime_store_delete)
        self._context = lib.wasmtime_store_context(self._store)
        self._limit_store(memory_limit)
        self._set_epoch_callback()
        # Filling memory and tables may run compiled code; nobody answers its ticks yet.
        lib.wasmtime_context_set_epoch_deadline(self._context, _NEVER)
        self._instance = ffi.new("wasmtime_instance_t *")
        trap = ffi.new("wasm_trap_t **")
        error = lib.wasmtime_instance_pre_instantiate(prepared, self._context, self._instance, trap)
        if error or trap[0]:
            reason = str(take_failure(self._context, error, trap[0]))
            ffi.release(self._store)
            raise InstantiationFailed(reason)
        self._memory_export = self._export("memory")
        self._memory = ffi.addressof(self._memory_export.of, "memory")
        self.memory_base: CData = lib.wasmtime_memory_data(self._context, self._memory)

    def _limit_store(self, memory_limit: int) -> None:
        if memory_limit != self._memory_limit:
            self._memory_limit = memory_limit
            tables, elements = self._table_room
            lib.wasmtime_store_limiter(self._store, memory_limit, elements, 1, tables, 1)

    # --- the protocol

    def bind(self, calls: HostCalls) -> None:
        """Set whose calls these are; needed before `run`."""
        self._calls = calls

    def run(self) -> None:
        """Run `_start`, or go on after a fork, until it returns."""
        if self._started:
            raise RuntimeError("an instance runs only once")
        before = self._enter()
        self._started = True
        try:
            self._run_to_the_end()
        finally:
            self._ended = True
            self._leave(before)

    def _run_to_the_end(self) -> None:
        if self.asyncify is not None:
            self.asyncify.resume_copy()
        self.invoke("_start")
        while self.asyncify is not None and self.asyncify.start_returned():
            self.invoke("_start")

    def new_thread(self, stack_pointer: int, argument: int) -> Instance:
        """See `protocol.Instance`."""
        return self._module.start_thread(self, stack_pointer, argument)

    def catch_up(self) -> None:
        """See `protocol.Instance`: all growth is this one's own."""

    def call(self, name: str) -> None:
        """Call an exported function `() -> ()`, from inside `HostCalls.tick` too.

        While the guest is in the middle of a fork, or many calls are nested already, this
        does nothing: the guest cannot be entered now, and the next tick may try again.
        """
        if not self.exports_procedure(name):
            raise KeyError(f"the module exports no function `{name}` without parameters")
        if self.asyncify is not None and self.asyncify.phase is not Phase.NONE:
            return
        if self.nested >= _NESTED_CALLS_MAX:
            return
        before = self._enter()
        self.nested += 1
        try:
            # During a tick the store is without its epoch callback: this guest would not be
            # interrupted but trap. When the tick is over the store gets the old one back.
            self._set_epoch_callback()
            self.invoke(name)
        finally:
            self.nested -= 1
            self._leave(before)

    def call_after_trap(self, name: str) -> None:
        """See `protocol.Instance`."""
        if not self._ended:
            raise RuntimeError("the instance has not trapped")
        self._ended = False
        try:
            self._leave_overflowed_stack()
            self.call(name)
        finally:
            self._ended = True

    def _leave_overflowed_stack(self) -> None:
        """Nothing returns into what is on the stack any more, but what lies highest on it, where
        the program began, is what a handler may look at."""
        pointer, reserve = self.stack_pointer(), self.stack_reserve()
        if pointer is not None and not _STACK_LEFT_MIN <= pointer <= reserve:
            self.set_stack_pointer(reserve // 2 & ~15)

    def memory(self) -> memoryview:
        """The guest's memory as it is now, writable; released by `close`."""
        size = self.memory_size()
        if not self._views or len(self._views[-1]) != size:
            self._views.append(memoryview(ffi.buffer(self.memory_base, size)))
        return self._views[-1]

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        self._check_open()
        return int(lib.wasmtime_memory_data_size(self._context, self._memory))

    def limit_memory(self, limit: int) -> None:
        """See `protocol.Instance`."""
        self._check_open()
        self._limit_store(limit)

    def held_bytes(self) -> int:
        """See `protocol.Instance`."""
        record = self._record
        if record is None:
            if not self._started:  # so it has thrown nothing
                return self._module.instance_bytes
            record = self.read_record()
        return self._module.instance_bytes + record.exception_bytes()

    def read_record(self) -> StoreRecord:
        """What wasmtime keeps of this instance."""
        self._check_open()
        self._record = StoreRecord(self._function("_start"), 0 if self._started else _NEVER)
        return self._record

    def stacks_in_use(self, c_stack: int) -> tuple[int, int]:
        """See `protocol.Instance`."""
        self._check_open()
        address = int(ffi.cast("uintptr_t", self.memory_base))
        used = resident_bytes(address, c_stack) if c_stack >= PAGE else 0
        most = self._module.runtime.settings.guest_stack_bytes + _HOST_CALL_STACK
        return used or 0, self._stack.deep_bytes(most) if self._stack is not None else 0

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global."""
        values = self._module.constant_values
        if name not in values:
            if name not in self._module.exports.constants:
                return None
            values[name] = self._read_global(self._export(name))
        return values[name]

    def exports_procedure(self, name: str) -> bool:
        """See `protocol.Instance`."""
        return self._module.exports.functions.get(name) == 0

    def exported_variables(self) -> dict[str, int]:
        """The values of all exported mutable i32 globals."""
        return {
            name: self._read_global(self._export(name))
            for name in sorted(self._module.exports.variables)
        }

    def capture(self, *, stack: bool) -> MemoryImage:
        """See `protocol.Instance`."""
        variables, first = self.exported_variables(), 0
        if not stack:
            variables.pop(STACK_POINTER, None)
            first = self.stack_reserve()
        return MemoryImage(self.memory(), first, variables, self._module.runtime.cache)

    def close(self) -> None:
        """Free everything; idempotent."""
        if self._depth:
            raise RuntimeError("the instance is running: let it end first")
        if self._closed:
            return
        with _sharing:
            if self._threads:  # the last of them does it
                self._close_wanted = True
                return
        self._free()

    def thread_began(self) -> None:
        """Another instance uses this one's memory."""
        with _sharing:
            self._threads += 1

    def thread_closed(self) -> None:
        """It does so no more."""
        with _sharing:
            self._threads -= 1
            last = not self._threads and self._close_wanted
        if last:
            self._free()

    def _free(self) -> None:
        self._closed = True
        for thread in self.idle_threads:
            thread._free()
        self.idle_threads.clear()
        # Whoever kept a view gets a ValueError, not another guest's memory.
        for view in self._views:
            view.release()
        self._views.clear()
        self._functions.clear()
        self._calls = self.asyncify = None  # no circles of references
        self._record = self._stack = None
        ffi.release(self._store)
        self.image = None

    # --- what the callbacks need

    def fail(self, error: BaseException) -> None:
        """Keep the exception for `run` to raise; the first one wins."""
        if self._failure is None:
            self._failure = error

    def fork_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""
        assert self.asyncify is not None  # else its module could not import it
        return self.asyncify.import_called(buffer)

    def tick(self) -> None:
        """The epoch advanced while the guest computed."""
        self._module.runtime.ticker.guest_ticked()
        if self._failure is None:
            self.calls.tick()
        if self._failure is not None:  # a nested call failed, or the host is ending
            raise self._failure

    # --- what a fork needs

    @property
    def calls(self) -> HostCalls:
        """Whose calls these are."""
        if self._calls is None:
            raise RuntimeError("bind() comes before run()")
        return self._calls

    def invoke(self, name: str, argument: int | None = None) -> None:
        """Call an exported function that takes nothing or one i32."""
        function = self._function(name)
        trap = ffi.new("wasm_trap_t **")
        arguments, count = NULL, 0
        if argument is not None:
            arguments, count = _i32(argument), 1
        self._depth += 1
        try:
            error = lib.wasmtime_func_call(self._context, function, arguments, count, NULL, 0, trap)
        finally:
            self._depth -= 1
        if self._failure is not None:
            discard_failure(error, trap[0])
            raise self._failure
        if error or trap[0]:
            self._failure = take_failure(self._context, error, trap[0])
            raise self._failure

    def sibling(self, memory_limit: int | None = None) -> WasmtimeInstance:
        """A fresh instance of the same module, which began as this one did, with the same limit
        if none is given; raises `MemoryError`."""
        limit = self._memory_limit if memory_limit is None else memory_limit
        return self._module.instantiate(limit, self.image)

    def grow_memory(self, size: int) -> bool:
        """Make the memory `size` bytes; false if that is not possible."""
        pages = (size - self.memory_size()) // WASM_PAGE
        if pages:
            error = lib.wasmtime_memory_grow(
                self._context, self._memory, pages, ffi.new("uint64_t *")
            )
            discard_failure(error, NULL)
            return not error
        return True

    def stack_reserve(self) -> int:
        """See `protocol.Instance`."""
        return self._module.stack_reserve or 0

    def stack_pointer(self) -> int | None:
        """The C stack pointer, if the module exports it."""
        if STACK_POINTER not in self._module.exports.variables:
            return None
        return self._read_global(self._export(STACK_POINTER))

    def set_stack_pointer(self, address: int) -> None:
        """Set the C stack pointer, which the module exports."""
        self.set_variable(STACK_POINTER, address)

    def set_variable(self, name: str, value: int) -> None:
        """Set a mutable i32 global that the module exports."""
        export = self._export(name)  # must outlive the pointer into it
        variable = ffi.addressof(export.of, "global")
        check(lib.wasmtime_global_set(self._context, variable, _i32(value)))

    # --- inside

    def _enter(self) -> tuple[int, hostcalls.Occupant]:
        self._check_open()
        if self._ended or self._failure is not None:
            raise RuntimeError("the instance has ended and cannot run again")
        runtime, thread = self._module.runtime, get_ident()
        if not runtime.threads.owns(thread):
            raise RuntimeError("guests run only on threads made by Engine.start_thread")
        self._stack = runtime.threads.stack(thread)
        runtime.fault_handlers.keep()
        lib.wasmtime_context_set_epoch_deadline(self._context, 1)
        before = hostcalls.enter(thread, self, self.calls)
        try:
            runtime.ticker.guest_entered()  # which looks at who has entered
        except BaseException:
            hostcalls.leave(thread, before)
            raise
        return thread, before

    def _leave(self, entered: tuple[int, hostcalls.Occupant]) -> None:
        hostcalls.leave(*entered)
        if self._failure is not None and not self._depth:
            self._ended = True
            self._failure = None  # its traceback refers to this instance

    def _set_epoch_callback(self) -> None:
        lib.wasmtime_store_epoch_deadline_callback(
            self._store, hostcalls.EPOCH_CALLBACK, NULL, NULL
        )

    def _function(self, name: str) -> CData:
        found = self._functions.get(name)
        if found is None:
            export = self._export(name)
            found = self._functions[name] = (export, ffi.addressof(export.of, "func"))
        return found[1]

    def _export(self, name: str) -> CData:
        """The `wasmtime_extern_t *` of an export that the module is known to have."""
        self._check_open()
        export = ffi.new("wasmtime_extern_t *")
        encoded = name.encode()
        found = lib.wasmtime_instance_export_get(
            self._context, self._instance, encoded, len(encoded), export
        )
        assert found, name
        return export

    def _read_global(self, export: CData) -> int:
        value = ffi.new("wasmtime_val_t *")
        lib.wasmtime_global_get(self._context, ffi.addressof(export.of, "global"), value)
        return int(value.of.i32) & 0xFFFF_FFFF

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the instance is closed")


def _i32(value: int) -> CData:
    """A `wasmtime_val_t *` of an unsigned 32-bit number."""
    result = ffi.new("wasmtime_val_t *")
    result.kind = _I32
    result.of.i32 = value - (value >> 31 << 32)
    return result
