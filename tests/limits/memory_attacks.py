"""Guests that try to hold more memory than they may, each in a host process of its own.

`python -m tests.limits.memory_attacks NAME` runs one of `ATTACKS` and prints, as JSON, by how much
the resident memory of the host's process grew and what the sandbox's ledger says. `measure` does
that for a test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.engine.guests import forking
from tests.engine.hosts import load
from tests.host_process import resident_bytes, watched_peak
from tests.machine.guests import (
    CLONE,
    EXECVE,
    GETPID,
    KILL,
    LONG_TIME,
    NANOSLEEP,
    READ,
    ROOM,
    WAIT4,
    call,
    do,
    grow,
    new_machine,
    program,
    sleep_for_ever,
    text,
    words,
)
from tests.waiting import eventually
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.machine import CommandRequest, Machine

REPOSITORY = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMIT = 64 * MIB
PAGES = 16
"""How many WebAssembly pages are in a MiB."""
SIGSTOP, SIGKILL = 19, 9
OPENAT = CallNumber.OPENAT
SLEEP = sleep_for_ever()
PATH = 256
THREAD_FLAGS = 0x10000 | 0x800 | 0x400 | 0x200 | 0x100
TWELVE_THREADS = f"""(loop $again
  {do(CLONE, THREAD_FLAGS, 4096)}
  (local.set $n (i32.add (local.get $n) (i32.const 1)))
  (br_if $again (i32.lt_u (local.get $n) (i32.const 12))))"""
"""Statements that start twelve threads; each begins in `__thread_start`."""


def fill(start: int, size: int) -> str:
    """Fill a range, as far as the memory reaches."""
    return f"""(memory.fill (i32.const {start}) (i32.const 1)
      (select (i32.const {size})
        (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const {start}))
        (i32.le_u (i32.const {start + size}) (i32.shl (memory.size) (i32.const 16)))))"""


def grow_and_fill(mebibytes: int) -> str:
    return grow(mebibytes) + fill(65536, mebibytes * MIB)


def spawn(path: int = PATH) -> str:
    """A statement: vfork and exec; `$n` is the child's pid."""
    return f"""(local.set $n {call(CLONE, 0x4111)})
      (if (i32.eqz (local.get $n)) (then (local.set $n {call(EXECVE, path, 0, 0)})))"""


def recursion(levels: int, bottom: str) -> str:
    """A function `$deep` with frames of some 200 bytes."""
    kept = " ".join(f"(local $k{i} i64)" for i in range(20))
    load = " ".join(
        f"(local.set $k{i} (i64.load (i32.add (local.get $l) (i32.const {8 * i}))))"
        for i in range(20)
    )
    store = " ".join(f"(i64.store (i32.const {ROOM + 8 * i}) (local.get $k{i}))" for i in range(20))
    return f"""(func $deep (param $l i32) {kept} {load}
      (if (i32.ge_u (local.get $l) (i32.const {levels})) (then {bottom})
        (else (call $deep (i32.add (local.get $l) (i32.const 1))))) {store})"""


def throwing(times: int) -> str:
    """Throw exceptions of some 800 bytes each, and keep them."""
    values = " ".join("(i64.const 1)" for _ in range(100))
    return f"""(loop $again
      (table.set $kept (local.get $n) (block $caught (result exnref)
        (try_table (catch_all_ref $caught) (throw $oops {values})) (unreachable)))
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $n) (i32.const {times}))))"""


ZERO_FILE = text(PATH, "/dev/zero")
SOON = words(224, 0, 0, 300_000_000, 0)
"""The time of a sleep of 300 ms."""
DEVICE = f"(local.set $n {call(OPENAT, -100, PATH, 0, 0)})"
HOLD = program(grow_and_fill(40), SLEEP, more=LONG_TIME)


@dataclass(frozen=True)
class Attack:
    """Start `copies` of a program, which can start `others` by name."""

    wat: str
    copies: int = 24
    others: tuple[tuple[str, str], ...] = ()


ATTACKS: dict[str, Attack] = {
    "grow, read, block": Attack(
        program(DEVICE, grow(48), do(READ, "(local.get $n)", 65536, 48 * MIB), SLEEP,
                more=ZERO_FILE + LONG_TIME)
    ),
    "grow, fill, block": Attack(program(grow_and_fill(48), SLEEP, more=LONG_TIME)),
    "grow and fill after a sleep, all at once": Attack(
        program(do(NANOSLEEP, 1, 0, 224, 0), grow_and_fill(48), SLEEP, more=SOON + LONG_TIME)
    ),
    "grow, fill, stop": Attack(
        program(grow_and_fill(48), do(KILL, call(GETPID), SIGSTOP), SLEEP, more=LONG_TIME)
    ),
    "grow and fill step by step": Attack(
        program(f"""(loop $again {grow(1)}
          (memory.fill (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const {MIB}))
            (i32.const 1) (i32.const {MIB}))
          (local.set $n (i32.add (local.get $n) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $n) (i32.const 50))))""",
                SLEEP, more=LONG_TIME, pages=17)
    ),
    "the C stack": Attack(
        f"""(module (import "linux" "syscall"
            (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 257)
          (global (export "__stack_pointer") (mut i32) (i32.const {16 * MIB}))
          {LONG_TIME}
          (func (export "_start") {fill(4096, 16 * MIB - 8192)} {SLEEP}))"""
    ),
    "tables": Attack(
        program(
            """(table.fill $a (i32.const 0) (ref.func $f) (i32.const 131072))
            (table.fill $b (i32.const 0) (ref.func $f) (i32.const 131072))""",
            SLEEP,
            more=LONG_TIME + """(table $a 131072 funcref) (table $b 131072 funcref)
              (func $f) (elem declare func $f)""",
        ),
        copies=60,
    ),
    "tables that grow": Attack(
        program(
            """(loop $again (br_if $again (i32.ge_s
              (table.grow $a (ref.func $f) (i32.const 1000)) (i32.const 0))))""",
            SLEEP, more=LONG_TIME + "(table $a 1 funcref) (func $f) (elem declare func $f)",
        ),
        copies=60,
    ),
    "deep recursion, block at the bottom": Attack(
        program("(call $deep (i32.const 0))", more=LONG_TIME + recursion(50_000, SLEEP))
    ),
    "deep recursion, return, block": Attack(
        program("(call $deep (i32.const 0))", SLEEP, more=LONG_TIME + recursion(50_000, ""))
    ),
    "recursion without end": Attack(
        program("(call $deep (i32.const 0))", more=recursion(1 << 30, "")), copies=48
    ),
    "threads with deep recursion": Attack(
        program(
            TWELVE_THREADS,
            SLEEP,
            more=LONG_TIME + recursion(50_000, SLEEP)
            + """(func (export "__thread_start") (param i32) (call $deep (i32.const 0)))""",
        ),
        copies=3,
    ),
    "exceptions that are kept": Attack(
        program(throwing(20_000), SLEEP, more=LONG_TIME
                + f"(tag $oops (param {'i64 ' * 100})) (table $kept 20000 exnref)")
    ),
    "exceptions of threads": Attack(
        program(
            TWELVE_THREADS,
            SLEEP,
            more=LONG_TIME
            + f"(tag $oops (param {'i64 ' * 100})) (table $kept 20000 exnref)"
            + f"""(func (export "__thread_start") (param i32) (local $n i32)
              {throwing(20_000)} {SLEEP})""",
        ),
        copies=3,
    ),
    "a chain of vfork and exec": Attack(
        program(grow_and_fill(12), spawn(), do(WAIT4, -1, ROOM, 0, 0), SLEEP,
                more=text(PATH, "/usr/bin/attack") + LONG_TIME),
        copies=1,
    ),
    "exec of itself for ever": Attack(
        program(grow_and_fill(40), do(EXECVE, PATH, 0, 0), SLEEP,
                more=text(PATH, "/usr/bin/attack") + LONG_TIME),
        copies=8,
    ),
    "children that are killed at once": Attack(
        program(
            f"""(loop $again {spawn()}
              {do(NANOSLEEP, 1, 0, 224, 0)}
              {do(KILL, "(local.get $n)", SIGKILL)} (br $again))""",
            more=text(PATH, "/usr/bin/hold") + words(224, 0, 0, 20_000_000, 0),
        ),
        copies=4,
        others=(("hold", HOLD),),
    ),
    "a tree of forks": Attack(
        forking(forks=5, pages=2, before=grow(10) + fill(131072, 10 * MIB)), copies=2
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """In bytes: `peak_*` are the highest values; `resident` and `used` are those at rest."""

    peak_resident: int
    peak_used: int
    resident: int
    used: int
    left: int
    """What the ledger holds after the end of the sandbox."""
    left_resident: int
    started: int
    """How many copies could be started."""


def _rests(machine: Machine) -> bool:
    """Whether every process waits, or has ended and is freed."""
    with machine.lock:
        processes = [p for p in machine.kernel.processes if p is not machine.kernel.init]
        machine.kernel.memory_used()
        ledger = machine.kernel.ledger
        return (
            not ledger.shared
            and not ledger.dying
            and all(
                thread.state in (ProcessState.SLEEPING, ProcessState.STOPPED)
                for process in processes
                for thread in process.threads
            )
        )


def run_attack(attack: Attack, seconds: float = 2.5) -> Measured:
    """Run an attack in this process."""
    with tempfile.TemporaryDirectory() as cache:
        engine = WasmtimeEngine(cache_directory=Path(cache, "modules"))
        programs = {"attack": wat_to_wasm(attack.wat)}
        programs |= {name: wat_to_wasm(wat) for name, wat in attack.others}
        for wasm in programs.values():
            load(engine, wasm)
        machine = new_machine(engine, Limits(memory_limit_bytes=LIMIT), **programs)
        ledger = machine.kernel.ledger
        machine.run(CommandRequest(("ok",), {}, "/"))
        before = resident_bytes()
        with watched_peak() as peak:
            started = 0
            for _ in range(attack.copies):
                try:
                    machine.start(CommandRequest(("attack",), {}, "/"))
                    started += 1
                except KernelError:
                    pass  # no room
            time.sleep(seconds / 5)
            eventually(lambda: _rests(machine), seconds)
            with machine.lock:
                used = machine.kernel.memory_used()
            resident = resident_bytes()
            machine.close()
            eventually(lambda: _used_after(machine) == 0, 20.0)
        return Measured(
            peak.resident_bytes - before,
            ledger.peak,
            resident - before,
            used,
            _used_after(machine),
            resident_bytes() - before,
            started,
        )


def _used_after(machine: Machine) -> int:
    with machine.lock:
        return machine.kernel.memory_used()


def measure(name: str) -> Measured:
    """Run an attack in a host process of its own."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.limits.memory_attacks", name],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY / 'src'}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return Measured(**json.loads(ran.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(asdict(run_attack(ATTACKS[sys.argv[1]]))))
