"""Functions that the host offers to guests: types, arguments and results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.guests import program
from tests.engine.hosts import Host, load, run_at_once
from wasmsand.engine.protocol import GuestUnwind, HostFunction, ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

_WAT_TYPES = {"i": "i32", "I": "i64"}


@pytest.fixture
def engine(tmp_path: Path) -> WasmtimeEngine:
    """An engine of the test's own, because offered functions stay."""
    return WasmtimeEngine(cache_directory=tmp_path)


def imported(function: HostFunction) -> str:
    """The import of a function as `$f`, in text."""
    parameters = " ".join(_WAT_TYPES[letter] for letter in function.parameters)
    results = " ".join(_WAT_TYPES[letter] for letter in function.results)
    types = f"(param {parameters}) (result {results})" if results else f"(param {parameters})"
    return f'(import "{function.module}" "{function.name}" (func $f {types}))'


def offer(
    engine: WasmtimeEngine, parameters: str, results: str, handler: Callable[..., Any]
) -> HostFunction:
    function = HostFunction("more", "f", parameters, results, handler)
    engine.offer([function])
    return function


@pytest.mark.parametrize(
    ("parameters", "constants", "arguments"),
    [
        ("", "", ()),
        ("i", "(i32.const -1)", (0xFFFF_FFFF,)),
        ("I", "(i64.const -1)", (0xFFFF_FFFF_FFFF_FFFF,)),
        ("iI", "(i32.const 1) (i64.const 0x100000002)", (1, 0x1_0000_0002)),
        (
            "iiiiiIIii",
            "(i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5) "
            "(i64.const -6) (i64.const 7) (i32.const -8) (i32.const 9)",
            (1, 2, 3, 4, 5, 2**64 - 6, 7, 2**32 - 8, 9),
        ),
    ],
)
def test_arguments_of_either_type_arrive_unsigned_and_in_order(
    engine: WasmtimeEngine, parameters: str, constants: str, arguments: tuple[int, ...]
) -> None:
    def handler(*words: int) -> int:
        return 0

    function = offer(engine, parameters, "i", handler)
    host = Host(engine)
    assert (
        host.run_wat(program(f"(drop (call $f {constants}))", imports=imported(function))) is None
    )
    assert host.function_calls == [(handler, arguments)]


@pytest.mark.parametrize("result", [0, 76, -1, 2**31 - 1, -(2**31)])
def test_the_result_arrives(engine: WasmtimeEngine, result: int) -> None:
    function = offer(engine, "i", "i", lambda word: result if word == 7 else 0)
    host = Host(engine)
    start = "(drop (call $f (call $f (i32.const 7))))"
    assert host.run_wat(program(start, imports=imported(function))) is None
    assert host.function_calls[1][1] == (result & 0xFFFF_FFFF,)


def test_a_function_without_result_leaves_its_argument_alone(engine: WasmtimeEngine) -> None:
    function = offer(engine, "i", "", lambda word: 5)
    host = Host(engine)
    start = "(local $n i32) (local.set $n (i32.const 9)) " + "(call $f (local.get $n))" * 2
    assert host.run_wat(program(start, imports=imported(function))) is None
    assert [arguments for _, arguments in host.function_calls] == [(9,), (9,)]


def test_run_raises_the_very_exception_of_the_handler(engine: WasmtimeEngine) -> None:
    leaving = GuestUnwind("exit")

    def handler() -> int:
        raise leaving

    function = offer(engine, "", "i", handler)
    raised = Host(engine).run_wat(program("(drop (call $f))", imports=imported(function)))
    assert raised is leaving


def test_a_module_is_rejected_until_its_import_is_offered(engine: WasmtimeEngine) -> None:
    function = HostFunction("more", "f", "i", "i", lambda word: 0)
    wat = program("(drop (call $f (i32.const 1)))", imports=imported(function))
    with pytest.raises(ModuleRejected, match=r"more\.f"):
        load(engine, wat)
    engine.offer([function])
    engine.offer([function])
    host = Host(engine)
    assert host.run_wat(wat) is None
    assert len(host.function_calls) == 1


def test_an_import_of_another_type_than_offered_is_rejected(engine: WasmtimeEngine) -> None:
    offer(engine, "i", "i", lambda word: 0)
    wrong = HostFunction("more", "f", "I", "i", lambda word: 0)
    with pytest.raises(ModuleRejected, match="incompatible import type"):
        load(engine, program("", imports=imported(wrong)))


def test_guests_on_several_threads_keep_their_calls_apart(engine: WasmtimeEngine) -> None:
    function = offer(engine, "i", "i", lambda word: 0)
    loop = """(local $i i32) (loop $again
      (drop (call $f (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 200))))"""
    module = load(engine, program(loop, imports=imported(function)))
    hosts = [Host(engine) for _ in range(4)]
    run_at_once(module, hosts)
    for host in hosts:
        assert [arguments[0] for _, arguments in host.function_calls] == list(range(200))


@pytest.mark.parametrize("parameters", ["iiiiiiiiii", "f", "i32"])
def test_types_that_cannot_be_passed_are_a_bug_of_the_host(
    engine: WasmtimeEngine, parameters: str
) -> None:
    with pytest.raises(ValueError, match="parameters"):
        engine.offer([HostFunction("more", "g", parameters, "i", lambda *words: 0)])
