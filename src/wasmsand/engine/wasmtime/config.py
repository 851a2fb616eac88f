"""How wasmtime is set up: language features, stacks, memory, compilation.

Owns every engine setting and the fingerprint that tells compiled modules of one set-up
from those of another. Rules: `async_stack_size` is set before `max_wasm_stack` (otherwise
making the engine aborts the whole process); a setting that changes compiled code needs no
version number here, because the fingerprint is taken from what the compiler writes.

Memory is allocated on demand. Measured with 2 MB of data: 20 us to instantiate and 8 us to
close, 8 KB per idle instance. The pooling allocator did it in 7 + 3 us, but has a fixed
number of slots, and a stale pointer into a slot would reach another guest's memory
instead of a fault.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wasmsand.engine.forking import native
from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib, take_bytes

MIB = 1 << 20
_OPT_LEVEL_SPEED = 1
_EMPTY_MODULE = b"\0asm\1\0\0\0"
PARALLEL_COMPILATION = "wasmtime_config_parallel_compilation_set"
"""The one setting of `configuration` that changes no compiled code."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Sizes and times of an engine."""

    guest_stack_bytes: int = 32 * MIB
    """Stack that compiled guest code may use before it traps."""
    thread_stack_bytes: int = 96 * MIB
    """Stack of a guest's thread: the guest's, and ample room for host calls at its deepest
    point. It is reserved, not used, until touched."""
    tick_seconds: float = 0.01
    idle_thread_seconds: float = 5.0
    table_elements: int = 131_072
    """Most elements of a table: Python with its libraries has 17,000, with scipy 60,000."""
    tables: int = 2
    """Compilers make one for functions, and some a second for references of the host."""
    instance_bytes: int = 512 * 1024
    """Most that the globals and imports of an instance take."""
    parallel_compilation: bool = True
    """Must be off in a process forked from one that has compiled: the compiler's threads did
    not come along, and it would wait for them for ever."""
    cached_modules: int = 64
    """Modules kept loaded although nobody uses them."""


def configuration(settings: EngineSettings) -> tuple[tuple[str, int], ...]:
    """The functions of the C API that set a `wasm_config_t` up, in this order, with the value
    of each. Plain data, so that a compile worker can be told."""
    # Relaxed SIMD gives results that differ between machines. Exceptions need the
    # collector's runtime but not its language feature.
    on = (
        "tail_call",
        "reference_types",
        "function_references",
        "simd",
        "bulk_memory",
        "multi_value",
        "exceptions",
    )
    off = (
        "relaxed_simd",
        "threads",
        "gc",
        "multi_memory",
        "memory64",
        "stack_switching",
        "custom_page_sizes",
    )
    return (
        ("wasmtime_config_async_stack_size_set", settings.guest_stack_bytes + MIB),
        ("wasmtime_config_max_wasm_stack_set", settings.guest_stack_bytes),
        ("wasmtime_config_epoch_interruption_set", True),
        ("wasmtime_config_concurrency_support_set", False),
        ("wasmtime_config_cranelift_opt_level_set", _OPT_LEVEL_SPEED),
        (PARALLEL_COMPILATION, settings.parallel_compilation),
        # The default reservation of 4 GiB holds any 32-bit memory, so it need never move.
        ("wasmtime_config_memory_may_move_set", False),
        ("wasmtime_config_memory_init_cow_set", True),
        *((f"wasmtime_config_wasm_{feature}_set", True) for feature in on),
        *((f"wasmtime_config_wasm_{feature}_set", False) for feature in off),
        ("wasmtime_config_shared_memory_set", False),
    )


def new_engine(settings: EngineSettings, memory_creator: CData = NULL) -> CData:
    """A `wasm_engine_t *` that frees itself. With a `wasmtime_memory_creator_t *` it gets its
    memories from there; it can still open what an engine without one compiled."""
    config = lib.wasm_config_new()
    for function, value in configuration(settings):
        getattr(lib, function)(config, value)
    if memory_creator:
        lib.wasmtime_config_host_memory_creator_set(config, memory_creator)
    with native():
        return ffi.gc(lib.wasm_engine_new_with_config(config), lib.wasm_engine_delete)


def probe(engine: CData) -> bytes:
    """An empty module, compiled. wasmtime writes into each compiled module what compiled code
    depends on: its version, all settings, this CPU's features."""
    module = ffi.new("wasmtime_module_t **")
    check(lib.wasmtime_module_new(engine, _EMPTY_MODULE, len(_EMPTY_MODULE), module))
    compiled = ffi.new("wasm_byte_vec_t *")
    try:
        check(lib.wasmtime_module_serialize(module[0], compiled))
    finally:
        lib.wasmtime_module_delete(module[0])
        module[0] = NULL
    return take_bytes(compiled)


def fingerprint(probed: bytes) -> str:
    """A short name for what `probe` gave."""
    return hashlib.sha256(probed).hexdigest()[:16]
