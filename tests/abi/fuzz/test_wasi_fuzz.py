"""A guest that makes every WASI call with hostile arguments cannot harm its host.

WASMSAND_FUZZ_SEEDS and WASMSAND_FUZZ_FIRST are those of the fuzzing of the Linux ABI.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.abi.fuzz.wasi_calls import SWEEP_SEEDS, WASI_DATA, wasi_sequence
from tests.abi.fuzz.wasi_guest import OPS_NAME, encode, wasi_fuzz_guest
from tests.abi.fuzz.watching import WasiWatch
from wasmsand.abi.wasi.table import FUNCTIONS
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine.thread_driver import ThreadDriver

SEEDS = int(os.environ.get("WASMSAND_FUZZ_SEEDS", SWEEP_SEEDS))
FIRST = int(os.environ.get("WASMSAND_FUZZ_FIRST", "0"))
CALLS_PER_SEED = 300
SECONDS_PER_SEED = 1.0
PROGRAM = b"/usr/bin/fuzz"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> WasiWatch:
    """Watches every WASI call of every guest."""
    seen = WasiWatch()
    original = ThreadDriver.invoke

    def invoke(self: ThreadDriver, handler: Callable[..., Any], *arguments: int) -> int:
        return seen.check(self, handler, arguments, original)

    monkeypatch.setattr(ThreadDriver, "invoke", invoke)
    return seen


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WasmtimeEngine:
    cache: Path = tmp_path_factory.mktemp("modules")
    return WasmtimeEngine(cache_directory=cache)


@pytest.fixture(scope="module")
def image() -> FrozenTree:
    builder = ImageBuilder()
    standard_tree(builder)
    builder.add_file(PROGRAM, wat_to_wasm(wasi_fuzz_guest(bytes(WASI_DATA.content))), 0o755)
    return builder.build()


def run_with_pipes(machine: Machine) -> None:
    stdin = b"some input\n" * 100
    words = (PROGRAM.decode(),)
    machine.run(CommandRequest(words, {"A": "1"}, "/tmp", SECONDS_PER_SEED, stdin))


def run_on_a_terminal(machine: Machine) -> None:
    terminal = machine.open_terminal(CommandRequest((PROGRAM.decode(), "x"), {}, "/tmp"))
    terminal.write(b"some input\nhalf a line")
    terminal.wait(SECONDS_PER_SEED)
    terminal.close()
    with machine.lock:
        machine.kernel.kill_all()


@pytest.mark.parametrize("uid", [1000, 0], ids=["user", "root"])
@pytest.mark.parametrize("run", [run_with_pipes, run_on_a_terminal], ids=["pipes", "terminal"])
def test_hostile_calls_harm_neither_host_nor_sandbox(
    image: FrozenTree,
    engine: WasmtimeEngine,
    record: WasiWatch,
    caplog: pytest.LogCaptureFixture,
    run: Callable[[Machine], None],
    uid: int,
) -> None:
    limits = Limits(fs_limit_bytes=8 << 20, max_inodes=2000, max_processes=24, max_open_files=64)
    for record.seed in range(FIRST, FIRST + SEEDS):
        machine = Machine(MachineOptions(limits=limits), image=image, engine=engine)
        machine.identity = Identity.of(uid, uid)
        calls = encode(wasi_sequence(record.seed, CALLS_PER_SEED))
        machine.files.write("/" + OPS_NAME.decode(), calls)
        run(machine)
        with machine.lock:
            machine.kernel.kill_all()
            assert [process.pid for process in machine.kernel.processes] == [1]
            assert not machine.kernel.fifos
        machine.close()
        assert not record.wrong
        bugs = [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]
        assert not bugs, f"seed {record.seed}"
    if SEEDS >= SWEEP_SEEDS:
        names = {row.name for row in FUNCTIONS}
        assert names - set(record.calls) == set()
        never = {"proc_exit", "sock_accept", "sock_recv", "sock_send", "sock_shutdown"}
        assert names - set(record.succeeded) - never == set()
