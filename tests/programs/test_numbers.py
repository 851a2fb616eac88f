"""strtod and strtof of the libc round as the native C library does, whatever the string."""

from __future__ import annotations

import ctypes
import random
import struct
from pathlib import Path

from tests.programs.compiling import compiled
from wasmsand import Sandbox

_RANDOM_STRINGS = 60_000

_HARD = Path(__file__).with_name("hard_numbers.txt").read_text().split()
"""Half-way cases, the borders of exact arithmetic, and strings that only begin with a number."""


def _random_string(source: random.Random) -> str:
    def digits(most: int) -> str:
        return "".join(source.choices("0123456789", k=source.randint(0, most)))

    most = source.choice((4, 9, 17, 20, 40))
    text = source.choice(("", "", " ", "\t ")) + source.choice(("", "", "+", "-"))
    text += "0" * source.choice((0, 0, 0, 1, 30)) + digits(most)
    if source.random() < 0.6:
        text += "." + "0" * source.choice((0, 0, 0, 2, 25)) + digits(most)
    if source.random() < 0.4:
        most_exponent = source.choice((9, 25, 330))
        text += source.choice("eE") + source.choice(("", "+", "-"))
        text += str(source.randint(0, most_exponent))
    return text + source.choice(("", "", "", "", "e", ".", "x", " 1"))


def _native(text: str) -> str:
    """What the native C library makes of a line."""
    line = ctypes.create_string_buffer(text.encode() + b"\n")
    library = ctypes.CDLL(None)
    results = []
    for function, result, bits in (
        ("strtod", ctypes.c_double, "d"),
        ("strtof", ctypes.c_float, "f"),
    ):
        scan = getattr(library, function)
        scan.restype = result
        end = ctypes.c_void_p()
        value = scan(line, ctypes.byref(end))
        used = (end.value or 0) - ctypes.addressof(line)
        results.append(f"{struct.pack('>' + bits, value).hex()} {used}")
    return " ".join(results)


def test_numbers_are_read_as_the_native_library_reads_them(sysroot: Path, tmp_path: Path) -> None:
    source = random.Random(53)
    strings = [*_HARD, *(_random_string(source) for _ in range(_RANDOM_STRINGS))]
    program = compiled([Path(__file__).with_name("scan_numbers.c")], sysroot, tmp_path)
    with Sandbox(timeout_ms=60_000, max_output_bytes=16 << 20) as sandbox:
        sandbox.files.write("/usr/local/bin/scan", program)
        sandbox.files.write("strings", "".join(text + "\n" for text in strings))
        result = sandbox.commands.run("chmod +x /usr/local/bin/scan; scan < strings")
    found = result.stdout.splitlines()
    assert len(found) == len(strings)
    expected = (_native(text) for text in strings)
    wrong = [
        (text, ours, theirs)
        for text, ours, theirs in zip(strings, found, expected, strict=True)
        if ours != theirs
    ]
    assert wrong == []
