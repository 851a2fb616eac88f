"""Modules are rewritten so that they start with a stored memory."""

from __future__ import annotations

import pytest

from userland.builder.errors import BadModule
from userland.builder.stored_module import stored_module, with_variables_exported
from wasmsand.engine.wasmtime.bindings import wat_to_wasm

STACK = 8192
MEMORY_BYTES = 3 * 65536


def module(more: str = "", *, stack: int = STACK, resume: str = '(export "_resume")') -> bytes:
    return wat_to_wasm(f"""(module
      (memory (export "memory") 1)
      (global (export "__stack_pointer") (mut i32) (i32.const {stack}))
      (global $counter (mut i32) (i32.const 7))
      (global (export "constant") i32 (i32.const 9))
      (func (export "_start") (global.set $counter (i32.const 1)))
      (func {resume} (global.set $counter (i32.const 2)))
      {more})""")


def memory(*pieces: tuple[int, bytes]) -> bytes:
    content = bytearray(MEMORY_BYTES)
    for at, piece in pieces:
        content[at : at + len(piece)] = piece
    return bytes(content)


VALUES = {"__variable_1": 0xFFFF_FFF0}


def test_pages_of_zeros_and_the_stack_are_left_out() -> None:
    full = memory((100, b"on the stack"), (STACK, b"first"), (150_000, b"second"))
    stored = stored_module(module(), full, VALUES)
    assert b"first" in stored
    assert b"second" in stored
    assert b"on the stack" not in stored
    assert len(stored) < len(module()) + 2 * 4096


def test_neighbouring_pages_are_one_segment() -> None:
    stored = stored_module(module(), memory((STACK, b"x" * 10_000)), VALUES)
    assert b"x" * 10_000 in stored


def test_private_variables_are_exported_to_be_read() -> None:
    readable = with_variables_exported(module())
    assert b"__variable_1" in readable
    assert b"__variable_1" not in stored_module(module(), memory(), VALUES)


def test_a_module_whose_variables_are_exported_stays_as_it_is() -> None:
    readable = with_variables_exported(module())
    assert with_variables_exported(readable) == readable


def test_the_second_entry_becomes_the_first() -> None:
    stored = stored_module(module(), memory(), VALUES)
    assert b"_start" in stored
    assert b"_resume" not in stored


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (module("(start 0)"), "start section"),
        (module('(data "passive")'), "not in memory from the start"),
        (module('(data (i32.const 100) "low")'), "below its stack"),
        (module("(global (mut i64) (i64.const 1))"), "no i32"),
        (module(resume=""), "exports no _resume"),
        (b"\x7fELF", "not a WebAssembly module"),
    ],
)
def test_a_module_that_cannot_be_stored_correctly_is_refused(bad: bytes, complaint: str) -> None:
    with pytest.raises(BadModule, match=complaint):
        stored_module(bad, memory(), VALUES)


def test_a_variable_without_a_value_is_refused() -> None:
    with pytest.raises(BadModule, match="__variable_1"):
        stored_module(module(), memory(), {})
