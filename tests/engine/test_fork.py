"""fork by Asyncify, with honest and hostile guests."""

from __future__ import annotations

import time

import pytest

from tests.engine.guests import BUFFER, FORK, FRAMES, SYSCALL, call_host, forking
from tests.engine.hosts import Host
from wasmsand.engine.asyncify import ASYNCIFY_FUNCTIONS
from wasmsand.engine.protocol import GuestTrap, GuestUnwind, Instance, TrapKind
from wasmsand.engine.wasmtime import touched_pages
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

PAGE = 65536


def results(host: Host) -> list[int]:
    return [call[1] for call in host.calls if call[0] == 1]


def test_parent_sees_the_pid_and_child_sees_zero(host: Host) -> None:
    assert host.run_wat(forking()) is None
    (child,) = host.children
    assert results(host) == [101]
    assert results(child) == [0]
    assert child.raised is None
    assert [h.calls[-1][0] for h in host.family()] == [2, 2]


@pytest.mark.parametrize("depth", [0, 1, 50])
def test_locals_of_every_frame_survive(host: Host, depth: int) -> None:
    assert host.run_wat(forking(depth)) is None
    assert [h.raised for h in host.family()] == [None, None]


def test_children_fork_in_turn(host: Host) -> None:
    assert host.run_wat(forking(forks=4)) is None
    family = host.family()
    assert len(family) == 16
    assert all(member.raised is None for member in family)
    assert all(member.calls[-1][0] == 2 for member in family)


def test_a_refused_fork_returns_the_errno_and_the_guest_goes_on(engine: WasmtimeEngine) -> None:
    host = Host(engine, on_fork_allowed=lambda: -11)
    assert host.run_wat(forking(forks=2)) is None
    assert results(host) == [-11 & 0xFFFFFFFF] * 2
    assert host.children == []


def test_a_child_refused_after_the_copy_returns_the_errno(engine: WasmtimeEngine) -> None:
    class Refusing(Host):
        def fork_child(self, child: Instance) -> int:
            child.close()
            return -12

    host = Refusing(engine)
    assert host.run_wat(forking(forks=3)) is None
    assert results(host) == [-12 & 0xFFFFFFFF] * 3


def test_an_exception_of_fork_child_ends_the_parent(engine: WasmtimeEngine) -> None:
    class Killed(GuestUnwind):
        pass

    class Killing(Host):
        def fork_child(self, child: Instance) -> int:
            child.close()
            raise killed

    killed = Killed()
    assert Killing(engine).run_wat(forking()) is killed


def test_memory_is_copied_and_then_separate(engine: WasmtimeEngine) -> None:
    low, high = 69_500, 40 * PAGE - 10

    class Marking(Host):
        """Checks the copy, then gives child and parent different marks."""

        def fork_child(self, child: Instance) -> int:
            assert self.instance is not None
            assert child.memory_size() == 40 * PAGE
            assert child.read(low, 3) == b"low"
            assert child.read(high, 4) == b"high"
            child.write(low, b"\1\0\0\0")
            pid = super().fork_child(child)
            self.instance.write(low, b"\2\0\0\0")
            return pid

    before = f"""(drop (memory.grow (i32.const 38)))
      (memory.init 0 (i32.const {low}) (i32.const 0) (i32.const 3))
      (memory.init 1 (i32.const {high}) (i32.const 0) (i32.const 4))"""
    wat = forking(before=before, more='(data "low") (data "high")').replace(
        call_host("(i32.const 2)"), call_host("(i32.const 2)", f"(i32.load (i32.const {low}))")
    )
    host = Marking(engine)
    assert host.run_wat(wat) is None
    assert [member.calls[-1][1] for member in host.family()] == [2, 1]


@pytest.mark.parametrize("page_map", [True, False])
def test_a_child_equals_its_parent_in_every_used_byte(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch, page_map: bool
) -> None:
    """Data that was changed, data that was not, fresh and grown memory, in three generations."""
    if not page_map:
        monkeypatch.setattr(touched_pages, "_read_page_map", lambda first, pages: None)

    class Comparing(Host):
        def fork_child(self, child: Instance) -> int:
            assert self.instance is not None
            size = self.instance.memory_size()
            mine, copy = self.instance.read(0, size), child.read(0, child.memory_size())
            current = int.from_bytes(mine[BUFFER : BUFFER + 4], "little")
            low, end = 65536 - 128, FRAMES + 4096
            same.append(mine[low:current] == copy[low:current] and mine[end:] == copy[end:])
            return super().fork_child(child)

    same: list[bool] = []
    data = "".join(
        f'(data (i32.const {100_000 + k * 5000}) "{"abcdefgh" * 500}")' for k in range(100)
    )
    spread = "".join(
        f"(i32.store (i32.const {at}) (i32.const -1))" for at in range(100_000, 1_300_000, 37_000)
    )
    before = f"(drop (memory.grow (i32.const 10))) {spread}"
    host = Comparing(engine)
    assert host.run_wat(forking(forks=3, pages=16, more=data, before=before)) is None
    assert same == [True] * len(same)
    assert len(same) == 7


def test_the_stack_pointer_is_copied(engine: WasmtimeEngine) -> None:
    """The guest moves its stack pointer before the fork and reports it afterwards."""
    wat = forking(before="(global.set $sp (i32.const 60000))").replace(
        call_host("(i32.const 2)"), call_host("(i32.const 2)", "(global.get $sp)")
    )
    host = Host(engine)
    assert host.run_wat(wat) is None
    assert [member.calls[-1][1] for member in host.family()] == [60000, 60000]


def test_unused_stack_and_unused_buffer_are_not_copied(engine: WasmtimeEngine) -> None:
    copied: list[bytes] = []

    class Looking(Host):
        def fork_child(self, child: Instance) -> int:
            for at in (30_000, 60_000, FRAMES + 4000, FRAMES + 4096 + 8):
                copied.append(child.read(at, 4))
            return super().fork_child(child)

    marks = "".join(
        f"(i32.store (i32.const {at}) (i32.const 0x01010101))"
        for at in (30_000, 60_000, FRAMES + 4000, FRAMES + 4096 + 8)
    )
    before = f"(global.set $sp (i32.const 50000)) {marks}"
    assert Looking(engine).run_wat(forking(before=before)) is None
    unused, used = b"\0\0\0\0", b"\1\1\1\1"
    assert copied == [unused, used, unused, used]


def test_a_child_shares_the_memory_limit(engine: WasmtimeEngine) -> None:
    grow = f"(drop {call_host('(i32.const 3)', '(memory.grow (i32.const 100))')})"
    wat = forking().replace(
        f"(drop {call_host('(i32.const 2)')})", f"{grow} (drop {call_host('(i32.const 2)')})"
    )
    host = Host(engine)
    assert host.run_wat(wat, memory_limit=50 * PAGE) is None
    grown = [call[1] for member in host.family() for call in member.calls if call[0] == 3]
    assert grown == [0xFFFFFFFF] * 2


def test_fork_during_a_nested_call_is_refused(engine: WasmtimeEngine) -> None:
    def tick() -> None:
        assert host.instance is not None
        if not results_of_nested:
            host.instance.call("__signal_run")

    results_of_nested: list[int] = []

    def answer(nr: int, a: int, *rest: int) -> int:
        if nr == 7:
            results_of_nested.append(a)
        return len(results_of_nested)

    host = Host(engine, on_syscall=answer, on_tick=tick)
    more = f"""(func (export "__signal_run")
      (drop {call_host("(i32.const 7)", f"(call $fork (i32.const {BUFFER}))")}))"""
    spin = f"(loop $spin (br_if $spin (i32.eqz {call_host('(i32.const 6)')})))"
    assert host.run_wat(forking(more=more, before=spin)) is None
    assert results_of_nested == [-11 & 0xFFFFFFFF]
    assert len(host.children) == 1


# --- hostile guests


def hostile(asyncify: str, start: str) -> str:
    """A module all of whose Asyncify functions have the body `asyncify`."""
    functions = "".join(
        f'(func (export "{name}") {"(param i32)" if parameters else ""} {asyncify})'
        for name, parameters in ASYNCIFY_FUNCTIONS.items()
    )
    return f"""(module {SYSCALL} {FORK} (memory (export "memory") 2)
      (global $sp (export "__stack_pointer") (mut i32) (i32.const 65536))
      (global $count (mut i32) (i32.const 0)) {functions}
      (func $start (export "_start") {start}))"""


SETUP = f"""(i32.store (i32.const {BUFFER}) (i32.const {FRAMES}))
  (i32.store (i32.const {BUFFER + 4}) (i32.const {FRAMES + 64}))"""
FORK_ONCE = f"{SETUP} (drop (call $fork (i32.const {BUFFER})))"


def assert_trapped(host: Host, wat: str) -> None:
    raised = host.run_wat(wat)
    assert isinstance(raised, GuestTrap), raised
    assert [m.raised for m in host.family() if not isinstance(m.raised, GuestTrap | None)] == []


def test_a_guest_that_calls_fork_again_while_unwinding_traps(host: Host) -> None:
    assert_trapped(host, hostile("", FORK_ONCE + f"(drop (call $fork (i32.const {BUFFER})))"))


def test_a_guest_that_ends_without_rewinding_traps(host: Host) -> None:
    """`_start` forks only the first time; the second time it just returns."""
    start = f"""(if (i32.eqz (global.get $count))
      (then (global.set $count (i32.const 1)) {FORK_ONCE}))"""
    assert_trapped(host, hostile("", start))


@pytest.mark.parametrize("body", [f"(drop (call $fork (i32.const {BUFFER})))", "unreachable"])
def test_asyncify_functions_that_misbehave_trap(host: Host, body: str) -> None:
    assert_trapped(host, hostile(body, FORK_ONCE))


def test_asyncify_functions_may_make_system_calls_that_leave(engine: WasmtimeEngine) -> None:
    class Exit(GuestUnwind):
        pass

    def answer(*arguments: int) -> int:
        raise leaving

    leaving = Exit()
    host = Host(engine, on_syscall=answer)
    assert host.run_wat(hostile(f"(drop {call_host('(i32.const 1)')})", FORK_ONCE)) is leaving


def test_an_asyncify_function_that_never_ends_can_be_stopped(engine: WasmtimeEngine) -> None:
    class Killed(GuestUnwind):
        pass

    def tick() -> None:
        raise killed

    killed = Killed()
    host = Host(engine, on_tick=tick)
    assert host.run_wat(hostile("(loop $spin (br $spin))", FORK_ONCE)) is killed


@pytest.mark.parametrize(
    ("buffer", "current", "end"),
    [
        (0xFFFFFFF8, 0, 0),
        (0xFFFFFFFF, 0, 0),
        (2 * PAGE - 4, 0, 0),
        (BUFFER, FRAMES + 1, FRAMES),
        (BUFFER, FRAMES, 2 * PAGE + 1),
        (BUFFER, 0xFFFFFFFF, 0xFFFFFFFF),
    ],
)
def test_a_buffer_outside_the_memory_traps(host: Host, buffer: int, current: int, end: int) -> None:
    store = ""
    if buffer == BUFFER:
        store = f"""(i32.store (i32.const {BUFFER}) (i32.const {current}))
          (i32.store (i32.const {BUFFER + 4}) (i32.const {end}))"""
    raised = host.run_wat(hostile("", f"{store} (drop (call $fork (i32.const {buffer})))"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.MEMORY
    assert host.children == []


@pytest.mark.parametrize(
    ("current", "end"), [(FRAMES, 2 * PAGE + 4), (9, 8), (0xFFFFFFF0, 0xFFFFFFFF)]
)
def test_a_buffer_corrupted_while_unwinding_traps(host: Host, current: int, end: int) -> None:
    spoil = f"""(i32.store (i32.const {BUFFER}) (i32.const {current}))
      (i32.store (i32.const {BUFFER + 4}) (i32.const {end}))"""
    raised = host.run_wat(hostile("", FORK_ONCE + spoil))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.MEMORY
    assert host.children == []


@pytest.mark.parametrize("pointer", [2 * PAGE + 1, 0x80000000, 0xFFFFFFFF])
def test_a_stack_pointer_outside_the_memory_traps(host: Host, pointer: int) -> None:
    raised = host.run_wat(hostile("", FORK_ONCE + f"(global.set $sp (i32.const {pointer}))"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.MEMORY


def test_overrunning_the_buffer_traps_and_nothing_else(host: Host) -> None:
    raised = host.run_wat(forking(depth=100, buffer_bytes=64))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.UNREACHABLE


def test_many_forks_in_a_row_leave_nothing_behind(host: Host, engine: WasmtimeEngine) -> None:
    class Discarding(Host):
        def fork_child(self, child: Instance) -> int:
            child.close()
            return 5

    host = Discarding(engine)
    started = time.monotonic()
    assert host.run_wat(forking(forks=300)) is None
    assert results(host) == [5] * 300
    assert time.monotonic() - started < 10
