"""The ledger holds every program exactly once, until it is freed."""

from __future__ import annotations

import pytest

from tests.machine.guests import (
    CLONE,
    EXECVE,
    EXIT_GROUP,
    GETPID,
    KILL,
    LONG_TIME,
    NANOSLEEP,
    PROGRAMS,
    READ,
    ROOM,
    SPAWN,
    WAIT4,
    call,
    do,
    grow,
    new_machine,
    program,
    sleep_for_ever,
    text,
    words,
)
from tests.machine.test_commands import memory_is_freed, run
from tests.machine.test_threads import start, threaded
from tests.waiting import eventually
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import PROCESS_BYTES, Limits
from wasmsand.machine import CommandRequest, Machine

MIB = 1 << 20
PAGES = 16
SIGSTOP, RLIMIT_AS = 19, 9
PRLIMIT = CallNumber.PRLIMIT64
SLEEP = sleep_for_ever()


def machine_with(engine: WasmtimeEngine, wat: str, limit: int = 64 * MIB) -> Machine:
    limits = Limits(memory_limit_bytes=limit)
    return new_machine(engine, limits, tried=wat_to_wasm(wat))


def used(machine: Machine) -> tuple[int, int]:
    """Bytes of guests' memory, and of the engine."""
    with machine.lock:
        ledger = machine.kernel.ledger
        ledger.see()
        return ledger.guest, ledger.engine


def eventually_used(machine: Machine, guest: int, engine: int = 0) -> tuple[int, int]:
    """The same, once both are at least as large as given, or after a while."""

    def is_used() -> bool:
        found = used(machine)
        return found[0] >= guest and found[1] >= engine

    eventually(is_used, pause=0.002)
    return used(machine)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_every_end_of_a_process_leaves_nothing_in_the_ledger(
    engine: WasmtimeEngine, name: str
) -> None:
    machine = new_machine(engine, Limits(memory_limit_bytes=32 * MIB))
    run(machine, name, timeout=0.3)
    machine.close()
    assert memory_is_freed(machine)


ENDLESS = {
    "sleeps": program(grow(8), SLEEP, more=LONG_TIME),
    "computes": program(grow(8), "(loop $for_ever (br $for_ever))"),
    "is stopped": program(grow(8), do(KILL, call(GETPID), SIGSTOP), SLEEP, more=LONG_TIME),
    "executes": program(grow(1), do(EXECVE, 256, 0, 0), more=text(256, "/usr/bin/tried")),
    "spawns": program(
        f"(loop $again {SPAWN} {do(NANOSLEEP, 1, 0, 224, 0)} (br $again))",
        more=text(256, "/usr/bin/sleep") + words(224, 0, 0, 1_000_000, 0),
    ),
    "has threads": threaded(
        *(f"(drop {start(n)})" for n in (1, 2, 3)),
        SLEEP,
        thread=grow(1) + SLEEP,
        more=LONG_TIME,
    ),
    "waits as a child of vfork": program(
        f"(if (i32.eqz {call(CLONE, 0x4111)}) (then {SLEEP}))", SLEEP, more=LONG_TIME
    ),
}


@pytest.mark.parametrize("wat", ENDLESS.values(), ids=ENDLESS.keys())
def test_processes_that_are_killed_leave_nothing_in_the_ledger(
    engine: WasmtimeEngine, wat: str
) -> None:
    machine = machine_with(engine, wat)
    for _ in range(3):
        run(machine, "tried", timeout=0.1)
    machine.close()
    assert memory_is_freed(machine)


def test_growth_is_entered_before_the_process_waits(engine: WasmtimeEngine) -> None:
    machine = machine_with(engine, program(grow(40), SLEEP, more=LONG_TIME))
    machine.start(CommandRequest(("tried",), {}, "/"))
    guest, _ = eventually_used(machine, 40 * MIB)
    assert 40 * MIB <= guest < 42 * MIB
    machine.close()


def test_growth_is_entered_before_the_host_writes_there(engine: WasmtimeEngine) -> None:
    """Without a tick and without a wait, the read itself finds that the memory has grown."""
    zero, openat = text(256, "/dev/zero"), 56
    read = call(READ, "(local.get $n)", 30 * MIB, 4096)
    wat = program(
        f"(local.set $n {call(openat, -100, 256, 0, 0)})",
        grow(40),
        f"(if (i32.ne {read} (i32.const 4096)) (then unreachable))",
        more=zero,
    )
    machine = machine_with(engine, wat)
    assert run(machine, "tried").exit_code == 0
    assert machine.kernel.ledger.peak >= 40 * MIB


def test_threads_share_one_memory_and_cost_something_each(engine: WasmtimeEngine) -> None:
    wat = threaded(
        grow(20), *(f"(drop {start(n)})" for n in (1, 2, 3)), SLEEP, thread=SLEEP, more=LONG_TIME
    )
    machine = machine_with(engine, wat)
    machine.start(CommandRequest(("tried",), {}, "/"))
    guest, engine_bytes = eventually_used(machine, 20 * MIB, 4 * PROCESS_BYTES)
    assert 20 * MIB <= guest < 21 * MIB
    assert 4 * PROCESS_BYTES <= engine_bytes < 5 * PROCESS_BYTES
    machine.close()
    assert memory_is_freed(machine)


def test_a_program_is_not_started_without_room_beside_the_others(engine: WasmtimeEngine) -> None:
    machine = machine_with(engine, program(SLEEP, more=LONG_TIME, pages=25 * PAGES))
    for _ in range(2):
        machine.start(CommandRequest(("tried",), {}, "/"))
    with pytest.raises(KernelError, match="memory_limit_bytes") as refused:
        machine.start(CommandRequest(("tried",), {}, "/"))
    assert refused.value.errno is Errno.ENOMEM
    assert used(machine)[0] < 51 * MIB
    machine.close()
    assert memory_is_freed(machine)


def test_execve_without_room_fails_and_the_process_goes_on(engine: WasmtimeEngine) -> None:
    """A vfork child would need room beside its parent; replacing the parent needs none."""
    enomem = -int(Errno.ENOMEM)
    path = text(256, "/usr/bin/large")
    beside = program(
        f"""(if (i32.eqz {call(CLONE, 0x4111)}) (then
          (if (i32.ne {call(EXECVE, 256, 0, 0)} (i32.const {enomem})) (then unreachable))
          {do(EXIT_GROUP, 0)}))""",
        more=path,
        pages=40 * PAGES,
    )
    instead = program(do(EXECVE, 256, 0, 0), "(unreachable)", more=path, pages=40 * PAGES)
    machine = new_machine(
        engine,
        Limits(memory_limit_bytes=64 * MIB),
        beside=wat_to_wasm(beside),
        instead=wat_to_wasm(instead),
        large=wat_to_wasm(program(do(EXIT_GROUP, 7), pages=40 * PAGES)),
    )
    assert run(machine, "beside").exit_code == 0
    assert run(machine, "instead").exit_code == 7


def test_a_module_with_large_tables_is_refused_by_name(engine: WasmtimeEngine) -> None:
    wat = program("", more="(table 200000 funcref)")
    machine = machine_with(engine, wat)
    with pytest.raises(KernelError, match=r"/usr/bin/tried: .*200000 elements") as refused:
        run(machine, "tried")
    assert refused.value.errno is Errno.ENOEXEC


def test_memory_grows_no_further_than_the_limit_of_the_address_space(
    engine: WasmtimeEngine,
) -> None:
    """prlimit(RLIMIT_AS) takes effect when the process next runs."""
    wat = program(
        do(PRLIMIT, 0, RLIMIT_AS, 128, 0),
        do(NANOSLEEP, 1, 0, 160, 0),
        f"(if (i32.ne (memory.grow (i32.const {40 * PAGES})) (i32.const -1)) (then unreachable))",
        f"(if (i32.eq (memory.grow (i32.const {10 * PAGES})) (i32.const -1)) (then unreachable))",
        more=words(128, 20 * MIB, 0, 20 * MIB, 0) + words(160, 0, 0, 1_000_000, 0),
    )
    machine = machine_with(engine, wat)
    assert run(machine, "tried").exit_code == 0


def test_a_parent_that_computes_leaves_its_child_all_the_room(engine: WasmtimeEngine) -> None:
    child = program(
        f"(if (i32.eq (memory.grow (i32.const {50 * PAGES})) (i32.const -1)) (then unreachable))"
    )
    parent = program(
        SPAWN,
        f"(loop $again (br_if $again (i32.eqz {call(WAIT4, -1, ROOM, 1, 0)})))",
        do(EXIT_GROUP, f"(i32.load (i32.const {ROOM}))"),
        more=text(256, "/usr/bin/child"),
    )
    machine = new_machine(
        engine,
        Limits(memory_limit_bytes=64 * MIB),
        maker=wat_to_wasm(parent),
        child=wat_to_wasm(child),
    )
    for _ in range(20):
        assert run(machine, "maker").exit_code == 0


def test_arguments_that_the_host_keeps_are_entered(engine: WasmtimeEngine) -> None:
    """300,000 strings of one letter take 15 MB of the host's memory for each process."""
    machine = machine_with(engine, program(SLEEP, more=LONG_TIME))
    machine.start(CommandRequest(("tried",), {}, "/"))
    few = machine.kernel.ledger.objects
    request = CommandRequest(("tried", *["x"] * 300_000), {}, "/")
    machine.start(request)
    many = machine.kernel.ledger.objects
    assert 300_000 * 40 <= many - 2 * few <= 300_000 * 80
    for _ in range(3):
        machine.start(request)
    with pytest.raises(KernelError, match="memory_limit_bytes"):
        machine.start(request)
    machine.close()
    assert memory_is_freed(machine)


def test_thread_local_variables_that_the_host_keeps_are_entered(engine: WasmtimeEngine) -> None:
    size = 1 << 19
    wat = threaded(
        f"(drop {start(1)})",
        SLEEP,
        thread=SLEEP,
        more=LONG_TIME
        + words(240, 65536, 65536 + size, 0, 0)
        + '(global (export "__thread_locals") i32 (i32.const 240))',
    ).replace('(memory (export "memory") 2)', '(memory (export "memory") 10)')
    machine = machine_with(engine, wat)
    machine.start(CommandRequest(("tried",), {}, "/"))
    _, engine_bytes = eventually_used(machine, 0, 2 * PROCESS_BYTES + 2 * size)
    assert 2 * PROCESS_BYTES + 2 * size <= engine_bytes
    machine.close()
    assert memory_is_freed(machine)
