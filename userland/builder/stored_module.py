"""A module that begins where a run of it was stored.

Owns the rewriting: the stored memory becomes the module's data, stored variables the initial
values of its globals, and its second entry point the first. Rules: nothing is executed here;
the code is not touched; the same input gives the same bytes; what cannot be kept right is a
`BadModule`, never dropped in silence.

The stack is not kept. A stored program is entered anew, so what was on the stack is of no
use, and its pages stay untouched until they are needed. Pages of zeros are left out as well:
an engine maps what is left, shared by all instances, and copies a page when it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from userland.builder.errors import BadModule
from userland.builder.wasm_module import MAGIC, Reader

ENTRY = "_start"
RESUME_ENTRY = "_resume"
"""The function that a stored program exports to be entered by."""
_STACK_POINTER = "__stack_pointer"
_VARIABLE = "__variable_"

_IMPORT, _MEMORY, _GLOBAL, _EXPORT, _START, _DATA_COUNT, _DATA = 2, 5, 6, 7, 8, 12, 11
_CUSTOM = 0
_FUNCTION_KIND, _GLOBAL_KIND = 0, 3
_I32, _I32_CONST, _END = 0x7F, 0x41, 0x0B
_WASM_PAGE = 65536
_PAGE = 4096
_ZEROS = bytes(_PAGE)


@dataclass(frozen=True)
class _Global:
    mutable: bool
    value: int
    encoded: bytes


@dataclass(frozen=True)
class _Export:
    name: str
    kind: int
    index: int


@dataclass(frozen=True)
class _Module:
    sections: tuple[tuple[int, bytes], ...]
    globals: tuple[_Global, ...]
    exports: tuple[_Export, ...]
    lowest_data: int

    def exported(self, name: str, kind: int) -> int | None:
        """The index of what is exported by this name."""
        return next((e.index for e in self.exports if (e.name, e.kind) == (name, kind)), None)

    def variables(self) -> dict[int, str]:
        """The mutable globals, and how they are exported."""
        names = {e.index: e.name for e in self.exports if e.kind == _GLOBAL_KIND}
        return {
            index: names.get(index, f"{_VARIABLE}{index}")
            for index, variable in enumerate(self.globals)
            if variable.mutable
        }

    @property
    def stack_reserve(self) -> int:
        """The first value of the stack pointer: the stack is below it, all data above."""
        index = self.exported(_STACK_POINTER, _GLOBAL_KIND)
        if index is None:
            raise BadModule(f"exports no global {_STACK_POINTER}")
        value = self.globals[index].value
        if self.lowest_data < value:
            raise BadModule("has data below its stack", "Link with --stack-first.")
        return value


def with_variables_exported(data: bytes) -> bytes:
    """The module with all mutable globals exported, so that their values can be read. The same
    bytes if they are, as it is with most programs."""
    module = _read(data)
    exports = list(module.exports)
    names = {export.name for export in exports}
    for index, name in module.variables().items():
        if name not in names:
            exports.append(_Export(name, _GLOBAL_KIND, index))
    if len(exports) == len(module.exports):
        return data
    return _write({_EXPORT: _export_section(exports)}, module)


def stored_module(data: bytes, memory: bytes, variables: Mapping[str, int]) -> bytes:
    """`data` with this memory and these values, entered at `RESUME_ENTRY`; `variables` are those
    that `with_variables_exported` exports."""
    module = _read(data)
    segments = list(_segments(memory, module.stack_reserve))
    replaced = {
        _MEMORY: _memory_section(module, len(memory)),
        _GLOBAL: _global_section(module, variables),
        _EXPORT: _export_section(_entered_at_resume(module)),
        _DATA: _number(len(segments)) + b"".join(segments),
    }
    if any(kind == _DATA_COUNT for kind, _ in module.sections):
        replaced[_DATA_COUNT] = _number(len(segments))
    return _write(replaced, module)


# Reading.


def _read(data: bytes) -> _Module:
    if not data.startswith(MAGIC):
        raise BadModule("not a WebAssembly module")
    reader = Reader(data, len(MAGIC), len(data))
    sections: list[tuple[int, bytes]] = []
    found_globals: tuple[_Global, ...] = ()
    exports: tuple[_Export, ...] = ()
    lowest_data = 1 << 32
    while not reader.done:
        kind, body = reader.section()
        if kind == _CUSTOM:
            continue
        sections.append((kind, body.rest()))
        match kind:
            case k if k == _IMPORT:
                _check_imports(body)
            case k if k == _GLOBAL:
                found_globals = tuple(_global(body) for _ in range(body.number()))
            case k if k == _EXPORT:
                exports = tuple(
                    _Export(body.name(), body.byte(), body.number()) for _ in range(body.number())
                )
            case k if k == _START:
                raise BadModule("has a start section, which would run again")
            case k if k == _DATA:
                lowest_data = _lowest_data(body)
    return _Module(tuple(sections), found_globals, exports, lowest_data)


def _check_imports(body: Reader) -> None:
    for _ in range(body.number()):
        name = f"{body.name()}.{body.name()}"
        if body.byte() != _FUNCTION_KIND:
            raise BadModule(f"imports {name}, which is no function")
        body.number()


def _lowest_data(body: Reader) -> int:
    lowest = 1 << 32
    for _ in range(body.number()):
        if body.number() != 0:
            raise BadModule("has data that is not in memory from the start")
        lowest = min(lowest, _constant(body))
        body.skip(body.number())
    return lowest


def _global(body: Reader) -> _Global:
    start = body.position
    if body.byte() != _I32:
        raise BadModule("has a global that is no i32")
    mutable = bool(body.byte())
    return _Global(mutable, _constant(body), body.between(start))


def _constant(body: Reader) -> int:
    """The value of a constant expression."""
    if body.byte() != _I32_CONST:
        raise BadModule("has an initial value that is no i32 constant")
    value = body.signed_number()
    if body.byte() != _END:
        raise BadModule("has an initial value that is computed")
    return value & 0xFFFF_FFFF


# Writing.


def _write(replaced: Mapping[int, bytes], module: _Module) -> bytes:
    """The module with other sections, in the order that they have to be in."""
    contents = {**dict(module.sections), **replaced}
    order = [kind for kind, _ in module.sections]
    order += [kind for kind in replaced if kind not in order]  # a module without data
    return MAGIC + b"".join(
        bytes([kind]) + _number(len(contents[kind])) + contents[kind] for kind in order
    )


def _memory_section(module: _Module, size: int) -> bytes:
    body = next((content for kind, content in module.sections if kind == _MEMORY), b"")
    reader = Reader(body, 0, len(body))
    if not body or reader.number() != 1:
        raise BadModule("has no memory of its own, or several")
    flags = reader.byte()
    reader.number()
    return b"\1" + bytes([flags]) + _number(-(-size // _WASM_PAGE)) + reader.rest()


def _global_section(module: _Module, values: Mapping[str, int]) -> bytes:
    encoded = []
    names = module.variables()
    for index, variable in enumerate(module.globals):
        name = names.get(index)
        if name is None or name == _STACK_POINTER:
            encoded.append(variable.encoded)
        elif name not in values:
            raise BadModule(f"the value of global {index} ({name}) is not known")
        else:
            encoded.append(bytes([_I32, 1, _I32_CONST]) + _signed(values[name]) + bytes([_END]))
    return _number(len(encoded)) + b"".join(encoded)


def _entered_at_resume(module: _Module) -> list[_Export]:
    resume = module.exported(RESUME_ENTRY, _FUNCTION_KIND)
    if resume is None:
        raise BadModule(
            f"exports no {RESUME_ENTRY}",
            "Link userland/libc/checkpoint/checkpoint.c, which defines it.",
        )
    return [
        _Export(export.name, export.kind, resume if export.name == ENTRY else export.index)
        for export in module.exports
        if export.name != RESUME_ENTRY
    ]


def _export_section(exports: list[_Export]) -> bytes:
    return _number(len(exports)) + b"".join(
        _number(len(export.name.encode()))
        + export.name.encode()
        + bytes([export.kind])
        + _number(export.index)
        for export in exports
    )


def _segments(memory: bytes, stack_reserve: int) -> Iterator[bytes]:
    """The parts of memory that are not zero, as data segments."""
    start = None
    first = stack_reserve - stack_reserve % _PAGE
    for page in [*range(first, len(memory), _PAGE), len(memory)]:
        begin = max(page, stack_reserve)
        empty = page == len(memory) or _is_zero(memory[begin : page + _PAGE])
        if not empty and start is None:
            start = begin
        elif empty and start is not None:
            content = memory[start:page].rstrip(b"\0")
            offset = bytes([_I32_CONST]) + _signed(start) + bytes([_END])
            yield b"\0" + offset + _number(len(content)) + content
            start = None


def _is_zero(page: bytes) -> bool:
    return page == _ZEROS[: len(page)]


def _number(value: int) -> bytes:
    """Unsigned LEB128."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _signed(value: int) -> bytes:
    """Signed LEB128 of an unsigned 32-bit number."""
    value -= value >> 31 << 32
    encoded = bytearray()
    while not -0x40 <= value < 0x40:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value & 0x7F)
    return bytes(encoded)
