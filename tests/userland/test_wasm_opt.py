"""How wasm-opt is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from userland.builder.wasm_opt import WasmOpt

QUICK = "--liftoff-only"


def _string(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def module_bytes(*imports: str, size: int) -> bytes:
    """A module with these imports of `linux`, filled up to about this size."""
    types = b"\x01\x60\x00\x00"
    listed = b"".join(_string("linux") + _string(name) + b"\x00\x00" for name in imports)
    imported = bytes([len(imports)]) + listed
    sections = b"\x01" + bytes([len(types)]) + types + b"\x02" + bytes([len(imported)]) + imported
    content = _string("filling") + bytes(size)
    length = len(content)
    coded = bytes(
        [length & 127 | 128, length >> 7 & 127 | 128, length >> 14 & 127 | 128, length >> 21]
    )
    return b"\0asm\1\0\0\0" + sections + b"\x00" + coded + content


@pytest.mark.parametrize(
    ("imports", "size", "quick"),
    [
        (("syscall",), 100_000, True),
        (("syscall",), 1_000_000, True),
        (("syscall",), 2_000_000, False),
        (("syscall", "fork"), 100_000, True),
        (("syscall", "fork"), 1_000_000, False),
    ],
)
def test_small_modules_are_not_worth_optimising_wasm_opt_for(
    tmp_path: Path, imports: tuple[str, ...], size: int, quick: bool
) -> None:
    module = tmp_path / "module.wasm"
    module.write_bytes(module_bytes(*imports, size=size))
    command = WasmOpt(Path("node"), Path("wasm-opt")).command(module)
    assert command == (("node", QUICK, "wasm-opt") if quick else ("node", "wasm-opt"))
