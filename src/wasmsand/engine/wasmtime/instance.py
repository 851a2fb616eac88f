"""One program in memory.

Owns the life of an instance: entering and leaving the guest, nested calls, traps, forks, closing.
Rules: a guest runs only on a pool thread, whose stack is so deep that the guest reaches its own
limit first. The first exception of a host call or the first trap ends the instance, even in a
nested call. A memory is freed after the last thread that uses it.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wasmsand.engine.asyncify import Asyncify
from wasmsand.engine.forking import renewed_in_child
from wasmsand.engine.placement import place_of_this_thread
from wasmsand.engine.protocol import BEGINNING, GuestUnwind, HostCalls, Start
from wasmsand.engine.wasmtime import hostcalls
from wasmsand.engine.wasmtime.bindings import CData, ffi, lib
from wasmsand.engine.wasmtime.holdings import checked_instance_bytes, store_record
from wasmsand.engine.wasmtime.layered_image import LayeredImage
from wasmsand.engine.wasmtime.memory_image import MappedImage, captured_image
from wasmsand.engine.wasmtime.page_copies import copy_over, copy_runs
from wasmsand.engine.wasmtime.resident_pages import PAGE, ThreadStack, resident_bytes
from wasmsand.engine.wasmtime.spare_stores import (
    MEMORY_MAX,
    SPARE_EXCEPTION_BYTES,
    WRITTEN_MAX,
    Spare,
)
from wasmsand.engine.wasmtime.store import NEVER, GuestStore
from wasmsand.engine.wasmtime.touched_pages import writes_can_be_told, written_ranges
from wasmsand.engine.wasmtime.traps import discard_failure, take_failure

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.guest_thread import WasmtimeThread
    from wasmsand.engine.wasmtime.module import WasmtimeModule

STACK_POINTER = "__stack_pointer"
_NESTED_CALLS_MAX = 16
"""Signal handlers that interrupt each other; deeper ones have to wait."""
_STACK_LEFT_MIN = 4096
"""Bytes of C stack with which a handler can start."""
_HOST_CALL_STACK = 1 << 20
"""Stack that a host call may use at a guest's deepest point."""
_sharing = allocate_lock()
"""Guards which instances use whose memory."""
renewed_in_child(globals(), "_sharing")


class WasmtimeInstance:
    """One running program; see `protocol.Instance`."""

    def __init__(self, module: WasmtimeModule, store: GuestStore) -> None:
        """`store` has an instance of `module` that nobody else uses."""
        self._module = module
        self._calls: HostCalls | None = None
        self._failure: BaseException | None = None
        self._depth = 0
        self.nested = 0
        """How many `call`s are in progress."""
        self._started = self._ended = False
        self._left_by_call = False
        """Whether a host call has ended the program: it did not trap."""
        self._threads = 0
        self._had_threads = False
        self.idle_threads: list[WasmtimeThread] = []
        """Instances on this memory whose threads have ended."""
        self._close_wanted = False
        self.start = BEGINNING
        self.image: MappedImage | LayeredImage | None = None
        """The image with which the memory started; None if with the module's data."""
        self._record: CData | None = None
        """The C record of its store, after first use."""
        self._stack: ThreadStack | None = None
        """The stack of the thread on which it runs."""
        self._written_before: list[tuple[int, int]] | None = None
        """What the program that had the store before has written of the memory (start and end);
        None if the store is new."""
        self.asyncify = Asyncify(self) if module.forks else None
        self._store = store
        self.memory_base = store.memory_base

    # --- the protocol

    @property
    def module(self) -> WasmtimeModule:
        """The compiled program."""
        return self._module

    def bind(self, calls: HostCalls) -> None:
        """See `protocol.Instance`."""
        self._calls = calls

    def run(self) -> None:
        """See `protocol.Instance`."""
        if self._started:
            raise RuntimeError("an instance runs only once")
        before = self._enter()
        self._started = True
        try:
            self._run_to_the_end()
        except GuestUnwind:
            self._left_by_call = True
            raise
        finally:
            self._ended = True
            self._leave(before)

    def _run_to_the_end(self) -> None:
        if self.asyncify is not None:
            self.asyncify.run()
        else:
            self.invoke(self.start.entry)

    def call(self, name: str) -> None:
        """See `protocol.Instance`.

        Does nothing during a fork, or if many calls are nested already: the guest cannot be entered
        now, and the next tick may try again.
        """
        if not self.exports_procedure(name):
            raise KeyError(f"the module exports no function `{name}` without parameters")
        if self.asyncify is not None and self.asyncify.under_way:
            return
        if self.nested >= _NESTED_CALLS_MAX:
            return
        before = self._enter()
        self.nested += 1
        try:
            # During a tick, the store lacks its epoch callback: this guest would trap instead of
            # being interrupted. After the tick, the store gets its old callback back.
            self._store.set_epoch_callback()
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
        """Give a handler half of an overflowed C stack. No code returns into the frames there, but
        a handler may read the highest ones, where the program started."""
        pointer, reserve = self.stack_pointer(), self.stack_reserve()
        if pointer is not None and not _STACK_LEFT_MIN <= pointer <= reserve:
            self.set_stack_pointer(reserve // 2 & ~15)

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        store = self._store
        if store.closed:
            store.require_open()
        # Called at every wait, so the C function is called directly.
        return int(lib.wasmtime_memory_data_size(store.context, store.memory))

    def memory_view(self) -> memoryview:
        """The whole memory; the view is released by `close`."""
        return self._store.memory_view()

    def read(self, address: int, count: int) -> bytes:
        """See `protocol.LinearMemory`."""
        return bytes(self._slice(address, count))

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """See `protocol.LinearMemory`."""
        self._slice(address, len(data))[:] = data

    def _slice(self, address: int, count: int) -> memoryview:
        view = self.memory_view()
        if not 0 <= address <= address + count <= len(view):
            raise IndexError(f"{count} bytes at {address} of {len(view)}")
        return view[address : address + count]

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global."""
        values = self._module.constant_values
        if name not in values:
            if name not in self._module.exports.constants:
                return None
            values[name] = self._store.read_global(name)
        return values[name]

    def exports_procedure(self, name: str) -> bool:
        """See `protocol.Instance`."""
        return self._module.exports.functions.get(name) == 0

    def exported_variables(self) -> dict[str, int]:
        """The values of all exported mutable i32 globals."""
        return {
            name: self._store.read_global(name) for name in sorted(self._module.exports.variables)
        }

    def close(self) -> None:
        """Free everything; idempotent."""
        if self._depth:
            raise RuntimeError("the instance is running: let it end first")
        if self._store.closed:
            return
        with _sharing:
            if self._threads:  # the last one frees it
                self._close_wanted = True
                return
        self._free()

    def thread_began(self) -> None:
        """Another instance now uses this one's memory."""
        with _sharing:
            self._threads += 1
            self._had_threads = True

    def thread_closed(self) -> None:
        """An instance no longer uses this one's memory; the last one frees it."""
        with _sharing:
            self._threads -= 1
            last = not self._threads and self._close_wanted
        if last:
            self._free()

    def _free(self) -> None:
        for thread in self.idle_threads:
            thread._free()
        self.idle_threads.clear()
        spare = self._as_spare()
        self._calls = self.asyncify = None  # break reference cycles
        self._record = self._stack = None
        if spare is None:
            self._store.free()
        else:
            self._module.runtime.spares.keep(spare)
        self.use_image(None)

    def _as_spare(self) -> Spare | None:
        """The store, for the next fork of the program; None if it cannot be used again."""
        asyncify, calls, image = self.asyncify, self._calls, self.image
        if asyncify is None or calls is None or asyncify.under_way or not self._left_by_call:
            return None
        size = self.memory_size()
        exceptions = self.held_bytes() - self._module.instance_bytes
        if (
            size > MEMORY_MAX
            or exceptions > SPARE_EXCEPTION_BYTES
            or not (image is None or isinstance(image, MappedImage))
            or self._had_threads
        ):
            return None
        address = int(ffi.cast("uintptr_t", self.memory_base))
        written = list(written_ranges(address, 0, size)) if writes_can_be_told() else None
        if written is None or sum(end - start for start, end in written) > WRITTEN_MAX:
            return None
        store = self._store.hand_over()
        return Spare(store, calls.realm, self._module, image, size, written, time.monotonic())

    # --- for the callbacks

    def fail(self, error: BaseException) -> None:
        """Store the exception for `run` to raise; the first one counts."""
        if self._failure is None:
            self._failure = error

    def fork_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""
        assert self.asyncify is not None  # only such modules can import fork
        return self.asyncify.import_called(buffer)

    def tick(self) -> None:
        """The epoch advanced while the guest computed."""
        self._module.runtime.ticker.guest_ticked()
        place = place_of_this_thread()
        if place is not None:
            place.ticked()
        if self._failure is None:
            self.calls.tick()
        if self._failure is not None:  # a nested call failed, or the host is exiting
            raise self._failure

    # --- for a fork: see `asyncify.ForkingInstance`

    @property
    def calls(self) -> HostCalls:
        """The receiver of this guest's calls."""
        if self._calls is None:
            raise RuntimeError("bind() must be called before run()")
        return self._calls

    @property
    def entry(self) -> str:
        """The exported function that runs the program."""
        return self.start.entry

    def invoke(self, name: str, argument: int | None = None) -> None:
        """Call an exported function with no parameter or one i32."""
        self._depth += 1
        try:
            error, trap = self._store.call(name, argument)
        finally:
            self._depth -= 1
        if self._failure is not None:
            discard_failure(error, trap)
            raise self._failure
        if error or trap:
            self._failure = take_failure(self._store.context, error, trap)
            raise self._failure

    def sibling(self, memory_limit: int) -> WasmtimeInstance:
        """A new instance of the same module, which started in the same way. Raises
        `MemoryError`."""
        return self._module.instantiate(memory_limit, self.image, start=self.start)

    def new_child(self, memory_limit: int) -> WasmtimeInstance:
        """An instance for a copy of this one. Raises `MemoryError`."""
        image, spare = self.image, None
        if not isinstance(image, LayeredImage):
            spares = self._module.runtime.spares
            spare = spares.take(self.calls.realm, self._module, image, self.memory_size())
        if spare is None:
            return self.sibling(memory_limit)
        spare.store.limit_memory(memory_limit)
        child = WasmtimeInstance(self._module, spare.store)
        child.image, child.start, child._written_before = image, self.start, spare.written
        return child

    def grow_memory(self, size: int) -> bool:
        """Grow the memory to `size` bytes; False if that is not possible."""
        return self._store.grow_memory(size)

    def stack_pointer(self) -> int | None:
        """The C stack pointer; None if the module does not export it."""
        if STACK_POINTER not in self._module.exports.variables:
            return None
        return self._store.read_global(STACK_POINTER)

    def set_stack_pointer(self, address: int) -> None:
        """Set the C stack pointer, which the module exports."""
        self._store.set_global(STACK_POINTER, address)

    def set_variable(self, name: str, value: int) -> None:
        """Set a mutable i32 global that the module exports."""
        self._store.set_global(name, value)

    def begin_with(self, start: Start) -> None:
        """Start in another way than from the beginning; the module has what `start` names.

        Raises `MemoryError` if there is no room; the instance is then unusable.
        """
        if self.memory_size() < start.memory_size and not self.grow_memory(start.memory_size):
            raise MemoryError(f"no room for a memory of {start.memory_size} bytes")
        for name, value in start.variables.items():
            self.set_variable(name, value)
        self.start = start

    def copy_memory(self, child: WasmtimeInstance, ranges: Iterable[tuple[int, int]]) -> None:
        """Copy pages that may differ: pages that neither instance has written are skipped."""
        source, target = self.memory_base, child.memory_base
        address = int(ffi.cast("uintptr_t", source))
        mapped_end = 0 if child.image is None else child.image.end
        stale = child._written_before
        written = [run for start, end in ranges for run in written_ranges(address, start, end)]
        if stale is None:
            copy_runs(source, target, written, mapped_end)
        else:
            copy_over(source, target, written, stale, mapped_end)

    def use_image(self, image: MappedImage | LayeredImage | None) -> None:
        """From now on, `image` is the image of the memory."""
        before, self.image = self.image, image
        if isinstance(image, LayeredImage):
            image.joined(self)
        if isinstance(before, LayeredImage):
            before.left(self)

    @property
    def is_fork_copy(self) -> bool:
        """Whether this is a copy made by a fork that has not run yet."""
        return self.asyncify is not None and self.asyncify.is_copy

    # --- for the engine's abilities: see `abilities`

    def new_thread(self, stack_pointer: int, argument: int) -> WasmtimeThread:
        """Create another thread of this program, in the same memory."""
        return self._module.start_thread(self, stack_pointer, argument)

    def catch_up(self) -> None:
        """Nothing to do: this instance owns the memory."""

    def capture(self, *, stack: bool, entry: str = BEGINNING.entry) -> MappedImage:
        """Capture the current memory and exported variables."""
        variables, first = self.exported_variables(), 0
        if not stack:
            variables.pop(STACK_POINTER, None)
            first = self.stack_reserve()
        memory = self.memory_view()
        start = Start(entry, len(memory), variables)
        return captured_image(memory, first, start, self._module.runtime.cache)

    def stack_reserve(self) -> int:
        """The initial value of the C stack pointer."""
        return self._module.stack_reserve or 0

    def limit_memory(self, limit: int) -> None:
        """See `abilities.MemoryControl`."""
        self._store.require_open()
        self._store.limit_memory(limit)

    def held_bytes(self) -> int:
        """What the instance uses beside its linear memory."""
        record = self._record
        if record is None:
            if not self._started:  # so it has no exceptions
                return self._module.instance_bytes
            self._store.require_open()
            record = self._record = store_record(self._store.function("_start"))
        return self._module.instance_bytes + int(record.exception_heap_bytes)

    def record_bytes(self) -> int:
        """The size of the instance's own record in C. The instance must not have run."""
        return checked_instance_bytes(self._store.function("_start"), NEVER)

    def shared_bytes(self) -> int:
        """See `abilities.MemoryControl`."""
        return 0 if self.image is None else self.image.shared_bytes

    def written_bytes(self) -> int:
        """See `abilities.MemoryControl`."""
        self._store.require_open()
        return 0 if self.image is None else self.image.written_by(self)

    def stacks_in_use(self, c_stack: int) -> tuple[int, int]:
        """How much is resident of the C stack, and of the thread's stack beyond the usual part."""
        self._store.require_open()
        address = int(ffi.cast("uintptr_t", self.memory_base))
        used = resident_bytes(address, c_stack) if c_stack >= PAGE else 0
        most = self._module.runtime.settings.guest_stack_bytes + _HOST_CALL_STACK
        return used or 0, self._stack.deep_bytes(most) if self._stack is not None else 0

    # --- internal

    def _enter(self) -> tuple[int, hostcalls.Occupant]:
        self._store.require_open()
        if self._ended or self._failure is not None:
            raise RuntimeError("the instance has ended and cannot run again")
        runtime, thread = self._module.runtime, get_ident()
        if not runtime.threads.owns(thread):
            raise RuntimeError("guests run only on threads made by Engine.start_thread")
        self._stack = runtime.threads.stack(thread)
        runtime.fault_handlers.keep()
        self._store.set_deadline(1)
        before = hostcalls.enter(thread, self, self.calls)
        try:
            runtime.ticker.guest_entered()  # it checks the registered guests
        except BaseException:
            hostcalls.leave(thread, before)
            raise
        return thread, before

    def _leave(self, entered: tuple[int, hostcalls.Occupant]) -> None:
        hostcalls.leave(*entered)
        if self._failure is not None and not self._depth:
            self._ended = True
            self._failure = None  # its traceback refers to this instance
