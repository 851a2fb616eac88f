"""Runs of hostile guests, for both ABIs: small machines, and the checks after a run.

Owns what the fuzz tests of this folder share. WASMSAND_FUZZ_SEEDS sets how many sequences run
(20000 fill a night); WASMSAND_FUZZ_FIRST sets the first seed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions

_LIMITS = Limits(fs_limit_bytes=8 << 20, max_inodes=2000, max_processes=24, max_open_files=64)
_FIRST = int(os.environ.get("WASMSAND_FUZZ_FIRST", "0"))

Run = Callable[[Machine, bytes, float], None]
"""Runs a program of a machine for some seconds at most."""


def seed_count(default: int) -> int:
    """How many seeds to run."""
    return int(os.environ.get("WASMSAND_FUZZ_SEEDS", default))


def seeds(default: int) -> Iterator[int]:
    """The seeds to run."""
    return iter(range(_FIRST, _FIRST + seed_count(default)))


def image_with(programs: dict[bytes, bytes]) -> FrozenTree:
    """A standard tree with these programs, by path."""
    builder = ImageBuilder()
    standard_tree(builder)
    for path, wasm in programs.items():
        builder.add_file(path, wasm, 0o755)
    return builder.build()


def small_machine(image: FrozenTree, engine: WasmtimeEngine, uid: int) -> Machine:
    """A machine with tight limits, whose programs run as the given user."""
    machine = Machine(MachineOptions(limits=_LIMITS), image=image, engine=engine)
    machine.identity = Identity.of(uid, uid)
    return machine


def run_with_pipes(machine: Machine, program: bytes, seconds: float) -> None:
    stdin = b"some input\n" * 100
    machine.run(CommandRequest((program.decode(),), {"A": "1"}, "/tmp", seconds, stdin))


def run_on_a_terminal(machine: Machine, program: bytes, seconds: float) -> None:
    terminal = machine.open_terminal(CommandRequest((program.decode(), "x"), {}, "/tmp"))
    with suppress(KernelError):  # EPIPE: a short program has ended already
        terminal.write(b"some input\nhalf a line")
    terminal.wait(seconds)
    terminal.resize(10, 20)
    terminal.close()
    with machine.lock:
        machine.kernel.kill_all()


both_runs = pytest.mark.parametrize(
    "run", [run_with_pipes, run_on_a_terminal], ids=["pipes", "terminal"]
)
both_users = pytest.mark.parametrize("uid", [1000, 0], ids=["user", "root"])


def host_bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The errors that the host logged: each is a bug."""
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.ERROR]


def check_nothing_is_left(machine: Machine) -> None:
    """Killed processes have given back everything they held."""
    kernel = machine.kernel
    with machine.lock:
        kernel.kill_all()
        kept: dict[str, object] = {
            "processes": [process for process in kernel.processes if process.pid != 1],
            "terminals": kernel.terminals,
            "fifos": kernel.fifos,
            "locks": kernel.locks._inodes,
        }
    assert {name: what for name, what in kept.items() if what} == {}
