"""The compilation of the image's own programs does not count against timeouts, and is announced."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.background import Running
from tests.machine.guests import EXECVE, EXIT_GROUP, PROGRAMS, do, program, text
from tests.waiting import PATIENCE, wait_until
from wasmsand.engine.compile_orders import CompileOrder
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.kernel.clock import ManualClock
from wasmsand.kernel.vfs import ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine.uncounted import Compilation, _log, tell_of_compilations

pytestmark = pytest.mark.no_userland
TIMEOUT = 10.0
OF_IMAGE = wat_to_wasm(program(do(EXIT_GROUP, 5), more="(global i32 (i32.const 1))"))
OF_GUEST = wat_to_wasm(program(do(EXIT_GROUP, 6), more="(global i32 (i32.const 2))"))
ENDLESS = wat_to_wasm(program("(loop (br 0))"))


def key_of(wasm: bytes) -> str:
    return hashlib.sha256(wasm).hexdigest()


class GatedEngine(WasmtimeEngine):
    """Compiles `OF_IMAGE` and `OF_GUEST` only when the gate is open."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache_directory=cache, shipped=())
        self.gate = threading.Event()
        self.asked = threading.Event()

    def load(self, key: str, read: Callable[[], bytes]) -> WasmtimeModule:
        if key == key_of(OF_IMAGE):
            self._wait()
        return super().load(key, read)

    def compile_apart(self, order: CompileOrder) -> WasmtimeModule:
        if order.key == key_of(OF_GUEST):
            with order.cancellation.calling(self.gate.set):
                self._wait()
        return super().compile_apart(order)

    def _wait(self) -> None:
        self.asked.set()
        assert self.gate.wait(PATIENCE)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GatedEngine]:
    engine = GatedEngine(tmp_path)
    yield engine
    engine.gate.set()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def machine(engine: GatedEngine, clock: ManualClock) -> Iterator[Machine]:
    builder = ImageBuilder()
    standard_tree(builder)
    become = program(do(EXECVE, 256, 0, 0), more=text(256, "/usr/bin/slow"))
    programs = {"slow": OF_IMAGE, "become": wat_to_wasm(become), "endless": ENDLESS}
    for name, wasm in programs.items():
        builder.add_file(b"/usr/bin/" + name.encode(), wasm, 0o755, content_key=key_of(wasm))
    builder.add_file(b"/usr/bin/made", OF_GUEST, 0o755)
    builder.add_file(b"/usr/bin/ok", wat_to_wasm(PROGRAMS["ok"]), 0o755)
    machine = Machine(MachineOptions(), image=builder.build(), engine=engine, clock=clock)
    for wasm in (programs["become"], ENDLESS):  # only the other two must still be compiled
        engine.load(key_of(wasm), lambda wasm=wasm: wasm)  # type: ignore[misc]
    yield machine
    engine.gate.set()
    machine.close()


def request(name: str) -> CommandRequest:
    return CommandRequest((name,), {}, "/", timeout_seconds=TIMEOUT)


@pytest.mark.parametrize("name", ["slow", "become"])
def test_a_command_that_waits_for_a_compilation_does_not_time_out(
    machine: Machine, engine: GatedEngine, clock: ManualClock, name: str
) -> None:
    running = Running(lambda: machine.run(request(name)))
    assert engine.asked.wait(PATIENCE)
    for _ in range(3):
        clock.advance(2 * TIMEOUT)
    assert not running.results
    engine.gate.set()
    ended = running.result()
    assert (ended.exit_code, ended.timed_out) == (5, False)


def test_neither_does_a_started_command(
    machine: Machine, engine: GatedEngine, clock: ManualClock
) -> None:
    process = machine.start(request("become"))
    assert engine.asked.wait(PATIENCE)
    clock.advance(3 * TIMEOUT)
    engine.gate.set()
    ended = process.wait()
    assert ended is not None
    assert (ended.exit_code, ended.timed_out) == (5, False)


def test_the_clock_of_sessions_stands_still_meanwhile(
    machine: Machine, engine: GatedEngine, clock: ManualClock
) -> None:
    process = machine.start(request("become"))
    assert engine.asked.wait(PATIENCE)
    before = process.now()
    clock.advance(5)
    assert process.now() == before
    engine.gate.set()
    process.wait()
    clock.advance(5)
    assert process.now() == before + 5


def test_the_rest_of_the_command_is_limited_as_usual(
    machine: Machine, engine: GatedEngine, clock: ManualClock
) -> None:
    endless = machine.start(request("endless"))
    waiting = Running(lambda: machine.run(request("slow")))
    assert engine.asked.wait(PATIENCE)
    clock.advance(2 * TIMEOUT)
    engine.gate.set()
    assert waiting.result().exit_code == 5
    assert endless.wait(0) is None, "the time of other commands stands still too"
    clock.advance(TIMEOUT)
    ended = endless.wait()
    assert ended is not None
    assert ended.timed_out


def test_a_program_that_a_guest_made_counts(
    machine: Machine, engine: GatedEngine, clock: ManualClock
) -> None:
    running = Running(lambda: machine.run(request("made")))
    assert engine.asked.wait(PATIENCE)
    clock.advance(2 * TIMEOUT)
    ended = running.result()
    assert ended.timed_out
    assert b"compiled" in ended.stderr


@pytest.fixture
def told() -> Iterator[list[Compilation]]:
    heard: list[Compilation] = []
    tell_of_compilations(heard.append)
    yield heard
    tell_of_compilations(_log)


def test_a_compilation_is_announced_by_the_name_of_the_program(
    machine: Machine, engine: GatedEngine, told: list[Compilation]
) -> None:
    running = Running(lambda: machine.run(request("slow")))
    assert engine.asked.wait(PATIENCE)
    assert told == [Compilation("slow", len(OF_IMAGE), False)]
    engine.gate.set()
    running.result()
    assert told == [
        Compilation("slow", len(OF_IMAGE), False),
        Compilation("slow", len(OF_IMAGE), True),
    ]
    machine.run(request("slow"))
    assert len(told) == 2, "it is compiled once"


def test_by_default_the_log_says_it(
    machine: Machine, engine: GatedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "wasmsand.engine")
    engine.gate.set()
    machine.run(request("slow"))
    wait_until(lambda: "compiling slow for this machine" in caplog.text)
    assert "wasmsand warm" in caplog.text
