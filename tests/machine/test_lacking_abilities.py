"""A machine on an engine without optional abilities: programs run, with known differences.

The engine is the real one, stripped of everything that `engine/abilities.py` lists. A memory
without a view has its own test, `tests/abi/test_copied_memory.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.guests import (
    EXIT_GROUP,
    LONG_TIME,
    NANOSLEEP,
    do,
    grow,
    new_machine,
    program,
    sleep_for_ever,
    words,
)
from tests.machine.test_commands import living, memory_is_freed, run, soon_living
from tests.machine.test_memory import eventually_used, machine_with
from tests.machine.test_threads import start, threaded
from tests.waiting import PATIENCE
from wasmsand.engine.abilities import Abilities, CompileHere
from wasmsand.engine.compile_orders import CompileOrder
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import MIB
from wasmsand.machine import Machine, renewal
from wasmsand.machine.command import CommandRequest

pytestmark = pytest.mark.no_userland
STACK = 4 * MIB


class PlainEngine(WasmtimeEngine):
    """An engine that implements only `protocol.Engine`."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache_directory=cache)
        self.abilities = Abilities(CompileHere(self.load))

    def compile_apart(self, order: CompileOrder) -> WasmtimeModule:
        raise AssertionError("an engine without workers was asked for one")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> PlainEngine:
    return PlainEngine(tmp_path_factory.mktemp("modules"))


@pytest.fixture
def machine(plain: PlainEngine) -> Iterator[Machine]:
    machine = new_machine(plain)
    yield machine
    machine.close()
    assert memory_is_freed(machine)


@pytest.mark.parametrize(
    ("name", "code"), [("ok", 0), ("complain", 3), ("ticks", 42), ("alarm", 43), ("divide", 136)]
)
def test_programs_run_and_get_their_signals(machine: Machine, name: str, code: int) -> None:
    assert run(machine, name).exit_code == code


def test_a_program_that_computes_for_ever_is_ended_at_its_timeout(machine: Machine) -> None:
    assert run(machine, "spin", timeout=0.1).timed_out
    assert soon_living(machine, [])


def test_a_thread_cannot_be_made(plain: PlainEngine) -> None:
    failed = f"(i32.sub (i32.const 0) {start(1)})"
    machine = machine_with(plain, threaded(do(EXIT_GROUP, failed), thread=""))
    assert run(machine, "tried").exit_code == Errno.ENOSYS
    machine.close()


def test_a_program_that_a_guest_made_is_compiled_in_this_process(machine: Machine) -> None:
    machine.files.write("/tmp/made", wat_to_wasm(program(do(EXIT_GROUP, 7))), mode=0o755)
    assert run(machine, "/tmp/made").exit_code == 7
    machine.files.write("/tmp/broken", b"\0asm\1\0\0\0broken", mode=0o755)
    with pytest.raises(KernelError) as refused:
        run(machine, "/tmp/broken")
    assert refused.value.errno is Errno.ENOEXEC


def _sleeper_with_a_stack() -> str:
    wat = program(sleep_for_ever(), more=LONG_TIME, pages=2 * STACK // 65536)
    return wat.replace("(i32.const 512)", f"(i32.const {STACK})")


def test_all_of_the_memory_is_charged_for(plain: PlainEngine, engine: WasmtimeEngine) -> None:
    """So is the whole C stack; engines that know the touched part charge only that."""
    charged = []
    for chosen in (plain, engine):
        machine = machine_with(chosen, _sleeper_with_a_stack())
        machine.start(CommandRequest(("tried",), {}, "/"))
        charged.append(eventually_used(machine, STACK)[0])
        machine.close()
    assert charged[0] == 2 * STACK
    assert STACK <= charged[1] < 2 * STACK


def test_a_sandbox_that_has_grown_over_its_limit_loses_a_process(plain: PlainEngine) -> None:
    """Each process alone is within the limit; its growth cannot be refused while it computes."""
    wait = do(NANOSLEEP, 1, 0, 224, 0)
    more = LONG_TIME + words(224, 0, 0, 200_000_000, 0)
    machine = machine_with(plain, program(wait, grow(40), sleep_for_ever(), more=more))
    for _ in range(2):
        machine.start(CommandRequest(("tried",), {}, "/"))
    eventually_used(machine, 40 * MIB)
    deadline = time.monotonic() + PATIENCE
    while len(living(machine)) > 1 and time.monotonic() < deadline:
        time.sleep(0.002)
    assert len(living(machine)) == 1
    machine.close()
    assert memory_is_freed(machine)


def test_no_program_is_prepared_again(plain: PlainEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "prepared_programs", lambda: {"key": "a program"})
    assert renewal.newest_image(plain, "key") is None
    assert (id(plain), "key") not in renewal._renewals
