"""The checks of a module before it is compiled."""

from __future__ import annotations

import re

import pytest

from tests.engine.bombs import BLOCK, BOMBS, END, LOOP, ZERO, module, nested, section
from tests.engine.guests import program
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.module_shape import Refused, Unreadable, check_shape
from wasmsand.kernel.limits import MODULE_SHAPE_MAX

EVERYTHING = """(module
  (type $pair (func (param i32 i64) (result i32 i64)))
  (import "linux" "syscall"
    (func (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "m" "t" (table 1 10 funcref))
  (import "m" "g" (global (mut i32)))
  (import "m" "x" (tag (param i32)))
  (memory (export "memory") 1)
  (tag $e (param i32))
  (table $refs 2 externref)
  (elem declare func $f)
  (data $d "abc")
  (func $f (param i32 i64) (result i32 i64) (local v128 f64 externref)
    (block (type $pair) (local.get 0) (local.get 1) (br 0))
    (drop) (drop)
    (loop (br_if 0 (i32.const 0)))
    (if (i32.const -1) (then (nop)) (else (drop (i64.const -123456789012345))))
    (drop (f32.const 1.5)) (drop (f64.const 0x1p-1022))
    (drop (i32.load8_u offset=100000 (i32.const 0)))
    (i64.store32 offset=3 (i32.const 0) (i64.const 0))
    (drop (v128.const i64x2 0x0b0b0b0b0b0b0b0b 0x0303030303030303))
    (local.set 2 (v128.load64_lane offset=7 1 (i32.const 0) (local.get 2)))
    (local.set 2 (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
      (local.get 2) (i8x16.splat (i32.const 3))))
    (drop (i16x8.extract_lane_s 3 (i32x4.add (local.get 2)
      (i64x2.mul (local.get 2) (local.get 2)))))
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))
    (memory.copy (i32.const 0) (i32.const 0) (i32.const 0))
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0))
    (data.drop $d)
    (table.set $refs (i32.const 0) (ref.null extern))
    (drop (table.grow $refs (ref.null extern) (i32.const 1)))
    (drop (i32.trunc_sat_f64_u (f64.const 1)))
    (drop (select (result externref) (ref.null extern) (local.get 4) (i32.const 1)))
    (drop (ref.is_null (ref.func $f)))
    (block $out (block $caught (result i32)
      (try_table (catch $e $caught) (catch_all $out) (throw $e (i32.const 3)))
      (br $out)) (drop))
    (br_table 0 0 0 (i32.const 1) (i64.const 2) (i32.const 5))
    (unreachable))
  (func (export "_start")
    (call_indirect (type $pair) (i32.const 0) (i64.const 0) (i32.const 0)) (drop) (drop)
    (loop (loop (block))))
)"""


@pytest.mark.parametrize("which", BOMBS)
def test_a_bomb_is_refused_by_the_limit_that_it_exceeds(which: str) -> None:
    wasm, culprit = BOMBS[which]
    with pytest.raises(Refused, match=rf"^\d+ {re.escape(culprit)}, more than the limit of \d+$"):
        check_shape(wasm, MODULE_SHAPE_MAX)


def test_every_instruction_is_read() -> None:
    found = check_shape(wat_to_wasm(EVERYTHING), MODULE_SHAPE_MAX)
    assert found["nested blocks"] == 3
    assert found["loops in a function"] == 2
    assert found["nested loops"] == 2
    assert found["blocks in a function"] == 6
    assert found["locals of a function"] == 3
    assert found["values through blocks"] == 4
    assert found["values through calls"] == 4
    assert found["branch targets in a function"] == 4
    assert (found["imports"], found["functions"], found["exports"]) == (4, 2, 2)


def test_the_largest_value_of_all_functions_counts() -> None:
    wasm = module(nested(BLOCK, 3), nested(LOOP, 2), b"")
    found = check_shape(wasm, MODULE_SHAPE_MAX)
    assert (found["nested blocks"], found["loops in a function"]) == (3, 2)


def test_loops_in_a_row_are_not_nested() -> None:
    found = check_shape(module(nested(BLOCK + LOOP + END, 9)), MODULE_SHAPE_MAX)
    assert (found["nested loops"], found["loops in a function"]) == (1, 9)


@pytest.mark.parametrize(
    "hidden",
    [
        # v128.const with its opcode in two bytes: its operand would be read as instructions.
        b"\xfd\x8c\0" + bytes(16) + b"\x1a",
        # i32.trunc_sat_f32_s in two bytes
        b"\x43\0\0\0\0\xfc\x80\0\x1a",
    ],
)
def test_nothing_hides_behind_an_unusual_encoding(hidden: bytes) -> None:
    with pytest.raises(Unreadable):
        check_shape(module(hidden + nested(LOOP, 5300)), MODULE_SHAPE_MAX)


def test_long_encodings_of_numbers_are_read() -> None:
    long_zero = b"\x41\x80\x80\x80\x80\0\x0d\x80\x80\0"  # i32.const 0, br_if 0
    found = check_shape(module(nested(LOOP, 3, long_zero)), MODULE_SHAPE_MAX)
    assert found["loops in a function"] == 3


@pytest.mark.parametrize("size", range(8, 200, 7))
def test_a_module_that_was_cut_off_is_unreadable_or_passed_on(size: int) -> None:
    wasm = wat_to_wasm(program("nop"))[:size]
    try:
        check_shape(wasm, MODULE_SHAPE_MAX)
    except Unreadable:
        pass


def test_a_start_section_and_text_are_refused() -> None:
    with pytest.raises(Refused, match="start section"):
        check_shape(module(b"", more=section(8, b"\0")), MODULE_SHAPE_MAX)
    with pytest.raises(Refused, match="not a WebAssembly module"):
        check_shape(b"(module)", MODULE_SHAPE_MAX)


def test_a_state_machine_of_a_thousand_cases_passes() -> None:
    cases = 1000
    targets = b"".join([bytes([0x80 | i & 0x7F, i >> 7]) for i in range(cases)])
    dispatch = ZERO + b"\x0e" + bytes([0x80 | cases & 0x7F, cases >> 7]) + targets + b"\0"
    body = LOOP + nested(BLOCK, cases + 1, dispatch) + END
    found = check_shape(module(body), MODULE_SHAPE_MAX)
    assert found["nested blocks"] == cases + 2
