"""What instances hold besides their memory: it is bounded, and the engine reports it."""

from __future__ import annotations

import threading
from _thread import get_ident

import pytest

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host, load
from tests.waiting import wait_until
from wasmsand.engine.protocol import GuestTrap, ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.holdings import TableRoom, table_rooms
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.resident_pages import ThreadStack

MIB = 1 << 20
LIMIT = 64 * MIB
EXCEPTION = "(tag $oops (param i64))"


def keep(times: int) -> str:
    """Throw an exception and keep it."""
    return f"""(local $i i32) (loop $again
      (table.set $kept (local.get $i) (block $caught (result exnref)
        (try_table (catch_all_ref $caught) (throw $oops (i64.const 1))) (unreachable)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const {times}))))"""


def held_at_the_end(engine: WasmtimeEngine, wat: str) -> list[int]:
    """What an instance holds when the guest makes a host call."""

    def answer(*_: int) -> int:
        assert host.instance is not None
        held.append(host.instance.held_bytes())
        return 0

    held: list[int] = []
    host = Host(engine, on_syscall=answer)
    instance = load(engine, wat).instantiate(LIMIT)
    held.append(instance.held_bytes())
    assert host.run(instance) is None
    return held


def test_exceptions_that_are_kept_are_counted(engine: WasmtimeEngine) -> None:
    call = f"(drop {call_host('(i32.const 1)')})"
    more = f"{EXCEPTION} (table $kept 100000 exnref)"
    before, after = held_at_the_end(engine, program(keep(100_000) + call, more=more))
    assert 100_000 * 24 <= after - before <= 16 * MIB


def test_a_program_without_exceptions_holds_little(engine: WasmtimeEngine) -> None:
    before, after = held_at_the_end(engine, program(f"(drop {call_host('(i32.const 1)')})"))
    assert before == after < 64 << 10


def test_globals_are_counted(engine: WasmtimeEngine) -> None:
    few, many = (
        load(engine, program("", more="(global i32 (i32.const 1))" * count)).instantiate(LIMIT)
        for count in (1, 5001)
    )
    assert many.held_bytes() - few.held_bytes() == 5000 * 16
    few.close()
    many.close()


def test_tables_are_counted_by_what_they_may_hold(engine: WasmtimeEngine) -> None:
    held = []
    for elements in (10, 50_000):
        instance = load(engine, program("", more=f"(table {elements} funcref)")).instantiate(LIMIT)
        held.append(instance.held_bytes())
        instance.close()
    assert held[0] < 64 << 10
    assert 50_000 * 8 <= held[1] <= 131_072 * 40


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("(table 131073 funcref)", "131073 elements .*at most 2 tables of 131072 elements"),
        ("(table 1 funcref)" * 3, "at most 2 tables"),
        ("(global i32 (i32.const 1))" * 50_000, "globals and imports take .* more than 524288"),
    ],
    ids=["elements", "tables", "globals"],
)
def test_a_module_that_declares_too_much_is_refused_with_the_reason(
    engine: WasmtimeEngine, more: str, reason: str
) -> None:
    module = load(engine, program("", more=more))
    for _ in range(2):
        with pytest.raises(ModuleRejected, match=reason):
            module.instantiate(LIMIT)


def test_many_threads_can_make_the_first_instances_at_once(engine: WasmtimeEngine) -> None:
    module = load(engine, program("", more="(table 20000 funcref) (table 1 funcref)"))
    made: list[WasmtimeInstance] = []
    threads = [
        threading.Thread(target=lambda: made.append(module.instantiate(LIMIT))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(made) == 8
    assert module.table_room == TableRoom(2, 32768)
    for instance in made:
        instance.close()


def test_table_sizes_are_tried_from_the_cheapest_to_the_most_that_is_allowed() -> None:
    rooms = table_rooms(TableRoom(2, 5000), least_elements=1024)
    assert rooms[0] == TableRoom(1, 1024)
    assert rooms[-1] == TableRoom(2, 5000)
    assert [room.cost for room in rooms] == sorted(room.cost for room in rooms)


def test_a_limit_can_be_renewed_while_the_guest_is_in_a_host_call(engine: WasmtimeEngine) -> None:
    def answer(nr: int, *_: int) -> int:
        assert host.instance is not None
        host.instance.limit_memory(nr * MIB)
        return 0

    host = Host(engine, on_syscall=answer)
    grow = "(memory.grow (i32.const 16))"
    checks = [
        f"(drop {call_host(f'(i32.const {nr})')}) (if (i32.{wrong} {grow} (i32.const -1)) "
        "(then unreachable))"
        for nr, wrong in ((2, "eq"), (2, "ne"), (1, "ne"), (3, "eq"), (3, "ne"))
    ]
    assert host.run_wat(program(" ".join(checks), pages=1), memory_limit=1 << 16) is None


def deep(engine: WasmtimeEngine, levels: int) -> tuple[list[int], ThreadStack]:
    """The memory of a guest's stack at three host calls: before, at the bottom of, and after a
    recursion; and that stack, which is no longer in use."""

    def answer(*_: int) -> int:
        assert host.instance is not None
        used.append(host.instance.stacks_in_use(0)[1])
        stack = engine._runtime.threads.stack(get_ident())
        assert stack is not None
        stacks.append(stack)
        return 0

    used: list[int] = []
    stacks: list[ThreadStack] = []
    host = Host(engine, on_syscall=answer)
    call = f"(drop {call_host('(i32.const 1)')})"
    body = f"""(func $deep (param $n i32) (if (i32.eqz (local.get $n)) (then {call})
      (else (call $deep (i32.sub (local.get $n) (i32.const 1))))))"""
    start = f"{call} (call $deep (i32.const {levels})) {call}"
    assert host.run_wat(program(start, more=body)) is None
    return used, stacks[0]


def test_a_deep_stack_is_counted_and_given_back(engine: WasmtimeEngine) -> None:
    used, stack = deep(engine, 300_000)
    assert used[0] == 0
    assert 300_000 * 16 <= used[1] <= used[2] <= 33 * MIB
    wait_until(lambda: not stack.is_deep())  # its thread may be on its way back to the pool
    assert stack.deep_bytes(64 * MIB) == 0


def test_frames_that_are_not_written_are_counted_too(engine: WasmtimeEngine) -> None:
    numbers = range(1, 2001)
    load_ = " ".join(f"(local.set {i} (v128.load (i32.const {i})))" for i in numbers)
    store = " ".join(f"(v128.store (i32.const {i}) (local.get {i}))" for i in numbers)
    never = "(i32.gt_u (local.get $n) (i32.const 1000))"
    body = f"""(func $deep (param $n i32) {"(local v128)" * 2000}
      (if {never} (then {load_}))
      (if (i32.eqz (local.get $n)) (then (drop {call_host("(i32.const 1)")}))
        (else (call $deep (i32.sub (local.get $n) (i32.const 1)))))
      (if {never} (then {store})))"""

    def answer(*_: int) -> int:
        assert host.instance is not None
        used.append(host.instance.stacks_in_use(0)[1])
        return 0

    used: list[int] = []
    host = Host(engine, on_syscall=answer)
    assert host.run_wat(program("(call $deep (i32.const 200))", more=body)) is None
    assert used[0] > 200 * 30_000


def test_only_what_was_touched_of_the_c_stack_is_counted(engine: WasmtimeEngine) -> None:
    instance = load(engine, program("", pages=200)).instantiate(LIMIT)
    assert instance.stacks_in_use(8 * MIB) == (0, 0)
    memory = instance.memory_view()
    for page in range(100):
        memory[page * 65536] = 1
    assert instance.stacks_in_use(8 * MIB)[0] == 100 * 4096
    assert instance.stacks_in_use(65536)[0] == 4096
    instance.close()


def test_the_frames_of_a_stack_that_overflowed_are_not_kept(engine: WasmtimeEngine) -> None:
    host = Host(engine)
    for _ in range(3):
        raised = host.run_wat(program("(call $deeper)", more="(func $deeper (call $deeper))"))
        assert isinstance(raised, GuestTrap)
        assert len(str(raised)) < 5000
