"""Checks that the methods of extension modules have the parameters that Python passes to them.

A table of methods (`PyMethodDef`) has pointers to functions, and flags that say how Python calls
them. A cast makes a pointer of any function, and on most machines a call with too many arguments
works. In WebAssembly it traps: such a method ends the interpreter in the middle of a program. This
finds them when the interpreter is linked.

Owns the reading of such tables in relocatable objects. Rules: an entry is recognised by what the
linker will fill in (a name, a function, a text or nothing) and by flags that Python knows, so a
table that the module writes at run time is not seen. Tables of attributes (`PyGetSetDef`) have no
flags, and other structures look like them: there a function counts only if it lacks just the last
parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from userland.builder.errors import BadModule
from userland.builder.wasm_module import MAGIC, Reader

_CUSTOM, _TYPE, _IMPORT, _FUNCTION, _DATA = 0, 1, 2, 3, 11
_LINKING, _RELOCATIONS = "linking", "reloc.DATA"
_SYMBOL_TABLE = 8
_UNDEFINED, _EXPLICIT_NAME = 0x10, 0x40
_FUNCTION_SYMBOL, _DATA_SYMBOL, _SECTION_SYMBOL = 0, 1, 3
_TABLE_INDEX, _MEMORY_ADDRESS = 2, 5
_WITH_ADDEND = (3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 21, 22, 23, 25)
_PARAMETERS = {0x1: 2, 0x3: 3, 0x4: 2, 0x8: 2, 0x80: 3, 0x82: 4, 0x282: 5}
"""How many parameters a method has, by its flags (METH_VARARGS and so on)."""
_HOW_FOUND = 0x10 | 0x20 | 0x40
"""METH_CLASS, METH_STATIC and METH_COEXIST do not matter for the call."""
_I32 = 0x7F


@dataclass
class _Object:
    """What of a relocatable object tells about its tables of methods."""

    types: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Parameters and results of each type."""
    functions: list[int] = field(default_factory=list)
    """The type of each function, imported ones first."""
    symbols: list[tuple[str, int] | None] = field(default_factory=list)
    """Name and index of symbols that are functions."""
    data: bytes = b""
    pointers: dict[int, int] = field(default_factory=dict)
    """Functions that data points to: their symbols, by the place in the data."""
    addresses: set[int] = field(default_factory=set)
    """Places in the data that get another address."""

    def word(self, place: int) -> int:
        return int.from_bytes(self.data[place : place + 4], "little")

    def is_address(self, place: int) -> bool:
        return place in self.addresses

    def is_number(self, place: int) -> bool:
        return place not in self.addresses and place not in self.pointers

    def is_null(self, place: int) -> bool:
        return self.is_number(place) and self.word(place) == 0

    def is_address_or_null(self, place: int) -> bool:
        return self.is_address(place) or self.is_null(place)

    def is_function_or_null(self, place: int) -> bool:
        return place in self.pointers or self.is_null(place)


def check_methods(data: bytes, module: str) -> None:
    """Raise `BadModule` if methods of this object do not have the parameters of their calls."""
    found = sorted(set(unfit_methods(data)))
    if found:
        raise BadModule(
            f"{module}: methods without the parameters that Python passes: {', '.join(found)}",
            "Such a call traps. userland/builder/fit_methods.py can change the source.",
        )


def unfit_methods(data: bytes) -> Iterator[str]:
    """The functions in tables of methods and attributes that cannot be called as Python does."""
    parsed = _parsed(data)
    for place, symbol in parsed.pointers.items():
        function = parsed.symbols[symbol]
        if function is None:
            continue
        name, index = function
        actual = parsed.types[parsed.functions[index]]
        expected = _method_parameters(parsed, place)
        if expected is not None:
            if actual != _signature(expected):
                yield name
        elif (_is_getter(parsed, place) and actual == _signature(1)) or (
            _is_setter(parsed, place) and actual == _signature(2)
        ):
            yield name


def _signature(parameters: int) -> tuple[bytes, bytes]:
    return bytes([_I32]) * parameters, bytes([_I32])


def _method_parameters(parsed: _Object, place: int) -> int | None:
    """How many parameters the function at this place gets, if this is an entry for a method."""
    if (
        parsed.is_address(place - 4)
        and parsed.is_number(place + 4)
        and parsed.is_address_or_null(place + 8)
    ):
        return _PARAMETERS.get(parsed.word(place + 4) & ~_HOW_FOUND)
    return None


def _is_getter(parsed: _Object, place: int) -> bool:
    return (
        parsed.is_address(place - 4)
        and parsed.is_function_or_null(place + 4)
        and parsed.is_address_or_null(place + 8)
    )


def _is_setter(parsed: _Object, place: int) -> bool:
    return (
        parsed.is_address(place - 8)
        and parsed.is_function_or_null(place - 4)
        and parsed.is_address_or_null(place + 4)
    )


def _parsed(data: bytes) -> _Object:
    if not data.startswith(MAGIC):
        raise BadModule("not a WebAssembly object")
    parsed = _Object()
    reader = Reader(data, len(MAGIC), len(data))
    while not reader.done:
        kind, body = reader.section()
        if kind == _TYPE:
            parsed.types = [_type(body) for _ in range(body.number())]
        elif kind == _IMPORT:
            parsed.functions += _imported_functions(body)
        elif kind == _FUNCTION:
            parsed.functions += [body.number() for _ in range(body.number())]
        elif kind == _DATA:
            parsed.data = body.rest()
        elif kind == _CUSTOM:
            name = body.name()
            if name == _LINKING:
                parsed.symbols = _functions_of_symbols(body)
            elif name == _RELOCATIONS:
                _read_relocations(body, parsed)
    return parsed


def _type(body: Reader) -> tuple[bytes, bytes]:
    body.byte()
    parameters = bytes(body.byte() for _ in range(body.number()))
    return parameters, bytes(body.byte() for _ in range(body.number()))


def _imported_functions(body: Reader) -> Iterator[int]:
    for _ in range(body.number()):
        body.name(), body.name()
        kind = body.byte()
        if kind == 0:
            yield body.number()
        elif kind == 3:
            body.skip(2)
        elif kind == 4:
            body.byte(), body.number()
        else:
            if kind == 1:
                body.byte()
            has_maximum = body.byte() & 1
            body.number()
            if has_maximum:
                body.number()


def _functions_of_symbols(body: Reader) -> list[tuple[str, int] | None]:
    body.number()
    while not body.done:
        kind, part = body.section()
        if kind == _SYMBOL_TABLE:
            return [_function_of_symbol(part) for _ in range(part.number())]
    return []


def _function_of_symbol(part: Reader) -> tuple[str, int] | None:
    kind, flags = part.byte(), part.number()
    if kind == _SECTION_SYMBOL:
        part.number()
        return None
    if kind == _DATA_SYMBOL:
        part.name()
        if not flags & _UNDEFINED:
            part.number(), part.number(), part.number()
        return None
    index = part.number()
    name = part.name() if not flags & _UNDEFINED or flags & _EXPLICIT_NAME else "?"
    return (name, index) if kind == _FUNCTION_SYMBOL else None


def _read_relocations(body: Reader, parsed: _Object) -> None:
    body.number()
    for _ in range(body.number()):
        kind, place, symbol = body.number(), body.number(), body.number()
        if kind in _WITH_ADDEND:
            body.number()
        if kind == _TABLE_INDEX:
            parsed.pointers[place] = symbol
        elif kind == _MEMORY_ADDRESS:
            parsed.addresses.add(place)
