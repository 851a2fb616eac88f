"""The part of wasmtime's C API that this package uses, as C declarations.

Owns the C text, and the generator of `_c_types.py`, its compact form: parsing C at every start
would take 60 ms. Rules: after any change here, run `python -m
wasmsand.engine.wasmtime.c_declarations`; a test fails if the two differ. The declarations are valid
for the wasmtime release in `bindings.SUPPORTED_RELEASE`; in another release, a changed struct
layout would corrupt memory.

Callbacks take and return addresses as integers, and omit a last parameter that nobody reads (the
caller passes it in a register): fewer objects are built, which saves a quarter per call.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

GENERATED = Path(__file__).with_name("_c_types.py")

C_DECLARATIONS = """
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasm_trap_t wasm_trap_t;
typedef struct wasm_valtype_t wasm_valtype_t;
typedef struct wasm_functype_t wasm_functype_t;
typedef struct wasm_globaltype_t wasm_globaltype_t;
typedef struct wasm_memorytype_t wasm_memorytype_t;
typedef struct wasm_externtype_t wasm_externtype_t;
typedef struct wasm_importtype_t wasm_importtype_t;
typedef struct wasm_exporttype_t wasm_exporttype_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef struct wasmtime_store wasmtime_store_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_linker wasmtime_linker_t;
typedef struct wasmtime_instance_pre wasmtime_instance_pre_t;

typedef struct { size_t size; char *data; } wasm_byte_vec_t;
typedef struct { size_t size; wasm_valtype_t **data; } wasm_valtype_vec_t;
typedef struct { size_t size; wasm_importtype_t **data; } wasm_importtype_vec_t;
typedef struct { size_t size; wasm_exporttype_t **data; } wasm_exporttype_vec_t;

typedef struct { uint64_t store_id; size_t index; } wasmtime_instance_t;
typedef struct { uint64_t store_id; void *function; } wasmtime_func_t;
typedef struct {
    struct { uint64_t store_id; uint32_t instance; };
    uint32_t index;
} wasmtime_memory_t;
typedef struct { uint64_t store_id; uint32_t a; uint32_t b; uint32_t c; } wasmtime_global_t;
typedef struct {
    uint8_t kind;
    union {
        wasmtime_func_t func;
        wasmtime_global_t global;
        wasmtime_memory_t memory;
        uint64_t room[3];
    } of;
} wasmtime_extern_t;
typedef struct {
    uint8_t kind;
    union { int32_t i32; uint64_t room[3]; } of;
} wasmtime_val_t;

/* Raw values lie 16 bytes apart; the result takes the place of the first argument. */
typedef struct {
    union { uint32_t nr; int32_t result; };
    uint32_t pad0[3];
    uint32_t a; uint32_t pad1[3];
    uint32_t b; uint32_t pad2[3];
    uint32_t c; uint32_t pad3[3];
    uint32_t d; uint32_t pad4[3];
    uint32_t e; uint32_t pad5[3];
    uint32_t f; uint32_t pad6[3];
} syscall_values_t;
typedef struct {
    union { uint32_t buffer; int32_t result; };
    uint32_t pad[3];
} fork_values_t;
/* The same for functions of any type: each value as either of its types. */
typedef struct {
    union { uint32_t a; uint64_t a64; int32_t result; };
    uint64_t pad0;
    union { uint32_t b; uint64_t b64; }; uint64_t pad1;
    union { uint32_t c; uint64_t c64; }; uint64_t pad2;
    union { uint32_t d; uint64_t d64; }; uint64_t pad3;
    union { uint32_t e; uint64_t e64; }; uint64_t pad4;
    union { uint32_t f; uint64_t f64; }; uint64_t pad5;
    union { uint32_t g; uint64_t g64; }; uint64_t pad6;
    union { uint32_t h; uint64_t h64; }; uint64_t pad7;
    union { uint32_t i; uint64_t i64; }; uint64_t pad8;
} function_values_t;
typedef uintptr_t (*syscall_callback_t)(uintptr_t, uintptr_t, syscall_values_t *);
typedef uintptr_t (*fork_callback_t)(uintptr_t, uintptr_t, fork_values_t *);
typedef uintptr_t (*function_callback_t)(uintptr_t, uintptr_t, function_values_t *);
typedef uintptr_t (*epoch_callback_t)(uintptr_t, uintptr_t, uint64_t *);

/* A memory that the host provides. */
typedef uintptr_t (*get_memory_callback_t)(uintptr_t, size_t *size, size_t *capacity);
typedef uintptr_t (*grow_memory_callback_t)(uintptr_t, size_t size);
typedef void (*memory_finalizer_t)(uintptr_t);
typedef struct {
    uintptr_t env;
    get_memory_callback_t get_memory;
    grow_memory_callback_t grow_memory;
    memory_finalizer_t finalizer;
} wasmtime_linear_memory_t;
typedef uintptr_t (*new_memory_callback_t)(
    uintptr_t, uintptr_t type, size_t minimum, size_t maximum, size_t reserved, size_t guard,
    wasmtime_linear_memory_t *);
typedef struct {
    uintptr_t env;
    new_memory_callback_t new_memory;
    uintptr_t finalizer;
} wasmtime_memory_creator_t;

/* From the C library of 64-bit Linux (glibc and musl), not from wasmtime. */
typedef struct {
    uintptr_t handler;
    uint64_t mask[16];
    int flags;
    uintptr_t restorer;
} sigaction_t;
int sigaction(int, const sigaction_t *, sigaction_t *);
int mprotect(void *, size_t, int);
int prctl(int, ...);
void *mmap(void *, size_t, int, int, int, int64_t);
int mincore(void *, size_t, unsigned char *);
int madvise(void *, size_t, int);
int fallocate(int, int, int64_t, int64_t);
int malloc_trim(size_t);
int sched_getcpu(void);
int mallopt(int, int);
typedef struct { uint64_t room[16]; } pthread_attr_t;
uintptr_t pthread_self(void);
int pthread_getattr_np(uintptr_t, pthread_attr_t *);
int pthread_attr_getstack(const pthread_attr_t *, void **, size_t *);
int pthread_attr_destroy(pthread_attr_t *);

/* Internal records of wasmtime 50, as far as they are read here: see `holdings`. */
typedef struct {
    int64_t fuel_consumed;
    uint64_t epoch_deadline;
    uint64_t execution_version;
    uintptr_t stack_limit;
    uintptr_t exception_heap;
    size_t exception_heap_bytes;
} store_record_t;
typedef struct { char magic[4]; store_record_t *store; } instance_record_t;
typedef struct {
    uintptr_t calls[2];
    uint32_t type;
    instance_record_t *instance;
} function_record_t;

void wasm_byte_vec_delete(wasm_byte_vec_t *);

wasm_config_t *wasm_config_new(void);
void wasmtime_config_async_stack_size_set(wasm_config_t *, size_t);
void wasmtime_config_max_wasm_stack_set(wasm_config_t *, size_t);
void wasmtime_config_epoch_interruption_set(wasm_config_t *, bool);
void wasmtime_config_concurrency_support_set(wasm_config_t *, bool);
void wasmtime_config_cranelift_opt_level_set(wasm_config_t *, uint8_t);
void wasmtime_config_parallel_compilation_set(wasm_config_t *, bool);
wasmtime_error_t *wasmtime_config_target_set(wasm_config_t *, const char *);
void wasmtime_config_cranelift_flag_enable(wasm_config_t *, const char *);
void wasmtime_config_memory_may_move_set(wasm_config_t *, bool);
void wasmtime_config_memory_init_cow_set(wasm_config_t *, bool);
void wasmtime_config_shared_memory_set(wasm_config_t *, bool);
void wasmtime_config_host_memory_creator_set(wasm_config_t *, const wasmtime_memory_creator_t *);
void wasmtime_config_wasm_threads_set(wasm_config_t *, bool);
void wasmtime_config_wasm_tail_call_set(wasm_config_t *, bool);
void wasmtime_config_wasm_reference_types_set(wasm_config_t *, bool);
void wasmtime_config_wasm_function_references_set(wasm_config_t *, bool);
void wasmtime_config_wasm_gc_set(wasm_config_t *, bool);
void wasmtime_config_wasm_simd_set(wasm_config_t *, bool);
void wasmtime_config_wasm_relaxed_simd_set(wasm_config_t *, bool);
void wasmtime_config_wasm_bulk_memory_set(wasm_config_t *, bool);
void wasmtime_config_wasm_multi_value_set(wasm_config_t *, bool);
void wasmtime_config_wasm_multi_memory_set(wasm_config_t *, bool);
void wasmtime_config_wasm_memory64_set(wasm_config_t *, bool);
void wasmtime_config_wasm_exceptions_set(wasm_config_t *, bool);
void wasmtime_config_wasm_stack_switching_set(wasm_config_t *, bool);
void wasmtime_config_wasm_custom_page_sizes_set(wasm_config_t *, bool);

wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *);
void wasm_engine_delete(wasm_engine_t *);
void wasmtime_engine_increment_epoch(wasm_engine_t *);

void wasmtime_error_delete(wasmtime_error_t *);
void wasmtime_error_message(const wasmtime_error_t *, wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_error_new(const char *);
wasm_trap_t *wasmtime_trap_new(const char *, size_t);
bool wasmtime_trap_code(const wasm_trap_t *, uint8_t *);
void wasm_trap_message(const wasm_trap_t *, wasm_byte_vec_t *);
void wasm_trap_delete(wasm_trap_t *);

wasmtime_error_t *wasmtime_module_validate(wasm_engine_t *, const char *, size_t);
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const char *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_deserialize_file(
    wasm_engine_t *, const char *, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_deserialize(
    wasm_engine_t *, const char *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_serialize(wasmtime_module_t *, wasm_byte_vec_t *);
void wasmtime_module_delete(wasmtime_module_t *);
void wasmtime_module_imports(const wasmtime_module_t *, wasm_importtype_vec_t *);
void wasmtime_module_exports(const wasmtime_module_t *, wasm_exporttype_vec_t *);
void wasm_importtype_vec_delete(wasm_importtype_vec_t *);
void wasm_exporttype_vec_delete(wasm_exporttype_vec_t *);
const wasm_byte_vec_t *wasm_importtype_module(const wasm_importtype_t *);
const wasm_byte_vec_t *wasm_importtype_name(const wasm_importtype_t *);
const wasm_byte_vec_t *wasm_exporttype_name(const wasm_exporttype_t *);
const wasm_externtype_t *wasm_exporttype_type(const wasm_exporttype_t *);
uint8_t wasm_externtype_kind(const wasm_externtype_t *);
const wasm_functype_t *wasm_externtype_as_functype_const(const wasm_externtype_t *);
const wasm_globaltype_t *wasm_externtype_as_globaltype_const(const wasm_externtype_t *);
const wasm_memorytype_t *wasm_externtype_as_memorytype_const(const wasm_externtype_t *);
const wasm_valtype_vec_t *wasm_functype_params(const wasm_functype_t *);
const wasm_valtype_vec_t *wasm_functype_results(const wasm_functype_t *);
const wasm_valtype_t *wasm_globaltype_content(const wasm_globaltype_t *);
uint8_t wasm_globaltype_mutability(const wasm_globaltype_t *);
uint64_t wasmtime_memorytype_minimum(const wasm_memorytype_t *);
wasm_valtype_t *wasm_valtype_new(uint8_t);
bool wasmtime_wasm_valtype_equal(const wasm_valtype_t *, const wasm_valtype_t *);
void wasm_valtype_delete(wasm_valtype_t *);
void wasm_valtype_vec_new(wasm_valtype_vec_t *, size_t, wasm_valtype_t **);
wasm_functype_t *wasm_functype_new(wasm_valtype_vec_t *, wasm_valtype_vec_t *);
void wasm_functype_delete(wasm_functype_t *);

wasmtime_linker_t *wasmtime_linker_new(wasm_engine_t *);
void wasmtime_linker_delete(wasmtime_linker_t *);
wasmtime_error_t *wasmtime_linker_define_func_unchecked(
    wasmtime_linker_t *, const char *, size_t, const char *, size_t,
    const wasm_functype_t *, void *callback, void *environment, void *finalizer);
wasmtime_error_t *wasmtime_linker_instantiate_pre(
    const wasmtime_linker_t *, const wasmtime_module_t *, wasmtime_instance_pre_t **);
void wasmtime_instance_pre_delete(wasmtime_instance_pre_t *);
wasmtime_error_t *wasmtime_instance_pre_instantiate(
    const wasmtime_instance_pre_t *, wasmtime_context_t *, wasmtime_instance_t *, wasm_trap_t **);
bool wasmtime_instance_export_get(
    wasmtime_context_t *, const wasmtime_instance_t *, const char *, size_t, wasmtime_extern_t *);

wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *data, void *finalizer);
void wasmtime_store_delete(wasmtime_store_t *);
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
void wasmtime_store_limiter(wasmtime_store_t *, int64_t memory_size, int64_t table_elements,
    int64_t instances, int64_t tables, int64_t memories);
void wasmtime_store_epoch_deadline_callback(
    wasmtime_store_t *, epoch_callback_t, void *data, void *finalizer);
void wasmtime_context_set_epoch_deadline(wasmtime_context_t *, uint64_t ticks_from_now);
bool wasmtime_context_has_exception(wasmtime_context_t *);

wasmtime_error_t *wasmtime_func_call(
    wasmtime_context_t *, const wasmtime_func_t *, const wasmtime_val_t *arguments, size_t,
    wasmtime_val_t *results, size_t, wasm_trap_t **);
void wasmtime_global_get(wasmtime_context_t *, const wasmtime_global_t *, wasmtime_val_t *);
wasmtime_error_t *wasmtime_global_set(
    wasmtime_context_t *, const wasmtime_global_t *, const wasmtime_val_t *);
uint8_t *wasmtime_memory_data(const wasmtime_context_t *, const wasmtime_memory_t *);
size_t wasmtime_memory_data_size(const wasmtime_context_t *, const wasmtime_memory_t *);
wasmtime_error_t *wasmtime_memory_grow(
    wasmtime_context_t *, const wasmtime_memory_t *, uint64_t pages, uint64_t *previous);

wasmtime_error_t *wasmtime_wat2wasm(const char *, size_t, wasm_byte_vec_t *);
"""

_HEADER = """\
# Generated by wasmsand.engine.wasmtime.c_declarations: do not edit.
# mypy: ignore-errors
# ruff: noqa
# fmt: off
"""


def generated_text() -> str:
    """The required content of `_c_types.py`."""
    import cffi  # type: ignore[import-untyped]  # it has no stubs

    ffi = cffi.FFI()
    ffi.set_source("wasmsand.engine.wasmtime._c_types", None)
    ffi.cdef(C_DECLARATIONS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "types.py")
        ffi.emit_python_code(str(path))
        return _HEADER + path.read_text(encoding="ascii").removeprefix("# auto-generated file\n")


if __name__ == "__main__":
    GENERATED.write_text(generated_text(), encoding="ascii")
