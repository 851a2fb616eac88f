"""Guests that make the host compile: each ends within its budget and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.background import Running
from tests.engine.bombs import BOMBS, FAT, harmless, slow
from tests.engine.hosts import load
from tests.engine.orders import NO_LIMITS
from tests.engine.processes import compilers, descendants
from tests.host_process import resident_bytes, watched_peak
from tests.machine.guests import (
    CLONE,
    EXECVE,
    EXIT_GROUP,
    PROGRAMS,
    WAIT4,
    call,
    do,
    new_machine,
    program,
    text,
)
from tests.waiting import wait_until
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.compile_pool import shared_pool
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.module_shape import check_shape
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import (
    COMPILE_BUDGET_MODULES,
    COMPILE_BUDGET_SECONDS,
    MIB,
    MODULE_SHAPE_MAX,
)
from wasmsand.machine import CommandRequest, Completed, Machine, compile_budget
from wasmsand.machine.compile_budget import BudgetSpent, CompileBudget, seconds_for

pytestmark = [
    pytest.mark.no_userland,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

# Starts /tmp/p in a child, waits for it, and exits with a status that tells how it ended.
_EXEC = f"(if (i32.lt_s {call(EXECVE, 256, 0, 0)} (i32.const 0)) (then {do(EXIT_GROUP, 77)}))"
STARTER = wat_to_wasm(
    program(
        f"(if (i32.eqz {call(CLONE, 0x4111)}) (then {_EXEC}))",
        do(WAIT4, -1, 8192, 0, 0),
        do(EXIT_GROUP, "(i32.load8_u (i32.const 8193))"),
        more=text(256, "/tmp/p"),
    )
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    engine = WasmtimeEngine(cache_directory=tmp_path_factory.mktemp("modules"))
    for wasm in (STARTER, wat_to_wasm(PROGRAMS["ok"])):
        load(engine, wasm)
    return engine


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before = descendants()
    yield
    shared_pool().end_idle_now()
    wait_until(lambda: descendants() <= before, "a process was left behind")


@pytest.fixture
def new(engine: WasmtimeEngine) -> Iterator[Callable[[], Machine]]:
    """Makes machines, which must still work at the end unless they were closed."""
    made: list[Machine] = []

    def make() -> Machine:
        made.append(new_machine(engine, starter=STARTER))
        return made[-1]

    yield make
    for machine in made:
        if not machine.closed:
            assert run(machine, "ok").stdout == b"ok"
            machine.close()


@pytest.fixture
def machine(new: Callable[[], Machine]) -> Machine:
    return new()


@pytest.fixture
def any_shape(engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the checks of shape, as for bombs that they do not catch."""
    engine._apart.forget_rejections()
    monkeypatch.setattr(compile_budget, "MODULE_SHAPE_MAX", NO_LIMITS)


def run(machine: Machine, name: str, timeout: float | None = 60.0) -> Completed:
    return machine.run(CommandRequest((name,), {}, "/", timeout_seconds=timeout))


def put(machine: Machine, wasm: bytes, path: str = "/tmp/p") -> None:
    machine.files.write(path, wasm, mode=0o755)


def start(machine: Machine, name: str = "starter") -> Running[Completed]:
    """Start a program that must be compiled; returns when a process compiles it."""
    before = compilers()
    running = Running(lambda: run(machine, name, None))
    wait_until(lambda: compilers() - before)
    return running


@pytest.mark.parametrize("which", BOMBS)
def test_a_bomb_is_refused_with_a_reason_and_the_sandbox_goes_on(
    machine: Machine, which: str
) -> None:
    wasm, culprit = BOMBS[which]
    put(machine, wasm)
    completed = run(machine, "starter")
    assert completed.exit_code == 77
    assert completed.stderr.startswith(b"wasmsand: /tmp/p: ")
    assert f" {culprit}, more than the limit of ".encode() in completed.stderr
    with pytest.raises(KernelError, match=culprit) as raised:
        run(machine, "/tmp/p")
    assert raised.value.errno is Errno.ENOEXEC


@pytest.mark.usefixtures("any_shape")
@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        (slow(0), b"takes more than 5 s of processor time to compile"),
        (FAT, b"bytes of memory to compile"),
        (BOMBS["wide branches"][0], b"bytes of memory to compile"),
        (BOMBS["wide calls"][0], b" to compile"),
    ],
    ids=["time", "memory", "branches", "calls"],
)
def test_a_bomb_of_another_shape_ends_by_the_limits_of_the_worker(
    machine: Machine, bomb: bytes, reason: bytes
) -> None:
    put(machine, bomb)
    started = time.monotonic()
    completed = run(machine, "starter", 50)
    assert completed.exit_code == 77
    assert reason in completed.stderr
    again = time.monotonic()
    assert run(machine, "starter").stderr == completed.stderr
    assert time.monotonic() - again < (again - started) + 1, "it was compiled again"
    assert machine._loader._budget.spent < 20


@pytest.mark.usefixtures("any_shape")
def test_closing_the_sandbox_ends_the_compilation_at_once(machine: Machine) -> None:
    put(machine, slow(1))
    guest = start(machine)
    started = time.monotonic()
    machine.close()
    wait_until(lambda: not compilers())
    assert time.monotonic() - started < 5
    guest.wait()


@pytest.mark.usefixtures("any_shape")
def test_killed_sandboxes_do_not_add_up(new: Callable[[], Machine]) -> None:
    for number in range(6):
        machine = new()
        put(machine, slow(10 + number))
        guest = start(machine)
        assert len(compilers()) == 1
        machine.close()
        guest.wait()
    wait_until(lambda: not compilers())


@pytest.mark.usefixtures("any_shape")
def test_a_timeout_ends_the_compilation(machine: Machine) -> None:
    put(machine, slow(20))
    for name in ("starter", "/tmp/p"):
        started = time.monotonic()
        completed = run(machine, name, timeout=1.0)
        assert (completed.exit_code, completed.timed_out) == (124, True)
        assert time.monotonic() - started < 10
        wait_until(lambda: not compilers())


@pytest.mark.usefixtures("any_shape")
def test_a_compilation_goes_on_for_another_process_that_waits(machine: Machine) -> None:
    put(machine, slow(30))
    first = machine.start(CommandRequest(("starter",), {}, "/"))
    wait_until(compilers)
    compiler = compilers()
    second = machine.start(CommandRequest(("starter",), {}, "/"))
    loader = machine._loader
    wait_until(lambda: any(load.key for load in loader._compiling.waiting))
    first.kill()
    time.sleep(0.3)
    assert compilers() == compiler
    second.kill()
    wait_until(lambda: not compilers())


@pytest.mark.usefixtures("any_shape")
def test_children_that_are_killed_while_they_wait_leave_no_threads(machine: Machine) -> None:
    put(machine, slow(40))
    start(machine)
    before = threading.active_count()
    for _ in range(20):
        child = machine.start(CommandRequest(("starter",), {}, "/"))
        child.kill()
    wait_until(lambda: threading.active_count() <= before + 3)
    assert len(machine._loader._compiling.waiting) <= 21
    machine.close()


@pytest.mark.usefixtures("any_shape")
def test_an_honest_sandbox_is_served_while_others_bomb(new: Callable[[], Machine]) -> None:
    bombers = [new() for _ in range(3)]
    guests = []
    for number, bomber in enumerate(bombers):
        put(bomber, slow(50 + number))
        guests.append(Running(partial(run, bomber, "starter", None)))
    wait_until(compilers)
    honest = new()
    put(honest, harmless(1))
    assert run(honest, "/tmp/p", 30).exit_code == 0
    assert not all(guest.results for guest in guests)
    for bomber in bombers:
        bomber.close()


@pytest.mark.usefixtures("any_shape")
def test_the_memory_of_the_host_stays_flat(new: Callable[[], Machine]) -> None:
    machine = new()
    put(machine, FAT + b"\0\3\1xy")
    run(machine, "starter")  # for what is made only once
    before = resident_bytes()
    for number in range(4):
        put(machine, FAT + b"\0\3\1x" + bytes([number]))
        assert run(machine, "starter").exit_code == 77
    assert resident_bytes() - before < 32 * MIB


def test_a_large_program_is_not_held_in_memory_whole(machine: Machine) -> None:
    size = 60 * MIB
    run(machine, "ok")
    put(machine, harmless(2) + b"\0" + b"\x84\x80\x80\x1e\1y" + bytes(size - 4))
    before = resident_bytes()
    with watched_peak() as peak:
        run(machine, "starter")
    assert peak.resident_bytes - before < size // 2


def test_an_honest_program_is_compiled_once_for_all_sandboxes(
    new: Callable[[], Machine], engine: WasmtimeEngine
) -> None:
    for _ in range(2):
        machine = new()
        put(machine, harmless(3))
        assert run(machine, "/tmp/p").exit_code == 0
    assert machine._loader._budget.spent == 0


def test_a_sandbox_has_a_budget_of_modules(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine._loader._budget._modules = 2.0
    monkeypatch.setattr(compile_budget, "COMPILE_MODULES_PER_SECOND", 1e-9)
    for number in (4, 5):
        put(machine, harmless(number))
        assert run(machine, "starter").exit_code == 0
    put(machine, harmless(6))
    completed = run(machine, "starter")
    assert completed.exit_code == 77
    assert b"/tmp/p: this sandbox has compiled 128 programs" in completed.stderr
    with pytest.raises(KernelError) as raised:
        run(machine, "/tmp/p")
    assert raised.value.errno is Errno.EAGAIN
    put(machine, harmless(4))
    assert run(machine, "starter").exit_code == 0, "what is compiled still runs"


@pytest.mark.usefixtures("any_shape")
def test_a_sandbox_has_a_budget_of_processor_time(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_budget, "COMPILE_BUDGET_SHARE", 1e-9)
    budget = machine._loader._budget
    budget._seconds = 2.5
    put(machine, slow(60))
    completed = run(machine, "starter", 50)
    assert b"takes more than 2 s of processor time to compile, the rest of this" in completed.stderr
    completed = run(machine, "starter", 50)
    assert b"has used 120 s of processor time for compiling programs" in completed.stderr


def test_the_budget_is_regained_with_time() -> None:
    now = 0.0
    budget = CompileBudget(lambda: now)
    budget.charge(COMPILE_BUDGET_SECONDS + 10)
    for _ in range(int(COMPILE_BUDGET_MODULES)):
        budget.charge(0)
    with pytest.raises(BudgetSpent, match=r"it may compile another in 4 s"):
        budget.limits(1000)
    now = 60.0
    with pytest.raises(BudgetSpent, match=r"try again in 50 s"):
        budget.limits(1000)
    now = 130.0
    assert budget.limits(1000).cpu_seconds == 3
    now = 1e6
    assert budget.spent == 0


def test_limits_grow_with_the_module() -> None:
    limits = [CompileBudget().limits(size) for size in (16_000, MIB, 13 * MIB, 128 * MIB)]
    assert [each.cpu_seconds for each in limits] == [3, 11, 60, 60]
    assert [each.memory_bytes // MIB for each in limits] == [192, 256, 1024, 1024]
    assert seconds_for(0) == 3


def test_our_own_programs_are_far_below_the_limits_of_shape() -> None:
    image = Path(__file__).parents[2] / "src" / "wasmsand" / "_image"
    if not image.is_dir():
        pytest.skip("the user space is not built")
    for path in sorted(image.glob("*.wasm")):
        found = check_shape(path.read_bytes(), MODULE_SHAPE_MAX)
        for what, count in found.items():
            assert count <= MODULE_SHAPE_MAX[what] / 3, (path.name, what)
