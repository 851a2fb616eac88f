"""A guest whose Asyncify functions and signal entry misbehave.

The host calls the functions that a forking guest exports in the middle of a fork, and
`__signal_run` at any time. They may trap, fork again, exit, grow the memory, or lie about where
the saved frames are.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.abi.fuzz.guest import ALIVE
from tests.abi.fuzz.hostile_runs import host_bugs, image_with, seed_count
from tests.waiting import eventually
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.hostcalls import any_running
from wasmsand.kernel.limits import Limits
from wasmsand.machine import CommandRequest, Machine, MachineOptions

SEEDS = 32
BUFFER = 4096
MEMORY = 0x20000
SECONDS = 0.3


def _call(number: int, *words: int) -> str:
    padded = [number, *words, *[0] * (6 - len(words))]
    return f"(drop (call $syscall {' '.join(f'(i32.const {word})' for word in padded)}))"


def _store(address: int, *words: int) -> str:
    return " ".join(
        f"(i32.store (i32.const {address + 4 * i}) (i32.const {word}))"
        for i, word in enumerate(words)
    )


def _fork(address: int) -> str:
    return f"(drop (call $fork (i32.const {address})))"


ACTS = {
    "nothing": "",
    "trap": "(unreachable)",
    "divide": "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 0))))",
    "loop": "(loop $for_ever (br $for_ever))",
    "recurse": "(call $recurse)",
    "exit": _call(94, 3),
    "killed": _call(129, 0, 9),
    "stopped": _call(129, 0, 19),
    "sleep": _call(407, 1, 0, 64, 0),
    "vfork": _call(220, 0x4111),
    "vfork and exec": _call(220, 0x4111) + _call(221, 32, 0, 0),
    "exec": _call(221, 32, 0, 0),
    "fork": _fork(BUFFER),
    "fork nowhere": _fork(0xFFFF_FFFC),
    "fork at the end": _fork(MEMORY - 8),
    "grow": "(drop (memory.grow (i32.const 1)))",
    "grow much": "(drop (memory.grow (i32.const 60000)))",
    "empty buffer": _store(BUFFER, BUFFER + 8, BUFFER + 8),
    "good buffer": _store(BUFFER, BUFFER + 8, BUFFER + 4096),
    "buffer of everything": _store(BUFFER, 0, MEMORY),
    "buffer backwards": _store(BUFFER, BUFFER + 100, BUFFER),
    "buffer outside": _store(BUFFER, 0xFFFF_FFFF, 0xFFFF_FFFF),
    "stack outside": "(global.set $sp (i32.const 0xFFFFFFF0))",
    "stack at the end": f"(global.set $sp (i32.const {MEMORY}))",
    "stack at zero": "(global.set $sp (i32.const 0))",
    "signal itself": _call(134, 10, 80, 0, 8) + _call(129, 0, 10),
    "print": _call(64, 1, 32, 8),
}


def _some(random: Random, most: int) -> str:
    names = random.choices(list(ACTS), k=random.randrange(most + 1))
    return " ".join(ACTS[name] for name in names)


def hostile_guest(random: Random) -> str:
    """A module whose functions do random acts."""
    depth = random.choice((1, 100, 1_000_000))
    return f"""(module
      (import "linux" "syscall"
        (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (import "linux" "fork" (func $fork (param i32) (result i32)))
      (memory (export "memory") {MEMORY >> 16})
      (global $sp (export "__stack_pointer") (mut i32) (i32.const 65536))
      (global (export "__signal_flag") i32 (i32.const {random.choice((16, 0, MEMORY - 4))}))
      (global $depth (mut i32) (i32.const {depth}))
      (data (i32.const 32) "/usr/bin/other\\00")
      (data (i32.const 64) "\\00\\00\\00\\00\\00\\00\\00\\00\\40\\42\\0f")
      (data (i32.const 80) "\\10")
      (func $recurse
        (global.set $depth (i32.sub (global.get $depth) (i32.const 1)))
        (if (i32.gt_s (global.get $depth) (i32.const 0)) (then (call $recurse))))
      (func (export "asyncify_start_unwind") (param i32) {_some(random, 2)})
      (func (export "asyncify_stop_unwind") {_some(random, 2)})
      (func (export "asyncify_start_rewind") (param i32) {_some(random, 2)})
      (func (export "asyncify_stop_rewind") {_some(random, 2)})
      (func (export "asyncify_get_state") (result i32) (i32.const {random.randrange(4)}))
      (func (export "__signal_run") {_some(random, 2)})
      (func (export "_start")
        {ACTS["good buffer"]} {_some(random, 2)} {_fork(BUFFER)} {_some(random, 4)}))"""


@pytest.fixture
def new_machine(engine: WasmtimeEngine) -> Callable[[bytes], Machine]:
    """Makes machines with the given program."""
    other = wat_to_wasm(ALIVE)
    limits = Limits(max_processes=8, memory_limit_bytes=16 << 20)

    def make(program: bytes) -> Machine:
        image = image_with({b"/usr/bin/hostile": program, b"/usr/bin/other": other})
        return Machine(MachineOptions(limits=limits), image=image, engine=engine)

    return make


def threads_end() -> bool:
    """Wait until no thread of an ended process runs a guest; False if one still does."""
    return eventually(lambda: not any_running(), pause=0.001)


def test_hostile_forks_harm_neither_host_nor_sandbox(
    new_machine: Callable[[bytes], Machine], caplog: pytest.LogCaptureFixture
) -> None:
    for seed in range(seed_count(SEEDS)):
        machine = new_machine(wat_to_wasm(hostile_guest(Random(seed))))
        machine.run(CommandRequest(("hostile",), {}, "/tmp", timeout_seconds=SECONDS))
        with machine.lock:
            machine.kernel.kill_all()
            assert [p.pid for p in machine.kernel.processes] == [1], f"seed {seed}"
        result = machine.run(CommandRequest(("other",), {}, "/tmp", timeout_seconds=30))
        assert (result.exit_code, result.stdout) == (0, b"alive"), f"seed {seed}"
        machine.close()
        assert not host_bugs(caplog), f"seed {seed}"
        assert threads_end(), f"seed {seed}"
