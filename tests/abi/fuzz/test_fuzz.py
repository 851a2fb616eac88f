"""A guest that makes every call with hostile arguments cannot harm its host.

WASMSAND_FUZZ_SEEDS sets how many sequences are run (a night's worth: 20000);
WASMSAND_FUZZ_FIRST where they begin. A failure names its seed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.abi.fuzz.arguments import DATA_OF_GUEST, PROGRAM, SWEEP_SEEDS, sequence
from tests.abi.fuzz.guest import ALIVE, OPS_PATH, encode, fuzz_guest
from tests.abi.fuzz.watching import CALL_NAMES, LinuxWatch
from wasmsand.abi.linux.table import HANDLERS
from wasmsand.engine.protocol import Arguments
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine.thread_driver import ThreadDriver

SEEDS = int(os.environ.get("WASMSAND_FUZZ_SEEDS", SWEEP_SEEDS))
FIRST = int(os.environ.get("WASMSAND_FUZZ_FIRST", "0"))
CALLS_PER_SEED = 150
SECONDS_PER_SEED = 0.3
"""A sequence that stops itself, or blocks its alarm and sleeps, is ended then."""


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> LinuxWatch:
    """Watches every system call of every guest."""
    seen = LinuxWatch()
    original = ThreadDriver.syscall

    def syscall(self: ThreadDriver, nr: int, arguments: Arguments) -> int:
        return seen.check(self, nr, arguments, original)

    monkeypatch.setattr(ThreadDriver, "syscall", syscall)
    return seen


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    cache: Path = tmp_path_factory.mktemp("modules")
    return WasmtimeEngine(cache_directory=cache)


@pytest.fixture(scope="module")
def image() -> FrozenTree:
    builder = ImageBuilder()
    standard_tree(builder)
    builder.add_file(PROGRAM, wat_to_wasm(fuzz_guest(bytes(DATA_OF_GUEST.content))), 0o755)
    builder.add_file(b"/usr/bin/alive", wat_to_wasm(ALIVE), 0o755)
    return builder.build()


@pytest.fixture
def new_machine(image: FrozenTree, engine: WasmtimeEngine) -> Callable[[int], Machine]:
    """Makes machines whose programs run as the given user."""
    limits = Limits(fs_limit_bytes=8 << 20, max_inodes=2000, max_processes=24, max_open_files=64)

    def make(uid: int) -> Machine:
        machine = Machine(MachineOptions(limits=limits), image=image, engine=engine)
        machine.identity = Identity.of(uid, uid)
        return machine

    return make


def host_bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def end_everything(machine: Machine) -> None:
    with machine.lock:
        machine.kernel.kill_all()


def run_alive(machine: Machine) -> bytes:
    return machine.run(CommandRequest(("/usr/bin/alive",), {}, "/tmp", timeout_seconds=30)).stdout


def check_nothing_is_left(machine: Machine) -> None:
    """Dead processes have given everything back."""
    kernel = machine.kernel
    with machine.lock:
        kernel.kill_all()
        kept: dict[str, object] = {
            "processes": [p for p in kernel.processes if p.pid != 1],
            "terminals": kernel.terminals,
            "fifos": kernel.fifos,
            "locks": kernel.locks._inodes,
        }
    assert {name: what for name, what in kept.items() if what} == {}


def run_with_pipes(machine: Machine) -> None:
    stdin = b"some input\n" * 100
    words = (PROGRAM.decode(),)
    machine.run(CommandRequest(words, {"A": "1"}, "/tmp", SECONDS_PER_SEED, stdin))


def run_on_a_terminal(machine: Machine) -> None:
    terminal = machine.open_terminal(CommandRequest((PROGRAM.decode(), "x"), {}, "/tmp"))
    terminal.write(b"some input\nhalf a line")
    terminal.wait(SECONDS_PER_SEED)
    terminal.resize(10, 20)
    terminal.close()
    end_everything(machine)


@pytest.mark.parametrize("uid", [1000, 0], ids=["user", "root"])
@pytest.mark.parametrize("run", [run_with_pipes, run_on_a_terminal], ids=["pipes", "terminal"])
def test_hostile_calls_harm_neither_host_nor_sandbox(
    new_machine: Callable[[int], Machine],
    record: LinuxWatch,
    caplog: pytest.LogCaptureFixture,
    run: Callable[[Machine], None],
    uid: int,
) -> None:
    for record.seed in range(FIRST, FIRST + SEEDS):
        machine = new_machine(uid)
        machine.files.write(OPS_PATH.decode(), encode(sequence(record.seed, CALLS_PER_SEED)))
        run(machine)
        check_nothing_is_left(machine)
        if uid:  # root may have destroyed the program
            assert run_alive(machine) == b"alive"
        machine.close()
        assert not record.wrong
        assert not host_bugs(caplog), f"seed {record.seed}"
    if SEEDS >= SWEEP_SEEDS:
        assert not [CALL_NAMES[number] for number in HANDLERS if not record.calls[number]]
