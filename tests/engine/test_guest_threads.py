"""Threads of a guest: instances that share one memory."""

from __future__ import annotations

import threading

import pytest

from tests.engine.guests import call_host, forking, program
from tests.engine.hosts import MEMORY_LIMIT, Host, load, on_guest_thread
from wasmsand.engine.protocol import GuestTrap, GuestUnwind, ModuleRejected, TrapKind
from wasmsand.engine.wasmtime import shared_memory
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance

PAGE = 65536
DATA = 70_000
"""The address of the guests' only data segment."""
SEEN = 70_100
"""The address where guests store what they saw."""
STACK = 60_000


def threaded(body: str, *, more: str = "") -> str:
    """A program whose `__thread_start(argument)` has this body."""
    return program(
        "",
        more=f"""(data (i32.const {DATA}) "initial data")
          {more}
          (func (export "__thread_start") (param $argument i32) {body})""",
    )


def word(instance: WasmtimeInstance, address: int) -> int:
    return int.from_bytes(instance.memory_view()[address : address + 4], "little")


def run_thread(engine: WasmtimeEngine, first: WasmtimeInstance, argument: int = 0) -> Host:
    """Run one thread to its end; returns its host."""
    thread = first.new_thread(STACK, argument)
    host = Host(engine)
    host.run(thread)
    return host


def test_a_thread_reads_and_writes_the_memory_of_the_first_instance(engine: WasmtimeEngine) -> None:
    body = (
        f"(i32.store (i32.const {SEEN}) (i32.add (local.get $argument) (i32.load (i32.const 99))))"
    )
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    first.memory_view()[99] = 5
    run_thread(engine, first, 37)
    assert word(first, SEEN) == 42
    first.close()


def test_making_a_thread_does_not_write_the_data_segments_again(engine: WasmtimeEngine) -> None:
    first = load(engine, threaded("")).instantiate(MEMORY_LIMIT)
    first.memory_view()[DATA : DATA + 7] = b"changed"
    run_thread(engine, first)
    assert bytes(first.memory_view()[DATA : DATA + 12]) == b"changed data"
    first.close()


def test_a_thread_begins_with_its_own_stack_pointer(engine: WasmtimeEngine) -> None:
    body = f"(i32.store (i32.const {SEEN}) (global.get $sp))"
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    run_thread(engine, first)
    assert word(first, SEEN) == STACK
    assert first.stack_pointer() == PAGE
    first.close()


def test_growth_by_a_thread_is_growth_of_the_one_memory(engine: WasmtimeEngine) -> None:
    body = f"""(i32.store (i32.const {SEEN}) (memory.grow (i32.const 3)))
      (i32.store (i32.const {4 * PAGE}) (i32.const 7))"""
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    run_thread(engine, first)
    assert word(first, SEEN) == 2
    assert first.memory_size() == 5 * PAGE
    assert word(first, 4 * PAGE) == 7
    first.close()


def test_growth_by_a_thread_is_held_to_the_limit_of_the_first(engine: WasmtimeEngine) -> None:
    body = f"(i32.store (i32.const {SEEN}) (memory.grow (i32.const 3)))"
    first = load(engine, threaded(body)).instantiate(4 * PAGE)
    run_thread(engine, first)
    assert word(first, SEEN) == 0xFFFF_FFFF
    assert first.memory_size() == 2 * PAGE
    first.close()


def test_a_thread_sees_after_catching_up_how_others_grew_the_memory(
    engine: WasmtimeEngine,
) -> None:
    body = f"""{"(drop " + call_host("(i32.const 1)") + ")"}
      (i32.store (i32.const {SEEN}) (memory.size))
      (memory.fill (i32.const {5 * PAGE}) (i32.const 9) (i32.const 4))"""
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    thread = first.new_thread(STACK, 0)

    def others_grow(*_: int) -> int:
        assert first.grow_memory(8 * PAGE)
        thread.catch_up()
        return 0

    host = Host(engine, on_syscall=others_grow)
    assert host.run(thread) is None
    assert word(first, SEEN) == 8
    assert word(first, 5 * PAGE) == 0x09090909
    first.close()


def test_a_thread_out_of_bounds_traps_and_the_first_instance_goes_on(
    engine: WasmtimeEngine,
) -> None:
    body = "(drop (i32.load (i32.const 0x7fff0000)))"
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    raised = run_thread(engine, first).raised
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.MEMORY
    host = Host(engine)
    assert host.run(first) is None


def test_a_computing_thread_ticks(engine: WasmtimeEngine) -> None:
    class Enough(Exception):
        pass

    def stop() -> None:
        raise Enough

    first = load(engine, threaded("(loop $again (br $again))")).instantiate(MEMORY_LIMIT)
    host = Host(engine, on_tick=stop)
    assert isinstance(host.run(first.new_thread(STACK, 0)), Enough)
    first.close()


def test_the_memory_stays_until_the_last_thread_is_closed(engine: WasmtimeEngine) -> None:
    body = f"""{"(drop " + call_host("(i32.const 1)") + ")"}
      (i32.store (i32.const {SEEN}) (i32.const 11))
      {"(drop " + call_host("(i32.const 2)") + ")"}"""
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    thread = first.new_thread(STACK, 0)
    seen = []

    def answer(nr: int, *_: int) -> int:
        if nr == 1:
            first.close()
        else:
            seen.append(word(thread, SEEN))
        return 0

    assert Host(engine, on_syscall=answer).run(thread) is None
    assert seen == [11]
    with pytest.raises(RuntimeError):
        first.memory_size()


def test_threads_take_turns_in_one_memory_on_host_threads_of_their_own(
    engine: WasmtimeEngine,
) -> None:
    body = f"""(local $left i32) (local.set $left (i32.const 1000))
      (loop $again
        {"(drop " + call_host("(i32.const 1)") + ")"}
        (i32.store (i32.const {SEEN}) (i32.add (i32.const 1) (i32.load (i32.const {SEEN}))))
        {"(drop " + call_host("(i32.const 2)") + ")"}
        (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))"""
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    turn = threading.Lock()

    def answer(nr: int, *_: int) -> int:
        if nr == 1:
            turn.acquire()
        else:
            turn.release()
        return 0

    hosts = [Host(engine, on_syscall=answer) for _ in range(4)]
    threads = [first.new_thread(STACK, 0) for _ in hosts]
    runners = [
        threading.Thread(target=host.run, args=(thread,))
        for host, thread in zip(hosts, threads, strict=True)
    ]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert [host.raised for host in hosts] == [None] * 4
    assert word(first, SEEN) == 4000
    first.close()


def test_a_program_without_a_thread_entry_has_no_threads(engine: WasmtimeEngine) -> None:
    first = load(engine, program("")).instantiate(MEMORY_LIMIT)
    with pytest.raises(ModuleRejected, match="__thread_start"):
        first.new_thread(STACK, 0)
    first.close()


def test_a_thousand_threads_leave_nothing(engine: WasmtimeEngine) -> None:

    first = load(engine, threaded("", more="(table 10 funcref)")).instantiate(MEMORY_LIMIT)

    def make() -> None:
        for _ in range(1000):
            first.new_thread(STACK, 0).close()

    before = len(shared_memory._memories)
    assert on_guest_thread(engine, make) is None
    assert len(shared_memory._memories) == before
    first.close()


class Left(GuestUnwind):
    """A thread that ended by a host call, as exit does."""


def test_an_ended_thread_leaves_its_instance_to_the_next(engine: WasmtimeEngine) -> None:
    body = f"""(i32.store (i32.const {SEEN}) (i32.add (local.get $argument) (global.get $sp)))
      (global.set $sp (i32.const 1))
      {"(drop " + call_host("(i32.const 1)") + ")"}"""
    first = load(engine, threaded(body)).instantiate(MEMORY_LIMIT)
    before = len(shared_memory._memories)

    def leave(*_: int) -> int:
        raise Left

    for argument in range(5):
        thread = first.new_thread(STACK, argument)
        assert isinstance(Host(engine, on_syscall=leave).run(thread), Left)
        assert word(first, SEEN) == STACK + argument
        assert len(shared_memory._memories) == before + 1
    first.close()
    assert len(shared_memory._memories) == before


def test_a_thread_that_trapped_leaves_nothing(engine: WasmtimeEngine) -> None:
    first = load(engine, threaded("unreachable")).instantiate(MEMORY_LIMIT)
    before = len(shared_memory._memories)
    assert isinstance(run_thread(engine, first).raised, GuestTrap)
    assert len(shared_memory._memories) == before
    first.close()


def test_a_thread_cannot_fork(engine: WasmtimeEngine) -> None:
    text = forking().rstrip()
    assert text.endswith(")")
    entry = f"""(func (export "__thread_start") (param i32)
      (i32.store (i32.const {SEEN}) (call $fork (i32.const 0)))))"""
    first = load(engine, text[:-1] + entry).instantiate(MEMORY_LIMIT)
    run_thread(engine, first)
    assert word(first, SEEN) == 0xFFFF_FFFF - 10  # minus EAGAIN
    first.close()
