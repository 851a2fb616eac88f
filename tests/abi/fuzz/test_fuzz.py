"""A guest that makes every system call with hostile arguments cannot harm its host.

`hostile_runs.py` names the variables that set the seeds. A failure names its seed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.abi.fuzz import hostile_runs as runs
from tests.abi.fuzz.arguments import DATA_OF_GUEST, PROGRAM, SWEEP_SEEDS, sequence
from tests.abi.fuzz.guest import ALIVE, OPS_PATH, encode, fuzz_guest
from tests.abi.fuzz.watching import CALL_NAMES, LinuxWatch
from wasmsand.abi.linux.table import HANDLERS
from wasmsand.engine.protocol import Arguments
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine import CommandRequest, Machine
from wasmsand.machine.thread_driver import ThreadDriver

CALLS_PER_SEED = 150
SECONDS_PER_SEED = 0.3
"""Ends a sequence that stops itself, or that blocks its alarm and sleeps."""
ALIVE_PROGRAM = "/usr/bin/alive"


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
def image() -> FrozenTree:
    guest = fuzz_guest(bytes(DATA_OF_GUEST.content))
    return runs.image_with(
        {PROGRAM: wat_to_wasm(guest), ALIVE_PROGRAM.encode(): wat_to_wasm(ALIVE)}
    )


def run_alive(machine: Machine) -> bytes:
    return machine.run(CommandRequest((ALIVE_PROGRAM,), {}, "/tmp", timeout_seconds=30)).stdout


@runs.both_users
@runs.both_runs
def test_hostile_calls_harm_neither_host_nor_sandbox(
    new_machine: Callable[[int], Machine],
    record: LinuxWatch,
    caplog: pytest.LogCaptureFixture,
    run: runs.Run,
    uid: int,
) -> None:
    for record.seed in runs.seeds(SWEEP_SEEDS):
        machine = new_machine(uid)
        machine.files.write(OPS_PATH.decode(), encode(sequence(record.seed, CALLS_PER_SEED)))
        run(machine, PROGRAM, SECONDS_PER_SEED)
        runs.check_nothing_is_left(machine)
        if uid:  # root may have destroyed the program
            assert run_alive(machine) == b"alive"
        machine.close()
        assert not record.wrong
        assert not runs.host_bugs(caplog), f"seed {record.seed}"
    if runs.seed_count(SWEEP_SEEDS) >= SWEEP_SEEDS:
        assert not [CALL_NAMES[number] for number in HANDLERS if not record.calls[number]]
