"""The meaning of a failed call into a guest.

Owns the mapping from wasmtime's trap codes to `TrapKind`. Rules: C traps and errors are always
freed here.
"""

from __future__ import annotations

from wasmsand.engine.freed_memory import give_back_now
from wasmsand.engine.protocol import GuestTrap, TrapKind
from wasmsand.engine.wasmtime.bindings import CData, ffi, lib, take_bytes, take_error

_KIND_OF_CODE = {
    0: TrapKind.STACK,  # stack overflow
    1: TrapKind.MEMORY,  # memory out of bounds
    2: TrapKind.MEMORY,  # misaligned atomic
    3: TrapKind.INDIRECT_CALL,  # table out of bounds
    4: TrapKind.INDIRECT_CALL,  # indirect call to null
    5: TrapKind.INDIRECT_CALL,  # bad signature
    6: TrapKind.ARITHMETIC,  # integer overflow
    7: TrapKind.ARITHMETIC,  # division by zero
    8: TrapKind.ARITHMETIC,  # bad conversion to integer
    9: TrapKind.UNREACHABLE,
    13: TrapKind.INDIRECT_CALL,  # call of a null reference
    49: TrapKind.UNCAUGHT_EXCEPTION,
}


def _trap_kind(context: CData, trap: CData) -> TrapKind:
    code = ffi.new("uint8_t *")
    if not lib.wasmtime_trap_code(trap, code):
        thrown = lib.wasmtime_context_has_exception(context)
        return TrapKind.UNCAUGHT_EXCEPTION if thrown else TrapKind.OTHER
    return _KIND_OF_CODE.get(code[0], TrapKind.OTHER)


def take_failure(context: CData, error: CData, trap: CData) -> GuestTrap:
    """The exception for a call that returned an error or a trap."""
    if error:
        return GuestTrap(TrapKind.OTHER, take_error(error))
    kind = _trap_kind(context, trap)
    message = ffi.new("wasm_byte_vec_t *")
    lib.wasm_trap_message(trap, message)
    lib.wasm_trap_delete(trap)
    if kind is TrapKind.STACK:
        # wasmtime lists all frames of an overflowed stack, up to two million: 48 MB, which the C
        # library would keep.
        give_back_now(lib)
    return GuestTrap(kind, take_bytes(message).rstrip(b"\0").decode("utf-8", "replace"))


def discard_failure(error: CData, trap: CData) -> None:
    """Free the C error and trap of a call whose exception is already known."""
    if error:
        lib.wasmtime_error_delete(error)
    if trap:
        lib.wasm_trap_delete(trap)
