"""A machine on an engine without optional abilities: programs run, with known differences.

The engine is the real one, stripped of everything that `engine/abilities.py` lists. A memory
without a view has its own test, `tests/abi/test_copied_memory.py`.
"""

from __future__ import annotations

import os
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
from tests.machine.image_directories import prepared_entry, program_entry, write_manifest
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
from wasmsand.machine import Machine, image_at, renewal
from wasmsand.machine.command import CommandRequest

pytestmark = pytest.mark.no_userland
STACK = 4 * MIB
PAGE = 65536
RESUMED = """(module
  (import "linux" "syscall" (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 4)
  (global (export "__stack_pointer") (mut i32) (i32.const 65536))
  (global $variable (export "variable") (mut i32) (i32.const 0))
  (data (i32.const 65536) "\\01")
  (data (i32.const 250000) "\\01")
  (func $exit (param i32)
    (drop (call $syscall (i32.const 94) (local.get 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))))
  (func (export "_start") (call $exit (i32.load (i32.const 65536))))
  (func (export "_resume")
    (local $seen i32)
    (local.set $seen (i32.add (global.get $variable) (i32.add (i32.load (i32.const 65536))
      (i32.add (i32.load (i32.const 250000)) (memory.size)))))
    (i32.store (i32.const 65536) (i32.const 99))
    (global.set $variable (i32.const 99))
    (call $exit (local.get $seen))))"""
"""Exits with 1; with the sum of its variable, two words and its size if it starts prepared."""


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
    with pytest.raises(KernelError) as error:
        run(machine, "/tmp/broken")
    assert error.value.errno is Errno.ENOEXEC


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


def test_a_prepared_program_starts_with_a_copy_of_its_memory(
    plain: PlainEngine, engine: WasmtimeEngine, tmp_path: Path
) -> None:
    """It writes what is at three addresses, and changes one: the next start sees none of that."""
    module = wat_to_wasm(RESUMED)
    content = b"\7".ljust(2 * PAGE, b"\0")
    entry = program_entry(tmp_path, "tool", module, "/usr/libexec/tool-plain")
    entry["prepared"] = prepared_entry(
        tmp_path,
        "tool",
        content,
        "/usr/bin/tool",
        first=PAGE,
        memory_size=5 * PAGE,
        variables={"variable": 30},
    )
    write_manifest(tmp_path, [entry])
    for chosen in (plain, engine):
        machine = Machine(image=image_at(tmp_path), engine=chosen)
        codes = [
            machine.run(CommandRequest((name,), {}, "/")).exit_code
            for name in ("/usr/bin/tool", "/usr/bin/tool", "/usr/libexec/tool-plain")
        ]
        machine.close()
        assert codes == [42, 42, 1]


def test_a_damaged_file_of_memory_is_refused(
    plain: PlainEngine, engine: WasmtimeEngine, tmp_path: Path
) -> None:
    entry = program_entry(tmp_path, "tool", wat_to_wasm(RESUMED), "/usr/libexec/tool-plain")
    content = os.urandom(PAGE)
    entry["prepared"] = prepared_entry(
        tmp_path, "tool", content, "/usr/bin/tool", first=PAGE, memory_size=5 * PAGE
    )
    write_manifest(tmp_path, [entry])
    for damaged in (content[:-1] + bytes([content[-1] ^ 1]), content[:-1], content + b"x"):
        (tmp_path / "tool.image").write_bytes(damaged)
        for chosen in (plain, engine):
            machine = Machine(image=image_at(tmp_path), engine=chosen)
            with pytest.raises(KernelError, match=r"tool\.image does not match its hash") as error:
                machine.run(CommandRequest(("/usr/bin/tool",), {}, "/"))
            machine.close()
            assert error.value.errno is Errno.ENOEXEC


def test_no_program_is_prepared_again(plain: PlainEngine) -> None:
    class Asked:
        stored = object()

        def newest(self) -> None:
            raise AssertionError("a program would be prepared again")

    memories = renewal.PreparedMemories(plain)
    memories._known["key"] = Asked()  # type: ignore[assignment]
    assert memories.find("key") is memories.load("key") is Asked.stored
