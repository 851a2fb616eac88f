"""Memories that several instances share: the threads of a guest.

Owns the second C engine, whose instances use the memories of instances of the first, and how a
memory is passed between them. wasmtime has shared memories of its own, but these do not support the
copy-on-write images with which programs start, and need atomic instructions everywhere. Instead, a
thread's instance uses the addresses of the first instance's memory, through wasmtime's interface
for host-provided memories. Rules: only one instance of a memory runs at a time (the machine ensures
that). The first instance owns the memory and is closed last; only it grows the memory.

The second engine has the settings of the first, so it can open the same compiled files. Two
properties of the supported release are used (each has a test in `tests/engine`). Creating an
instance fills its memory with the module's data; so during creation it gets a scratch area, whose
size is not a multiple of a page, because otherwise wasmtime would ask for a copy-on-write image.
Growing by zero pages makes wasmtime read address and size again. wasmtime also requests memories
for itself (the exception heap); these are allocated here in the same way as wasmtime would.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
from typing import TYPE_CHECKING

from wasmsand.engine.wasmtime.bindings import CData, WasmtimeError, ffi, lib
from wasmsand.engine.wasmtime.compile_cache import CompileCache
from wasmsand.engine.wasmtime.compiler import load_compiled, open_compiled, serialise
from wasmsand.engine.wasmtime.config import EngineSettings, new_engine
from wasmsand.engine.wasmtime.epochs import EpochTicker
from wasmsand.engine.wasmtime.imports import ImportTable
from wasmsand.engine.wasmtime.shipped import ShippedModules

if TYPE_CHECKING:
    from wasmsand.engine.wasmtime.instance import WasmtimeInstance
    from wasmsand.engine.wasmtime.module import WasmtimeModule

_CAPACITY = 1 << 32
"""Address space that wasmtime reserves for every 32-bit memory."""
_SCRATCH_BYTES_MAX = 256 << 20
"""The most module data that may be in the scratch area at the same time."""


class SharedMemory:
    """The memory of `first`, as used by another instance."""

    __slots__ = ("_scratch", "first", "minimum")

    def __init__(self, first: WasmtimeInstance, scratch: int, minimum: int) -> None:
        self.first = first
        self.minimum = minimum
        self._scratch: int | None = scratch

    def leave_scratch(self) -> None:
        """The instance exists: from now on, use the memory of the first instance."""
        self._scratch = None

    def place(self) -> tuple[int, int, int]:
        """Address, size and capacity."""
        if self._scratch is not None:
            return self._scratch, self.minimum + 1, _CAPACITY
        address = int(ffi.cast("uintptr_t", self.first.memory_base))
        return address, self.first.memory_size(), _CAPACITY

    def grow(self, size: int) -> bool:
        """Grow the memory; False if that is not possible."""
        return self.first.grow_memory(size)


class PrivateMemory:
    """A memory that wasmtime uses for itself: reserved at once, accessible as far as it grew."""

    __slots__ = ("_address", "_area", "_reserved", "_size")

    def __init__(self, size: int, reserved: int, guard: int) -> None:
        self._reserved = max(size, reserved)
        self._area = mmap.mmap(
            -1,
            self._reserved + guard + mmap.PAGESIZE,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            prot=0,
        )
        self._address: CData = ffi.from_buffer(self._area)
        self._size = 0
        self.grow(size)

    def place(self) -> tuple[int, int, int]:
        """Address, size and capacity."""
        return int(ffi.cast("uintptr_t", self._address)), self._size, self._reserved

    def grow(self, size: int) -> bool:
        """Grow the memory; False if that is not possible."""
        if size > self._reserved:
            return False
        if size and lib.mprotect(self._address, size, mmap.PROT_READ | mmap.PROT_WRITE):
            return False
        self._size = size
        return True

    def forget(self) -> None:
        """Free all pages; they become zero."""
        self._area.madvise(mmap.MADV_DONTNEED)


class Scratch:
    """Where instances write their data while they are created. All use the same area, because
    nobody reads it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._area = PrivateMemory(0, _CAPACITY, mmap.PAGESIZE)
        self._writer: object = None
        self._written = 0

    def address(self, writer: object, size: int) -> int:
        """The address of `size` bytes for an instance of the module `writer`."""
        with self._lock:
            address, present, _ = self._area.place()
            if size > present and not self._area.grow(size):
                raise MemoryError(f"{size} bytes of scratch memory")
            # Written pages are kept for the next instance of the same module, but the data of many
            # modules must not accumulate.
            if writer is not self._writer:
                self._writer = writer
                self._written += size
            if self._written > _SCRATCH_BYTES_MAX:
                self._area.forget()
                self._written = size
            return address


class ThreadModule:
    """A module in the second engine, ready for instantiation."""

    __slots__ = ("_compiled", "_initial_bytes", "_scratch", "prepared")

    def __init__(
        self, compiled: CData, prepared: CData, initial_bytes: int, scratch: Scratch
    ) -> None:
        self._compiled = compiled
        self._initial_bytes = initial_bytes
        self._scratch = scratch
        self.prepared = prepared

    def share(self, first: WasmtimeInstance) -> SharedMemory:
        """The memory of `first`, for a further instance."""
        size = self._initial_bytes
        return SharedMemory(first, self._scratch.address(self, size + mmap.PAGESIZE), size)


class MemorySharing:
    """Creates instances that use the memory of another one."""

    def __init__(
        self,
        settings: EngineSettings,
        ticker: EpochTicker,
        cache: CompileCache,
        shipped: ShippedModules,
    ) -> None:
        self._settings = settings
        self._ticker = ticker
        self._cache = cache
        self._shipped = shipped
        self._start_lock = threading.Lock()
        self._scratch: Scratch | None = None
        self._engine: CData | None = None
        self._imports: ImportTable | None = None

    @property
    def engine(self) -> CData:
        """The second engine."""
        assert self._engine is not None  # callers have a module of it
        return self._engine

    def open(self, module: WasmtimeModule, initial_bytes: int) -> ThreadModule:
        """The module for threads, compiled by the first engine. Raises `MemoryError`."""
        if os.name != "posix":
            raise MemoryError("guest threads need POSIX memory mappings")
        with self._start_lock:
            if self._engine is None or self._imports is None or self._scratch is None:
                self._scratch = Scratch()
                self._engine = new_engine(self._settings, _CREATOR)
                self._imports = ImportTable(self._engine)
                self._ticker.add(self._engine)
        compiled = self._open_file(module.key)
        if compiled is None:
            compiled = load_compiled(self._engine, serialise(module.compiled))
        prepared = self._imports.prepare(compiled)
        return ThreadModule(compiled, prepared, initial_bytes, self._scratch)

    def _open_file(self, key: str) -> CData | None:
        path = self._cache.find(key)
        try:
            if path is None:
                return self._shipped.open(key, self._engine)
            return open_compiled(self._engine, path)
        except WasmtimeError:
            return None


class MemoryHandover:
    """Makes `memory` the next memory that wasmtime requests on this host thread."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory

    def __enter__(self) -> None:
        _wanted.memory = self._memory

    def __exit__(self, *_: object) -> None:
        _wanted.memory = None


class _Wanted(threading.local):
    memory: SharedMemory | None = None


_wanted = _Wanted()
_memories: dict[int, SharedMemory | PrivateMemory] = {}
_numbers = itertools.count(1)


def _failure(message: str) -> int:
    return int(ffi.cast("uintptr_t", lib.wasmtime_error_new(message.encode())))


@ffi.callback("new_memory_callback_t")  # type: ignore[untyped-decorator]  # cffi has no types
def _new_memory(
    environment: int,
    kind: int,
    minimum: int,
    maximum: int,
    reserved: int,
    guard: int,
    result: CData,
) -> int:
    wanted = _wanted.memory
    memory: SharedMemory | PrivateMemory
    if wanted is None or minimum != wanted.minimum:
        try:
            memory = PrivateMemory(minimum, reserved, guard)
        except (OSError, ValueError) as error:
            return _failure(str(error))
    else:
        memory, _wanted.memory = wanted, None
    number = next(_numbers)
    _memories[number] = memory
    result.env = number
    result.get_memory = _get_memory
    result.grow_memory = _grow_memory
    result.finalizer = _forget_memory
    return 0


@ffi.callback("get_memory_callback_t")  # type: ignore[untyped-decorator]
def _get_memory(number: int, size: CData, capacity: CData) -> int:
    address, size[0], capacity[0] = _memories[number].place()
    return address


@ffi.callback("grow_memory_callback_t")  # type: ignore[untyped-decorator]
def _grow_memory(number: int, size: int) -> int:
    if _memories[number].grow(size):
        return 0
    return _failure("the memory cannot grow")


@ffi.callback("memory_finalizer_t")  # type: ignore[untyped-decorator]
def _forget_memory(number: int) -> None:
    _memories.pop(number, None)


_CREATOR: CData = ffi.new("wasmtime_memory_creator_t *")
_CREATOR.new_memory = _new_memory
