"""A guest that makes every WASI call with hostile arguments cannot harm its host.

`hostile_runs.py` names the variables that set the seeds. A failure names its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.abi.fuzz import hostile_runs as runs
from tests.abi.fuzz.wasi_calls import SWEEP_SEEDS, WASI_DATA, wasi_sequence
from tests.abi.fuzz.wasi_guest import OPS_NAME, encode, wasi_fuzz_guest
from tests.abi.fuzz.watching import WasiWatch
from wasmsand.abi.wasi.table import FUNCTIONS
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine import Machine
from wasmsand.machine.thread_driver import ThreadDriver

CALLS_PER_SEED = 300
SECONDS_PER_SEED = 1.0
PROGRAM = b"/usr/bin/fuzz"
NEED_NOT_SUCCEED = {"proc_exit", "sock_accept", "sock_recv", "sock_send", "sock_shutdown"}
"""proc_exit never returns; the guest has no socket."""


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
def image() -> FrozenTree:
    return runs.image_with({PROGRAM: wat_to_wasm(wasi_fuzz_guest(bytes(WASI_DATA.content)))})


@runs.both_users
@runs.both_runs
def test_hostile_calls_harm_neither_host_nor_sandbox(
    new_machine: Callable[[int], Machine],
    record: WasiWatch,
    caplog: pytest.LogCaptureFixture,
    run: runs.Run,
    uid: int,
) -> None:
    for record.seed in runs.seeds(SWEEP_SEEDS):
        machine = new_machine(uid)
        calls = encode(wasi_sequence(record.seed, CALLS_PER_SEED))
        machine.files.write("/" + OPS_NAME.decode(), calls)
        run(machine, PROGRAM, SECONDS_PER_SEED)
        runs.check_nothing_is_left(machine)
        machine.close()
        assert not record.wrong
        assert not runs.host_bugs(caplog), f"seed {record.seed}"
    if runs.seed_count(SWEEP_SEEDS) >= SWEEP_SEEDS:
        names = {row.name for row in FUNCTIONS}
        assert names - set(record.calls) == set()
        assert names - set(record.succeeded) - NEED_NOT_SUCCEED == set()
