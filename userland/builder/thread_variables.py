"""Thread-local variables of C++ in extension modules, put where threads keep their own.

The compiler makes `thread_local` of C++ one variable for all threads (L001). pybind11 notes the
running call of each thread in such a variable, and ends the process if it finds another one there.
So these variables become undefined symbols of their objects, and the interpreter defines them in
the section whose content each thread has for itself.

Owns which variables these are. Rules: only variables that start as zero; only the symbol table of
an object is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from userland.builder.errors import BadModule
from userland.builder.wasm_module import MAGIC, Reader, encoded_number

_VARIABLE = re.compile(
    r"_ZZ\w*8pybind11\w*E(9frame_ptr|11internals_p|11last_istate|14currently_used)"
)
_LINKING = b"\x07linking"
_CUSTOM = 0
_SYMBOL_TABLE = 8
_FUNCTION, _DATA, _GLOBAL, _SECTION, _TAG, _TABLE = range(6)
_VISIBILITY, _UNDEFINED, _EXPLICIT_NAME = 0b111, 0x10, 0x40


@dataclass(frozen=True)
class ThreadVariable:
    """A variable that the interpreter has to define."""

    name: str
    size: int


def with_thread_variables(data: bytes, module: str) -> tuple[bytes, list[ThreadVariable]]:
    """The object of a module without the definitions of these variables, and the variables.

    Their new names contain the module's name: each module has its own.
    """
    found: list[ThreadVariable] = []
    parts = [MAGIC]
    reader = Reader(data, len(MAGIC), len(data))
    while not reader.done:
        kind, body = reader.section()
        content = body.rest()
        if kind == _CUSTOM and content.startswith(_LINKING):
            content = _rewritten(content, module, found)
        parts.append(bytes([kind]) + _sized(content))
    return b"".join(parts) if found else data, found


def _rewritten(content: bytes, module: str, found: list[ThreadVariable]) -> bytes:
    reader = Reader(content, len(_LINKING), len(content))
    reader.number()
    parts = [reader.between(0)]
    while not reader.done:
        kind, body = reader.section()
        part = _symbol_table(body, module, found) if kind == _SYMBOL_TABLE else body.rest()
        parts.append(bytes([kind]) + _sized(part))
    return b"".join(parts)


def _symbol_table(body: Reader, module: str, found: list[ThreadVariable]) -> bytes:
    count = body.number()
    parts = [encoded_number(count)]
    for _ in range(count):
        start = body.position
        kind, flags = body.byte(), body.number()
        if kind == _DATA:
            name = body.name()
            if not flags & _UNDEFINED:
                _segment, _offset, size = (body.number() for _ in range(3))
                if _VARIABLE.fullmatch(name):
                    variable = ThreadVariable(f"{name}.{module}", size)
                    found.append(variable)
                    flags = flags & ~_VISIBILITY | _UNDEFINED
                    symbol = bytes([kind]) + encoded_number(flags) + _sized(variable.name.encode())
                    parts.append(symbol)
                    continue
        elif kind in (_FUNCTION, _GLOBAL, _TAG, _TABLE, _SECTION):
            body.number()
            if kind != _SECTION and (not flags & _UNDEFINED or flags & _EXPLICIT_NAME):
                body.name()
        else:
            raise BadModule(f"unknown kind of symbol: {kind}")
        parts.append(body.between(start))
    return b"".join(parts)


def _sized(content: bytes) -> bytes:
    return encoded_number(len(content)) + content


def definitions(variables: Iterable[ThreadVariable]) -> str:
    """C source that defines the variables; our compiler driver knows `_Thread_local`."""
    return "".join(
        f"_Thread_local _Alignas(8) char thread_variable_{number}[{variable.size}] "
        f'__asm__("{variable.name}");\n'
        for number, variable in enumerate(variables)
    )
