"""Threads of one process: turns, signals, endings, limits."""

from __future__ import annotations

import pytest

from tests.engine.hosts import load
from tests.machine.guests import (
    ACTION,
    CLONE,
    EXECVE,
    EXIT_GROUP,
    FOR_EVER,
    GETPID,
    KILL,
    LONG_TIME,
    NANOSLEEP,
    ROOM,
    SIGACTION,
    SIGUSR1,
    call,
    do,
    new_machine,
    program,
    sleep_for_ever,
    text,
    words,
)
from tests.machine.test_commands import living, run, soon_living
from tests.waiting import wait_until
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.wasmtime import shared_memory
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.limits import Limits
from wasmsand.machine import Completed

pytestmark = pytest.mark.no_userland

EXIT, YIELD, TKILL, GETTID, FUTEX, SIGPROCMASK = (
    CallNumber.EXIT,
    CallNumber.SCHED_YIELD,
    CallNumber.TKILL,
    CallNumber.GETTID,
    CallNumber.FUTEX_TIME64,
    CallNumber.RT_SIGPROCMASK,
)
WAIT, WAKE = 0, 1
THREAD_FLAGS = 0x10000 | 0x800 | 0x400 | 0x200 | 0x100 | 0x100000 | 0x200000
STACKS = 16384
"""From here on each thread has 1 KiB; its first word is the thread's number, from 1."""
GONE = ROOM + 1024
"""Words that the kernel clears when a thread ends."""
SAID = ROOM
"""A word to which threads write."""


def start(number: int) -> str:
    """An expression: the tid of a new thread, whose `$number` is this one."""
    stack = STACKS + 1024 * number
    return call(CLONE, THREAD_FLAGS, stack, GONE + 4 * number, 0, GONE + 4 * number)


def wait_for(number: int) -> str:
    """A statement: wait until the thread has ended."""
    word = GONE + 4 * number
    return f"""(block $gone{number} (loop $again{number}
      (br_if $gone{number} (i32.eqz (i32.load (i32.const {word}))))
      {do(FUTEX, word, WAIT, f"(i32.load (i32.const {word}))", 0)}
      (br $again{number})))"""


def threaded(*statements: str, thread: str, more: str = "", on_signal: str = "") -> str:
    """A program; `thread` is the code of its threads, which `$number` tells apart."""
    numbers = "".join(words(STACKS + 1024 * number, number) for number in range(1, 33))
    return program(
        *statements,
        pages=2,
        on_signal=on_signal,
        more=f"""{more} {numbers}
          (func $thread (export "__thread_start") (param $stack i32)
            (local $number i32) (local $n i32)
            (local.set $number (i32.load (local.get $stack)))
            {thread})""",
    )


def result_of(engine: WasmtimeEngine, wat: str, limits: Limits | None = None) -> Completed:
    machine = new_machine(engine, limits, tried=wat_to_wasm(wat))
    try:
        result = run(machine, "tried")
        assert soon_living(machine, [])
        return result
    finally:
        machine.close()


def exit_with(address: int = SAID) -> str:
    return do(EXIT_GROUP, f"(i32.load (i32.const {address}))")


def add(value: str) -> str:
    """A statement: add to the word `SAID`."""
    said = f"(i32.const {SAID})"
    return f"(i32.store {said} (i32.add {value} (i32.load {said})))"


def test_threads_share_memory_and_their_end_can_be_waited_for(engine: WasmtimeEngine) -> None:
    wat = threaded(
        *(f"(drop {start(n)})" for n in (1, 2, 3)),
        *(wait_for(n) for n in (1, 2, 3)),
        exit_with(),
        thread=add("(local.get $number)") + do(EXIT, 0),
    )
    assert result_of(engine, wat).exit_code == 6


def test_a_thread_that_returns_has_ended(engine: WasmtimeEngine) -> None:
    wat = threaded(f"(drop {start(1)})", wait_for(1), exit_with(), thread=add("(i32.const 9)"))
    assert result_of(engine, wat).exit_code == 9


def test_a_thread_that_spins_lets_the_others_run(engine: WasmtimeEngine) -> None:
    spin = f"(loop $again (br_if $again (i32.eqz (i32.load (i32.const {SAID})))))"
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        wait_for(1),
        exit_with(),
        thread=f"""(if (i32.eq (local.get $number) (i32.const 1)) (then {spin})
          (else {add("(i32.const 5)")}))""",
    )
    assert result_of(engine, wat).exit_code == 5


def test_yielding_passes_the_turn_in_order(engine: WasmtimeEngine) -> None:
    shift = f"""(i32.store (i32.const {SAID}) (i32.add (local.get $number)
      (i32.mul (i32.const 3) (i32.load (i32.const {SAID})))))"""
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        wait_for(1),
        wait_for(2),
        exit_with(),
        thread=shift + do(YIELD) + shift,
    )
    # Both exist when the first thread waits, so the order is 1 2 1 2 or 2 1 2 1, never 1 1 2 2.
    assert result_of(engine, wat).exit_code in (50, 70)


def test_exit_group_by_a_thread_ends_all(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        sleep_for_ever(),
        more=LONG_TIME,
        thread=f"""(if (i32.eq (local.get $number) (i32.const 1)) (then {sleep_for_ever()}))
          {do(EXIT_GROUP, 33)}""",
    )
    assert result_of(engine, wat).exit_code == 33


def test_the_process_ends_with_its_last_thread(engine: WasmtimeEngine) -> None:
    nap = words(224, 0, 0, 20_000_000, 0)
    wat = threaded(
        f"(drop {start(1)})",
        do(EXIT, 1),
        more=nap,
        thread=do(NANOSLEEP, 1, 0, 224, 0) + do(EXIT, 7),
    )
    assert result_of(engine, wat).exit_code == 7


def test_a_trap_in_a_thread_is_the_end_of_the_process(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(drop {start(1)})",
        sleep_for_ever(),
        more=LONG_TIME,
        thread="(drop (i32.load (i32.const 0x7fff0000)))",
    )
    assert result_of(engine, wat).exit_code == 128 + 11


@pytest.mark.parametrize("thread", [FOR_EVER, sleep_for_ever()], ids=["computing", "waiting"])
def test_a_time_limit_ends_all_threads(engine: WasmtimeEngine, thread: str) -> None:
    wat = threaded(
        *(f"(drop {start(n)})" for n in (1, 2, 3)),
        sleep_for_ever(),
        more=LONG_TIME,
        thread=thread,
    )
    wasm = wat_to_wasm(wat)
    load(engine, wasm)
    machine = new_machine(engine, tried=wasm)
    before = len(shared_memory._memories)
    result = run(machine, "tried", timeout=0.3)
    assert result.timed_out
    assert soon_living(machine, [])
    wait_until(lambda: len(shared_memory._memories) == before)
    machine.close()


def test_a_program_executed_by_a_thread_replaces_all_of_them(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        sleep_for_ever(),
        more=LONG_TIME + text(256, "/usr/bin/ok"),
        thread=f"""(if (i32.eq (local.get $number) (i32.const 1)) (then {FOR_EVER}))
          {do(EXECVE, 256, 0, 0)}""",
    )
    result = result_of(engine, wat)
    assert (result.stdout, result.exit_code) == (b"ok", 0)


def test_a_thread_has_a_number_of_its_own_and_the_pid_of_its_process(
    engine: WasmtimeEngine,
) -> None:
    same = f"(i32.eq {call(GETTID)} {call(GETPID)})"
    wat = threaded(
        add(f"(i32.mul (i32.const 10) {same})"),
        f"(i32.store (i32.const {ROOM + 8}) {call(GETPID)})",
        f"(drop {start(1)})",
        add(f"(i32.mul (i32.const 20) {same})"),
        wait_for(1),
        exit_with(),
        thread=add(f"(i32.eqz {same})")
        + add(f"(i32.mul (i32.const 2) (i32.eq {call(GETPID)} (i32.load (i32.const {ROOM + 8}))))"),
    )
    assert result_of(engine, wat).exit_code == 33


def test_a_signal_to_the_process_goes_to_a_thread_that_does_not_block_it(
    engine: WasmtimeEngine,
) -> None:
    """The first thread blocks and sends it; the handler runs while the other one sleeps."""
    wat = threaded(
        do(SIGACTION, SIGUSR1, 128, 0, 8),
        f"(drop {start(1)})",
        do(SIGPROCMASK, 0, 320, 0, 8),
        do(KILL, call(GETPID), SIGUSR1),
        wait_for(1),
        exit_with(),
        more=ACTION + LONG_TIME + words(320, 1 << (SIGUSR1 - 1), 0),
        thread=f"{sleep_for_ever()} (call $signals)",
        on_signal=add(call(GETTID)) + add(f"(i32.sub (i32.const 50) {call(GETTID)})"),
    )
    assert result_of(engine, wat).exit_code == 50


def test_a_signal_to_one_thread_interrupts_that_one(engine: WasmtimeEngine) -> None:
    wat = threaded(
        do(SIGACTION, SIGUSR1, 128, 0, 8),
        f"(drop {start(1)})",
        f"(local.set $n {start(2)})",
        do(YIELD),
        do(TKILL, "(local.get $n)", SIGUSR1),
        wait_for(2),
        exit_with(),
        more=ACTION + LONG_TIME,
        thread=f"{sleep_for_ever()} {add('(local.get $number)')}",
    )
    assert result_of(engine, wat).exit_code == 2


def test_threads_count_as_processes(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"""(loop $more (local.set $n {start(1)})
          (if (i32.gt_s (local.get $n) (i32.const 0)) (then
            {add("(i32.const 1)")} (br $more))))""",
        f"(i32.store (i32.const {ROOM + 8}) (i32.sub (i32.const 0) (local.get $n)))",
        f"""(if (i32.ne (i32.load (i32.const {ROOM + 8})) (i32.const 11))
          (then {do(EXIT_GROUP, 99)}))""",
        exit_with(),
        more=LONG_TIME,
        thread=sleep_for_ever(),
    )
    assert 5 <= result_of(engine, wat, Limits(max_processes=8)).exit_code <= 8


def test_growth_by_one_thread_is_seen_by_the_others(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        wait_for(1),
        wait_for(2),
        "(memory.fill (i32.const 327680) (i32.const 1) (i32.const 65536))",
        add("(memory.size)"),
        exit_with(),
        thread="(drop (memory.grow (i32.const 2)))" + do(YIELD) + add("(memory.size)"),
    )
    # Each of the two saw its own growth, and perhaps the other's; the first thread saw all.
    assert result_of(engine, wat).exit_code in (18, 16)


def test_thread_local_places_keep_the_values_of_each_thread(engine: WasmtimeEngine) -> None:
    place = 640
    wat = threaded(
        f"(i32.store (i32.const {place}) (i32.const 100))",
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        wait_for(1),
        wait_for(2),
        add(f"(i32.load (i32.const {place}))"),
        exit_with(),
        more=f"""(global (export "__thread_locals") i32 (i32.const 600))
          {words(600, place, place + 4, 0, 0)}""",
        thread=f"""(i32.store (i32.const {place}) (local.get $number))
          {do(YIELD)}
          {add(f"(i32.load (i32.const {place}))")}""",
    )
    assert result_of(engine, wat).exit_code == 103


def test_thread_local_places_outside_the_memory_are_efault(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(i32.store (i32.const {SAID}) (i32.sub (i32.const 0) {start(1)}))",
        exit_with(),
        more=f"""(global (export "__thread_locals") i32 (i32.const 600))
          {words(600, 0xFFFF0000, 0xFFFF0004, 0, 0)}""",
        thread="",
    )
    assert result_of(engine, wat).exit_code == 14  # EFAULT


def test_a_killed_process_leaves_no_thread(engine: WasmtimeEngine) -> None:
    wat = threaded(
        f"(drop {start(1)})",
        f"(drop {start(2)})",
        FOR_EVER,
        more=LONG_TIME,
        thread=f"""(if (i32.eq (local.get $number) (i32.const 1)) (then {sleep_for_ever()}))
          {do(KILL, call(GETPID), 9)}""",
    )
    machine = new_machine(engine, tried=wat_to_wasm(wat))
    assert run(machine, "tried").exit_code == 128 + 9
    assert soon_living(machine, [])
    assert living(machine) == []
    machine.close()
