"""Modules that cost a compiler far more than their size; each uses another property.

`BOMBS` are refused before they are compiled. `SLOW` and `FAT` are compiled only if the limits on
shape are off, and show why the worker process has limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

I32: Final = b"\x7f"
BLOCK, LOOP, IF, END = b"\x02\x40", b"\x03\x40", b"\x04\x40", b"\x0b"
ZERO, DROP = b"\x41\0", b"\x1a"


def number(value: int) -> bytes:
    """A number in LEB128."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def vector(items: Sequence[bytes]) -> bytes:
    return number(len(items)) + b"".join(items)


def section(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + number(len(content)) + content


def name(text: bytes) -> bytes:
    return number(len(text)) + text


def function_type(parameters: int = 0, results: int = 0) -> bytes:
    return b"\x60" + vector([I32] * parameters) + vector([I32] * results)


def module(
    *bodies: bytes,
    types: Sequence[bytes] = (function_type(),),
    functions: Sequence[int] | None = None,
    local_count: int = 0,
    imports: Sequence[bytes] = (),
    more_exports: Sequence[bytes] = (),
    more_globals: Sequence[bytes] = (),
    data: Sequence[bytes] = (),
    more: bytes = b"",
) -> bytes:
    """A program; the first body is that of `_start`; each function has `local_count` locals."""
    declared = vector([number(local_count) + I32]) if local_count else b"\0"
    code = [number(len(declared) + len(body) + 1) + declared + body + END for body in bodies]
    start = number(len(imports))
    exports = [name(b"memory") + b"\x02\0", name(b"_start") + b"\0" + start, *more_exports]
    kinds = functions or [0] * len(bodies)
    return (
        b"\0asm\1\0\0\0"
        + section(1, vector(types))
        + (section(2, vector(imports)) if imports else b"")
        + section(3, vector([number(kind) for kind in kinds]))
        + section(5, vector([b"\0\1"]))
        + (section(6, vector(more_globals)) if more_globals else b"")
        + section(7, vector(exports))
        + section(10, vector(code))
        + (section(11, vector(data)) if data else b"")
        + more
    )


def increments(count: int) -> bytes:
    """Change each of `count` locals."""
    indices = [number(index) for index in range(count)]
    return b"".join(b"\x20" + i + b"\x41\1\x6a\x21" + i for i in indices)


def nested(opening: bytes, depth: int, inner: bytes = b"") -> bytes:
    return opening * depth + inner + END * depth


def _wide(opening: bytes, width: int, count: int) -> bytes:
    """Blocks with many parameters and results, one after another."""
    return module(
        ZERO * width + (opening + END) * count + DROP * width,
        types=[function_type(), function_type(width, width)],
        functions=[0],
    )


def _wide_calls(width: int, count: int) -> bytes:
    arguments = b"".join(b"\x20" + number(index) for index in range(width))
    return module(
        ZERO * width + b"\x10\1" * count + DROP * width,
        arguments,
        types=[function_type(), function_type(width, width)],
        functions=[0, 1],
    )


BOMBS: Final[dict[str, tuple[bytes, str]]] = {
    "nested loops": (
        module(LOOP * 400 + increments(200) + (b"\x20\0\x0d\0" + END) * 400, local_count=200),
        "nested loops",
    ),
    "deep loops": (module(nested(LOOP, 5300)), "nested blocks"),
    "loops in a row": (module((LOOP + END) * 5300), "loops in a function"),
    "nested blocks": (module(nested(BLOCK, 20_000)), "nested blocks"),
    "nested ifs": (module(nested(ZERO + IF, 20_000)), "nested blocks"),
    "branches": (module((ZERO + IF + END) * 100_000), "blocks in a function"),
    "loops over locals": (
        module(nested(LOOP, 60, increments(3000)), local_count=3000),
        "nested loops times locals",
    ),
    "loops in a row over locals": (
        module(increments(900) + (LOOP + END) * 900 + increments(900), local_count=900),
        "loops times locals",
    ),
    "locals": (module(b"", local_count=50_000), "locals of a function"),
    "locals of many": (module(*[b""] * 2000, local_count=4000), "locals"),
    "wide blocks": (_wide(b"\2\1", 50, 4000), "values through blocks"),
    "wide loops": (_wide(b"\3\1", 60, 900), "values through blocks"),
    "wide branches": (_wide(ZERO + b"\4\1\x05", 50, 4000), "values through blocks"),
    "wide calls": (_wide_calls(60, 4000), "values through calls"),
    "parameters": (_wide_calls(900, 10), "parameters of a function"),
    "try tables": (module(nested(b"\x1f\x40\0", 20_000)), "nested blocks"),
    "branch tables": (
        module(b"".join([BLOCK, ZERO, b"\x0e", vector([b"\0"] * 60_000), b"\0", END] * 4)),
        "branch targets in a function",
    ),
    "a large function": (module(b"\x20\0\x41\1\x6a\x21\0" * 100_000, local_count=1),
                         "bytes in a function"),
    "functions": (module(*[b""] * 150_000), "functions"),
    "exports": (
        module(b"", more_exports=[name(b"%d" % i) + b"\0\0" for i in range(20_000)]),
        "exports",
    ),
    "imports": (
        module(b"", imports=[name(b"m") + name(b"%d" % i) + b"\0\0" for i in range(2000)]),
        "imports",
    ),
    "a long name": (
        module(b"", imports=[name(b"m" * 2_000_000) + name(b"f") + b"\0\0"]),
        "bytes of names",
    ),
    "globals": (module(b"", more_globals=[I32 + b"\0\x41\0\x0b"] * 20_000), "globals"),
    "types": (module(b"", types=[function_type()] * 50_000), "types"),
    "sections": (module(b"", more=section(0, b"\0") * 2000), "sections"),
    "data segments": (module(b"", data=[b"\1\0"] * 60_000), "data segments"),
}  # fmt: skip
"""By name: the module, and the limit that its refusal names."""

SLOW: Final = module(*[nested(LOOP, 100, increments(9000))] * 4, local_count=9000)
"""Takes more than 20 s of CPU time and 200 MB of memory: 320 KB of loops over locals."""
FAT: Final = _wide(b"\3\1", 200, 4000)
"""Takes gigabytes of memory within seconds: 13 KB of loops with parameters."""


def slow(variant: int) -> bytes:
    """`SLOW`, with another content key for each variant."""
    return SLOW + section(0, name(b"%d" % variant))


def harmless(variant: int) -> bytes:
    """A harmless program, with another content key for each variant."""
    return module(b"", more=section(0, name(b"%d" % variant)))
