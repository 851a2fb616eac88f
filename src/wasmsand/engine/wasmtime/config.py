"""Configuration of wasmtime: language features, stacks, memory, compilation.

Owns every engine setting, and the fingerprint that distinguishes compiled modules of different
configurations. Rules: `async_stack_size` is set before `max_wasm_stack` (otherwise creating the
engine aborts the whole process). A setting that changes compiled code needs no version number here,
because the fingerprint is computed from the compiler's output.

Memory is allocated on demand. Measured with 2 MB of data: 20 us to instantiate and 8 us to close,
8 KB per idle instance. The pooling allocator took 7 + 3 us, but has a fixed number of slots, and a
stale pointer into a slot would reach another guest's memory instead of faulting.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wasmsand.engine.forking import native
from wasmsand.engine.wasmtime.bindings import NULL, RELEASE, CData, check, ffi, lib, take_bytes
from wasmsand.engine.wasmtime.processors import Processor

MIB = 1 << 20
_OPT_LEVEL_SPEED = 1
_EMPTY_MODULE = b"\0asm\1\0\0\0"
PARALLEL_COMPILATION = "wasmtime_config_parallel_compilation_set"
"""The only setting in `configuration` that does not change compiled code."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Sizes and times of an engine."""

    guest_stack_bytes: int = 32 * MIB
    """Native stack that compiled guest code may use before it traps."""
    thread_stack_bytes: int = 96 * MIB
    """Stack of a guest's thread: the guest's part, and ample room for host calls at its deepest
    point. It is only reserved until it is touched."""
    tick_seconds: float = 0.01
    idle_thread_seconds: float = 5.0
    table_elements: int = 131_072
    """Most elements of a table: Python with its libraries has 17,000, with scipy 60,000."""
    tables: int = 2
    """Compilers create one for functions, and some a second for host references."""
    instance_bytes: int = 512 * 1024
    """The largest size of an instance's globals and imports."""
    parallel_compilation: bool = True
    """Must be off in a process forked from one that has compiled: the compiler's threads do not
    exist there, and it would wait for them forever."""
    cached_modules: int = 64
    """Modules kept loaded although nobody uses them."""


def configuration(settings: EngineSettings) -> tuple[tuple[str, int], ...]:
    """The C API functions that configure a `wasm_config_t`, in this order, each with its value.
    Plain data, so that it can be passed to a compile worker."""
    # The results of relaxed SIMD differ between machines. Exceptions need the garbage collector's
    # runtime, but not its language feature.
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
        # The default reservation of 4 GiB holds any 32-bit memory, so memory never needs to move.
        ("wasmtime_config_memory_may_move_set", False),
        ("wasmtime_config_memory_init_cow_set", True),
        *((f"wasmtime_config_wasm_{feature}_set", True) for feature in on),
        *((f"wasmtime_config_wasm_{feature}_set", False) for feature in off),
        ("wasmtime_config_shared_memory_set", False),
    )


def new_engine(
    settings: EngineSettings,
    memory_creator: CData = NULL,
    processor: Processor | None = None,
) -> CData:
    """A `wasm_engine_t *` that frees itself. If given, a `wasmtime_memory_creator_t *` provides its
    memories; the engine can still open modules compiled by an engine without one. It compiles for
    `processor`, by default for that of this machine with all its features."""
    config = lib.wasm_config_new()
    for function, value in configuration(settings):
        getattr(lib, function)(config, value)
    if processor is not None:
        check(lib.wasmtime_config_target_set(config, processor.target.encode()))
        for feature in processor.features:
            lib.wasmtime_config_cranelift_flag_enable(config, feature.encode())
    if memory_creator:
        lib.wasmtime_config_host_memory_creator_set(config, memory_creator)
    with native():
        return ffi.gc(lib.wasm_engine_new_with_config(config), lib.wasm_engine_delete)


def probe(engine: CData) -> bytes:
    """A compiled empty module. wasmtime writes into each compiled module what the code depends on:
    its version, all settings, the features of this CPU."""
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
    """A short hash of the output of `probe` and of the exact release: wasmtime writes only its
    major release into modules, but a minor one may correct code that an earlier one compiled."""
    return hashlib.sha256(probed + RELEASE.encode()).hexdigest()[:16]
