"""Reads a WebAssembly module: its sections, imports and exports.

It knows just enough of the binary format to inspect what was built, and executes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from userland.builder.errors import BadModule

MAGIC = b"\0asm\1\0\0\0"
_CUSTOM, _IMPORT, _EXPORT = 0, 2, 7
_FUNCTION, _TABLE, _MEMORY, _GLOBAL, _TAG = range(5)


@dataclass(frozen=True)
class ModuleSummary:
    """What a module imports from its host and exports to it."""

    imports: tuple[tuple[str, str], ...]
    exports: frozenset[str]
    custom_sections: frozenset[str]


class Reader:
    """Reads a part of a module from beginning to end."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._at = start
        self._end = end

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self._at >= self._end

    def byte(self) -> int:
        """The next byte."""
        if self.done:
            raise BadModule("the module ends in the middle of a section")
        value = self._data[self._at]
        self._at += 1
        return value

    @property
    def position(self) -> int:
        """The offset of the next byte."""
        return self._at

    def between(self, start: int) -> bytes:
        """The bytes read since `position` was `start`."""
        return self._data[start : self._at]

    def rest(self) -> bytes:
        """All remaining bytes, without reading them."""
        return self._data[self._at : self._end]

    def skip(self, count: int) -> None:
        """Skip bytes."""
        self._at += count

    def number(self) -> int:
        """An unsigned LEB128 number; also skips signed ones."""
        return self._leb128()[0]

    def signed_number(self) -> int:
        """A signed LEB128 number."""
        value, bits, negative = self._leb128()
        return value - (1 << bits) if negative else value

    def _leb128(self) -> tuple[int, int, bool]:
        """The value, how many bits it has, and whether its sign bit is set."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, shift, bool(byte & 0x40)

    def name(self) -> str:
        """A UTF-8 string with its length before it."""
        length = self.number()
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def section(self) -> tuple[int, Reader]:
        """A section's number, and a reader of its content."""
        kind = self.byte()
        size = self.number()
        body = Reader(self._data, self._at, min(self._at + size, self._end))
        self._at += size
        return kind, body


def encoded_number(value: int) -> bytes:
    """A number as unsigned LEB128."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def summarise(data: bytes) -> ModuleSummary:
    """The summary of a module; raises `BadModule` if the file is not a module."""
    if not data.startswith(MAGIC):
        raise BadModule("not a WebAssembly module")
    reader = Reader(data, len(MAGIC), len(data))
    imports: list[tuple[str, str]] = []
    exports: set[str] = set()
    custom: set[str] = set()
    while not reader.done:
        kind, body = reader.section()
        if kind == _CUSTOM:
            custom.add(body.name())
        elif kind == _IMPORT:
            for _ in range(body.number()):
                imports.append((body.name(), body.name()))
                _skip_type(body)
        elif kind == _EXPORT:
            for _ in range(body.number()):
                exports.add(body.name())
                body.byte()
                body.number()
    return ModuleSummary(tuple(imports), frozenset(exports), frozenset(custom))


def _skip_type(body: Reader) -> None:
    """Skip the type of an import."""
    kind = body.byte()
    if kind == _FUNCTION:
        body.number()
    elif kind == _TABLE:
        body.byte()
        _skip_limits(body)
    elif kind == _MEMORY:
        _skip_limits(body)
    elif kind == _GLOBAL:
        body.byte()
        body.byte()
    elif kind == _TAG:
        body.byte()
        body.number()
    else:
        raise BadModule(f"unknown kind of import: {kind}")


def _skip_limits(body: Reader) -> None:
    """Skip the limits of a memory or a table."""
    has_maximum = body.byte() & 1
    body.number()
    if has_maximum:
        body.number()
