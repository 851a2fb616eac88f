"""Functions that exist twice, in wasm-opt's text form."""

from __future__ import annotations

from userland.builder.doubled import doubled, functions_of_profile

STATE = "(global.get $__asyncify_state)"
UNWINDS = f"(i32.eq\n   {STATE}\n   (i32.const 1)\n   )"


def module(body: str) -> str:
    return f"(module\n (func $hot (param $0 i32) (result i32)\n  (local $1 i32)\n  {body}\n )\n)"


def test_the_fast_form_only_asks_after_calls() -> None:
    text = module(f"(drop (i32.eqz {STATE})) (drop {UNWINDS})")
    result = doubled(text, text, {"hot"})
    fast, resumable = result.split("(func $hot__rewind")
    assert "(drop (i32.eqz (i32.const 0)))" in fast
    assert UNWINDS in fast
    assert "(then (return (call $hot__rewind (local.get $0))))" in fast
    assert f"(drop (i32.eqz {STATE}))" in resumable


def test_other_functions_stay_as_they_are() -> None:
    text = module(f"(drop {UNWINDS})")
    assert doubled(text, text, {"cold"}) == text


def test_a_function_that_lost_a_question_stays_as_it_is() -> None:
    optimised = module(f"(drop {STATE})")
    assert doubled(module(f"(drop {UNWINDS})"), optimised, {"hot"}) == optimised


def test_names_of_a_profile() -> None:
    assert functions_of_profile("one\n12\n1\n5\n\nexpr.c:two\n9\n1\n3\n") == {"one", "two"}
