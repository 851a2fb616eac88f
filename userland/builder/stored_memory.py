"""The memory of a program at its checkpoint, as a file of the image.

Owns the file's format (`wasmsand.engine.stored_memory` reads it) and the check that a module can
start with it. Rules: the same memory gives the same bytes; state that the file cannot hold is a
`BadModule`, never dropped in silence.

The file has the memory from the end of the stack on, in whole WebAssembly pages, without the zeros
at its end. The stack is not kept: a stored program is entered anew, so what was on the stack is of
no use, and its pages stay untouched until they are needed.
"""

from __future__ import annotations

from userland.builder.errors import BadModule
from userland.builder.wasm_module import MAGIC, Reader

RESUME_ENTRY = "_resume"
"""The function by which a stored program is entered."""
_STACK_POINTER = "__stack_pointer"
_ASYNCIFY = "asyncify_start_unwind"
_ASYNCIFY_VARIABLES = 2
"""Asyncify adds these behind all others; outside of a fork their values mean nothing."""
_IMPORT, _GLOBAL, _EXPORT, _START, _DATA = 2, 6, 7, 8, 11
_FUNCTION_KIND, _GLOBAL_KIND = 0, 3
_I32, _I32_CONST, _END = 0x7F, 0x41, 0x0B
_WASM_PAGE = 65536


def stored_content(memory: bytes, stack_reserve: int) -> tuple[int, bytes]:
    """The address of the first byte, and the content of the file. `stack_reserve` is the size of
    the stack at the low end of the memory."""
    first = stack_reserve - stack_reserve % _WASM_PAGE
    rest = memory[stack_reserve:].rstrip(b"\0")
    content = bytes(stack_reserve - first) + rest
    return first, content + bytes(-len(content) % _WASM_PAGE)


def stack_reserve_of(data: bytes) -> int:
    """The size of the stack of a module that can start with stored memory: the stack is at the low
    end of the memory, and the values of all variables can be read and set. Raises `BadModule`."""
    if not data.startswith(MAGIC):
        raise BadModule("not a WebAssembly module")
    reader = Reader(data, len(MAGIC), len(data))
    variables: dict[int, int] = {}
    exports: dict[tuple[str, int], int] = {}
    lowest_data = 1 << 32
    while not reader.done:
        kind, body = reader.section()
        match kind:
            case k if k == _IMPORT:
                _check_imports(body)
            case k if k == _GLOBAL:
                variables = _variables(body)
            case k if k == _EXPORT:
                exports = {(body.name(), body.byte()): body.number() for _ in range(body.number())}
            case k if k == _START:
                raise BadModule("has a start section, which would run again")
            case k if k == _DATA:
                lowest_data = _lowest_data(body)
    if (RESUME_ENTRY, _FUNCTION_KIND) not in exports:
        raise BadModule(
            f"exports no {RESUME_ENTRY}",
            "Link userland/libc/checkpoint/checkpoint.c, which defines it.",
        )
    exported = {index for (_, kind), index in exports.items() if kind == _GLOBAL_KIND}
    hidden = variables.keys() - exported
    if (_ASYNCIFY, _FUNCTION_KIND) in exports:
        hidden -= set(sorted(hidden)[-_ASYNCIFY_VARIABLES:])
    if hidden:
        raise BadModule(
            f"does not export its mutable globals {', '.join(map(str, sorted(hidden)))}",
            "Their values would be lost: link with --export=NAME.",
        )
    pointer = exports.get((_STACK_POINTER, _GLOBAL_KIND))
    if pointer not in variables:
        raise BadModule(f"exports no variable {_STACK_POINTER}")
    stack_reserve = variables[pointer]
    if lowest_data < stack_reserve:
        raise BadModule("has data below its stack", "Link with --stack-first.")
    return stack_reserve


def _check_imports(body: Reader) -> None:
    for _ in range(body.number()):
        name = f"{body.name()}.{body.name()}"
        if body.byte() != _FUNCTION_KIND:
            raise BadModule(f"imports {name}, which is no function")
        body.number()


def _variables(body: Reader) -> dict[int, int]:
    """The initial values of the mutable globals, by index."""
    found = {}
    for index in range(body.number()):
        if body.byte() != _I32:
            raise BadModule("has a global that is no i32")
        mutable = body.byte()
        value = _constant(body)
        if mutable:
            found[index] = value
    return found


def _lowest_data(body: Reader) -> int:
    lowest = 1 << 32
    for _ in range(body.number()):
        if body.number() != 0:
            raise BadModule("has data that is not in memory from the start")
        lowest = min(lowest, _constant(body))
        body.skip(body.number())
    return lowest


def _constant(body: Reader) -> int:
    """The value of a constant expression."""
    if body.byte() != _I32_CONST:
        raise BadModule("has an initial value that is no i32 constant")
    value = body.signed_number()
    if body.byte() != _END:
        raise BadModule("has an initial value that is computed")
    return value & 0xFFFF_FFFF
