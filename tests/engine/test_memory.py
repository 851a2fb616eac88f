"""The guest's memory as the host sees it, and its limits."""

from __future__ import annotations

import pytest

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host, load
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

PAGE = 65536


def test_both_sides_see_each_others_writes(engine: WasmtimeEngine) -> None:
    def answer(nr: int, address: int, *rest: int) -> int:
        assert host.instance is not None
        memory = host.instance.memory_view()
        seen.append(bytes(memory[address : address + 4]))
        memory[address : address + 4] = b"\x2a\0\0\0"
        return 0

    seen: list[bytes] = []
    host = Host(engine, on_syscall=answer)
    start = f"""(i32.store (i32.const 1024) (i32.const 0x04030201))
      (drop {call_host("(i32.const 1)", "(i32.const 1024)")})
      (if (i32.ne (i32.load (i32.const 1024)) (i32.const 42)) (then unreachable))"""
    assert host.run_wat(program(start)) is None
    assert seen == [b"\1\2\3\4"]


def test_an_older_view_stays_valid_when_the_memory_grows(engine: WasmtimeEngine) -> None:
    def answer(nr: int, *rest: int) -> int:
        assert host.instance is not None
        views.append(host.instance.memory_view())
        if nr == 2:
            views[0][100] = 7
        return 0

    views: list[memoryview] = []
    lengths: list[int] = []
    host = Host(engine, on_syscall=answer)
    start = f"""(drop {call_host("(i32.const 1)")})
      (drop (memory.grow (i32.const 300)))
      (drop {call_host("(i32.const 2)")})
      (if (i32.ne (i32.load8_u (i32.const 100)) (i32.const 7)) (then unreachable))
      (drop {call_host("(i32.const 3)")})"""
    instance = load(engine, program(start)).instantiate(64 << 20)
    lengths.append(instance.memory_size())
    assert host.run(instance) is None
    assert lengths == [2 * PAGE]
    assert views[1] is views[2]


def test_views_are_released_by_close(engine: WasmtimeEngine) -> None:
    instance = load(engine, program("")).instantiate(1 << 20)
    view = instance.memory_view()
    assert len(view) == instance.memory_size() == 2 * PAGE
    instance.close()
    instance.close()
    with pytest.raises(ValueError, match="released"):
        view[0]
    with pytest.raises(RuntimeError, match="closed"):
        instance.memory_view()


def test_growing_past_the_limit_fails_inside_the_guest(host: Host) -> None:
    start = f"""(local $i i32) (loop $again
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $again (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))
      (drop {call_host("(i32.const 1)", "(memory.size)")})"""
    assert host.run_wat(program(start), memory_limit=8 << 20) is None
    pages = host.calls[0][1]
    assert 128 - 16 < pages <= 128


def test_a_minimum_over_the_limit_is_rejected_and_names_the_option(engine: WasmtimeEngine) -> None:
    module = load(engine, program("", pages=1000))
    with pytest.raises(ModuleRejected, match="memory_limit_bytes"):
        module.instantiate(999 * PAGE)
    module.instantiate(1000 * PAGE).close()


def test_exported_constants_are_addresses_and_variables_are_not(engine: WasmtimeEngine) -> None:
    more = """(global (export "__signal_flag") i32 (i32.const 0x80001234))
      (global (export "wide") i64 (i64.const 1))"""
    instance = load(engine, program("", more=more)).instantiate(1 << 20)
    assert instance.exported_address("__signal_flag") == 0x80001234
    assert instance.exported_address("__stack_pointer") is None
    assert instance.exported_address("wide") is None
    assert instance.exported_address("_start") is None
    assert instance.exported_address("absent") is None
    instance.close()
