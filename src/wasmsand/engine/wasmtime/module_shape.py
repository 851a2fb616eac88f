"""The shape of a WebAssembly module, checked before it is compiled.

Owns `check_shape`, which refuses modules that cost the compiler far more than their size suggests:
its time and memory grow faster than the number of loops in a function, of locals, and of values
that calls and blocks pass on. Rules: it runs in the compile worker, so it imports as little as
possible. It does not validate; the compiler does. A module that it cannot parse is not compiled, so
that nothing is hidden from it. For modules that pass, the worker's time and memory limits apply.

Function bodies are read with one regular expression that skips all instructions without influence
on the shape, so that a megabyte takes well below a tenth of its compile time.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = b"\0asm\1\0\0\0"

_TYPE, _IMPORT, _FUNCTION, _TABLE, _GLOBAL, _EXPORT = 1, 2, 3, 4, 6, 7
_START, _ELEMENT, _CODE, _DATA, _TAG = 8, 9, 10, 11, 13
_COUNTED = {
    _TYPE: "types",
    _IMPORT: "imports",
    _FUNCTION: "functions",
    _TABLE: "tables",
    _GLOBAL: "globals",
    _EXPORT: "exports",
    _ELEMENT: "element segments",
    _DATA: "data segments",
    _TAG: "tags",
}
_FUNCTION_TYPE = 0x60
_OPEN = frozenset({0x02, 0x03, 0x04, 0x06, 0x1F})
"""block, loop, if, try, try_table."""
_LOOP, _TRY_TABLE, _BR_TABLE, _END = 0x03, 0x1F, 0x0E, 0x0B
_CALLS = frozenset({0x10, 0x12})
_INDIRECT_CALLS = frozenset({0x11, 0x13})
_REFERENCE_CALLS = frozenset({0x14, 0x15})

_LEB = rb"[\x80-\xff]*+[\x00-\x7f]"
_MEMORY = _LEB + _LEB
_SKIPPED = (
    # No operand: unreachable, nop, else, return, drop, select, comparisons, arithmetic, ...
    rb"[\x00\x01\x05\x0a\x0f\x19\x1a\x1b\x45-\xc4\xd1\xd3\xd4]"
    # One number: locals, globals, tables, constants, branches, exceptions, references.
    rb"|[\x07-\x09\x0c\x0d\x18\x20-\x26\x3f-\x42\xd0\xd2\xd5\xd6]" + _LEB
    + rb"|[\x28-\x3e]" + _MEMORY
    + rb"|\x43.{4}|\x44.{8}"
    # select with one type; types of references have a second byte.
    + rb"|\x1c\x01(?:[\x63\x64])?" + _LEB
    + rb"|\xfc(?:[\x00-\x07]|[\x09\x0b\x0d\x0f-\x11]" + _LEB
    + rb"|[\x08\x0a\x0c\x0e]" + _MEMORY + rb")"
    + rb"|\xfd(?:[\x00-\x0b\x5c\x5d]" + _MEMORY
    + rb"|[\x0c\x0d].{16}|[\x15-\x22].|[\x54-\x5b]" + _MEMORY + rb"."
    # Opcodes from 128 on take two bytes and have no operand. A smaller opcode encoded in two bytes
    # would hide its operand, so it is not matched.
    + rb"|[\x0e-\x14\x23-\x53\x5e-\x7f]|[\x80-\xff][\x01-\x7f])"
)  # fmt: skip
_NEXT = re.compile(rb"(?:" + _SKIPPED + rb")*+([\x02-\x04\x06\x0b\x0e\x10-\x15\x1f])", re.DOTALL)


class Refused(Exception):
    """The module must not be compiled; the message says why."""


class Unreadable(Exception):
    """The module cannot be parsed, most likely because it is not valid."""


def check_shape(wasm: bytes, limits: Mapping[str, int]) -> dict[str, int]:
    """Raise `Refused` if the module exceeds one of `limits` or has a start section; raise
    `Unreadable`. Returns the counts."""
    return _Module(wasm, limits).check()


class _Module:
    def __init__(self, wasm: bytes, limits: Mapping[str, int]) -> None:
        self._wasm = wasm
        self._limits = limits
        self._found: dict[str, int] = dict.fromkeys(limits, 0)
        self._values: list[int] = []
        """By type: the number of parameters and results."""
        self._function_values: list[int] = []
        """By function, imported ones first: the number of values of its type."""

    def check(self) -> dict[str, int]:
        wasm = self._wasm
        if wasm[:4] != HEADER[:4]:
            # The compiler would try to parse it as text.
            raise Refused("not a WebAssembly module: does not start with \\0asm")
        at = len(HEADER)
        try:
            while at < len(wasm):
                self._add("sections", 1)
                number = wasm[at]
                size, at = self._number(at + 1)
                self._section(number, at, at + size)
                at += size
        except IndexError:
            raise Unreadable("it is truncated") from None
        return self._found

    def _section(self, number: int, at: int, end: int) -> None:
        if number == _START:
            # It would run at instantiation: before calls can be answered, and perhaps on a thread
            # whose stack is too small for a guest.
            raise Refused("has a start section; export the function as `_start` instead")
        if number in _COUNTED:
            count, at = self._number(at)
            self._add(_COUNTED[number], count)
            if number == _TYPE:
                self._types(count, at)
            elif number == _IMPORT:
                self._imports(count, at)
            elif number == _FUNCTION:
                for _ in range(count):
                    index, at = self._number(at)
                    self._function_values.append(self._values_of_type(index))
            elif number == _EXPORT:
                for _ in range(count):
                    at = self._name(at, "bytes of names") + 1
                    _, at = self._number(at)
        elif number == _CODE:
            count, at = self._number(at)
            for _ in range(count):
                size, at = self._number(at)
                self._raise("bytes in a function", size)
                self._function(at, min(at + size, end))
                at += size

    def _types(self, count: int, at: int) -> None:
        for _ in range(count):
            if self._wasm[at] != _FUNCTION_TYPE:
                raise Unreadable("a type is not a function type")
            values, at = self._number(at + 1)
            self._raise("parameters of a function", values)
            at = self._value_types(values, at)
            results, at = self._number(at)
            self._raise("results of a function", results)
            at = self._value_types(results, at)
            self._values.append(values + results)
            self._add("values in types", values + results)

    def _value_types(self, count: int, at: int) -> int:
        wasm = self._wasm
        for _ in range(count):
            if wasm[at] in (0x63, 0x64):  # a reference; its type follows
                _, at = self._number(at + 1)
            else:
                at += 1
        return at

    def _imports(self, count: int, at: int) -> None:
        wasm = self._wasm
        for _ in range(count):
            at = self._name(self._name(at, "bytes of names"), "bytes of names")
            kind, at = wasm[at], at + 1
            if kind == 0:  # a function
                index, at = self._number(at)
                self._function_values.append(self._values_of_type(index))
            elif kind == 3:  # a global
                at = self._value_types(1, at) + 1
            elif kind == 4:  # a tag
                _, at = self._number(at + 1)
            else:  # a table or a memory
                if kind == 1:
                    at = self._value_types(1, at)
                flags, at = wasm[at], at + 1
                for _ in range(1 + (flags & 1)):
                    _, at = self._number(at)

    def _function(self, at: int, end: int) -> None:
        groups, at = self._number(at)
        local_count = 0
        for _ in range(groups):
            count, at = self._number(at)
            local_count += count
            at = self._value_types(1, at)
        self._raise("locals of a function", local_count)
        self._add("locals", local_count)
        self._body(at, end, local_count)

    def _body(self, at: int, end: int, local_count: int) -> None:
        wasm, scan = self._wasm, _NEXT.match
        blocks = loops = through_blocks = through_calls = branches = 0
        open_blocks: list[int] = []  # their opcodes
        deepest = open_loops = deepest_loop = 0
        while at < end:
            match = scan(wasm, at, end)
            if match is None:
                raise Unreadable("unknown instruction or unusual encoding")
            at = match.end()
            opcode = wasm[at - 1]
            if opcode == _END:
                if open_blocks and open_blocks.pop() == _LOOP:
                    open_loops -= 1
                continue
            if opcode in _OPEN:
                open_blocks.append(opcode)
                if len(open_blocks) > deepest:
                    deepest = len(open_blocks)
                blocks += 1
                if opcode == _LOOP:
                    loops += 1
                    open_loops += 1
                    if open_loops > deepest_loop:
                        deepest_loop = open_loops
                values, at = self._block_type(at)
                if values > 1:
                    through_blocks += values
                if opcode == _TRY_TABLE:
                    count, at = self._number(at)
                    branches += count
                    for _ in range(count):
                        kind, at = wasm[at], at + 1
                        for _ in range(1 + (kind in (0, 1))):
                            _, at = self._number(at)
            elif opcode == _BR_TABLE:
                count, at = self._number(at)
                branches += count
                for _ in range(count + 1):
                    _, at = self._number(at)
            else:
                index, at = self._number(at)
                if opcode in _CALLS:
                    if index < len(self._function_values):
                        through_calls += self._function_values[index]
                elif opcode in _INDIRECT_CALLS:
                    through_calls += self._values_of_type(index)
                    _, at = self._number(at)
                elif opcode in _REFERENCE_CALLS:
                    through_calls += self._values_of_type(index)
        self._raise("nested blocks", deepest)
        self._raise("blocks in a function", blocks)
        self._raise("loops in a function", loops)
        self._raise("nested loops", deepest_loop)
        self._raise("loops times locals", loops * local_count)
        self._raise("nested loops times locals", deepest_loop * local_count)
        self._raise("values through blocks", through_blocks)
        self._raise("values through calls", through_calls)
        self._raise("branch targets in a function", branches)

    def _block_type(self, at: int) -> tuple[int, int]:
        """How many values the block passes on, and the end of its type."""
        first = self._wasm[at]
        if first == 0x40:
            return 0, at + 1
        if first in (0x63, 0x64):
            return 1, self._number(at + 1)[1]
        if 0x40 < first < 0x80:
            return 1, at + 1
        index, at = self._number(at)
        return self._values_of_type(index), at

    def _values_of_type(self, index: int) -> int:
        return self._values[index] if index < len(self._values) else 0

    def _name(self, at: int, limit: str) -> int:
        size, at = self._number(at)
        self._add(limit, size)
        return at + size

    def _number(self, at: int) -> tuple[int, int]:
        """A 32-bit number, and the position after it."""
        wasm = self._wasm
        byte = wasm[at]
        at += 1
        if byte < 0x80:
            return byte, at
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            if shift > 28:
                raise Unreadable("a number is too long")
            byte = wasm[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        return value, at

    def _add(self, what: str, count: int) -> None:
        self._raise(what, self._found[what] + count)

    def _raise(self, what: str, count: int) -> None:
        """Record a count, and check it against its limit."""
        if count > self._found[what]:
            self._found[what] = count
            if count > self._limits[what]:
                raise Refused(f"{count} {what}, more than the limit of {self._limits[what]}")
