"""The cost of a call in each guest ABI: `python -m bench.calls`.

Each small program exists twice, in WebAssembly text: as a guest of the Linux ABI and as a guest
of WASI preview 1. Rules: the cost of one call is the difference between 2N calls and N, so that
the program's start cancels out; times are CPU time of this whole process, which other load on the
machine hardly changes; both ABIs take turns, and the table shows medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.report import duration
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.files.opening import open_path
from wasmsand.kernel.flags import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions

_NUMBERS = {
    "yield": CallNumber.SCHED_YIELD,
    "time": CallNumber.CLOCK_GETTIME64,
    "write": CallNumber.WRITE,
    "read": CallNumber.READ,
    "open": CallNumber.OPENAT,
    "close": CallNumber.CLOSE,
}
_TURNS = 20_000
_COPIED_BYTES = 64 << 20
_BUFFER, _BUFFER_BYTES = 131072, 65536
_PATH, _VECTOR, _RESULT = 1024, 1040, 1056


def _linux(name: str, *words: int | str) -> str:
    padded = [_NUMBERS[name], *words, *[0] * (6 - len(words))]
    texts = [word if isinstance(word, str) else f"(i32.const {word})" for word in padded]
    return f"(call $syscall {' '.join(texts)})"


def _linux_module(start: str) -> str:
    return f"""(module
      (import "linux" "syscall" (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 4)
      (global (export "__stack_pointer") (mut i32) (i32.const 512))
      (data (i32.const {_PATH}) "/tmp/f\\00")
      (func (export "_start") (local $i i32) (local $n i32) {start}))"""


def _wasi_module(start: str) -> str:
    return f"""(module
      (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
      (import "wasi_snapshot_preview1" "clock_time_get"
        (func $time (param i32 i64 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_write"
        (func $write (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_read"
        (func $read (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
      (memory (export "memory") 4)
      (data (i32.const {_PATH}) "tmp/f")
      (func (export "_start") (local $i i32) (local $n i32) {start}))"""


def _set_vector(size: int | str) -> str:
    length = size if isinstance(size, str) else f"(i32.const {size})"
    return (
        f"(i32.store (i32.const {_VECTOR}) (i32.const {_BUFFER}))"
        f"(i32.store (i32.const {_VECTOR + 4}) {length})"
    )


def _moving(name: str, fd: int) -> str:
    return (
        f"(call ${name} (i32.const {fd}) (i32.const {_VECTOR}) (i32.const 1) (i32.const {_RESULT}))"
    )


_WASI_OPEN = f"""
  (drop (call $open (i32.const 4) (i32.const 1) (i32.const {_PATH}) (i32.const 5) (i32.const 0)
    (i64.const 2) (i64.const 0) (i32.const 0) (i32.const {_RESULT})))
  (drop (call $close (i32.load (i32.const {_RESULT}))))"""
_WASI_TIME = f"(drop (call $time (i32.const 1) (i64.const 1) (i32.const {_RESULT})))"
_LINUX_OPEN = (
    f"(local.set $n {_linux('open', -100, _PATH)})(drop {_linux('close', '(local.get $n)')})"
)

CALLS: dict[str, tuple[str, str]] = {
    "a call that does nothing": (f"(drop {_linux('yield')})", "(drop (call $yield))"),
    "the time": (f"(drop {_linux('time', 1, _RESULT)})", _WASI_TIME),
    "write a byte to /dev/null": (
        f"(drop {_linux('write', 1, _BUFFER, 1)})",
        f"(drop {_moving('write', 1)})",
    ),
    "read a byte of /dev/zero": (
        f"(drop {_linux('read', 0, _BUFFER, 1)})",
        f"(drop {_moving('read', 0)})",
    ),
    "open and close a file": (_LINUX_OPEN, _WASI_OPEN),
}
"""Each call as statements for the Linux ABI and for WASI."""


def _repeated(body: str, turns: int) -> str:
    return f"""{_set_vector(1)} (loop $again {body}
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const {turns}))))"""


def _linux_copy(size: int) -> str:
    return f"""(block $end (loop $again
      (local.set $n {_linux("read", 0, _BUFFER, size)})
      (br_if $end (i32.le_s (local.get $n) (i32.const 0)))
      (drop {_linux("write", 1, _BUFFER, "(local.get $n)")}) (br $again)))"""


def _wasi_copy(size: int) -> str:
    return f"""(block $end (loop $again
      {_set_vector(size)} (drop {_moving("read", 0)})
      (local.set $n (i32.load (i32.const {_RESULT})))
      (br_if $end (i32.eqz (local.get $n)))
      {_set_vector("(local.get $n)")} (drop {_moving("write", 1)}) (br $again)))"""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the figure of each ABI, and WASI's cost divided by Linux's."""

    name: str
    linux: str
    wasi: str
    ratio: float


class Bench:
    """A machine with the programs to measure."""

    def __init__(self, cache: Path) -> None:
        self._programs: dict[str, bytes] = {}
        self._engine = WasmtimeEngine(cache_directory=cache)
        self._builder = ImageBuilder()
        standard_tree(self._builder)
        self._builder.add_file(b"/tmp/f", b"", 0o644)
        self._machine: Machine | None = None

    def add(self, name: str, wat: str) -> None:
        self._builder.add_file(b"/usr/bin/" + name.encode(), wat_to_wasm(wat), 0o755)

    def seconds(self, name: str, source: str, target: str) -> float:
        """CPU seconds of one run, with these files as standard input and output."""
        if self._machine is None:
            limits = Limits(fs_limit_bytes=1 << 30)
            self._machine = Machine(
                MachineOptions(limits=limits), image=self._builder.build(), engine=self._engine
            )
            self._machine.files.write("/tmp/bulk", bytes(_COPIED_BYTES))
        return run_between(self._machine, name, source, target)


def run_between(machine: Machine, name: str, source: str, target: str) -> float:
    """CPU seconds of a program that runs with these standard files."""
    ended = threading.Event()
    with machine.lock:
        opener = machine.kernel.new_process(machine.identity, machine.kernel.namespace.root, ())
        root = machine.kernel.namespace.root
        given = open_path(machine.kernel, opener.first_thread, root, source.encode(), O_RDONLY, 0)
        flags = O_WRONLY | O_CREAT | O_TRUNC
        taken = open_path(machine.kernel, opener.first_thread, root, target.encode(), flags, 0o644)
        machine.kernel.exit(opener, 0)
    before = time.process_time()
    files = {0: given, 1: taken, 2: taken}
    request = CommandRequest((name,), {}, "/tmp")
    machine.make_process(request, files, ended.set).run_on_pool()
    ended.wait()
    return time.process_time() - before


def measure(rounds: int, say: Callable[[str], None]) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for number, bodies in enumerate(CALLS.values()):
            for abi, module, body in zip("lw", (_linux_module, _wasi_module), bodies, strict=True):
                for turns in (1, 2):
                    wat = module(_repeated(body, turns * _TURNS))
                    bench.add(f"{abi}{number}-{turns}", wat)
        for size in (4096, _BUFFER_BYTES):
            bench.add(f"l-copy-{size}", _linux_module(_linux_copy(size)))
            bench.add(f"w-copy-{size}", _wasi_module(_wasi_copy(size)))
        rows = []
        for number, name in enumerate(CALLS):
            say(name)
            rows.append(_call_row(bench, name, number, rounds))
        for size in (4096, _BUFFER_BYTES):
            say(f"copy {size} bytes at a time")
            rows.append(_copy_row(bench, size, rounds))
        return rows


def _call_row(bench: Bench, name: str, number: int, rounds: int) -> Row:
    source, target = "/dev/zero", "/dev/null"
    times: dict[str, list[float]] = {"l": [], "w": []}
    for abi in times:
        bench.seconds(f"{abi}{number}-1", source, target)  # compile and warm up
    for _ in range(rounds):
        for abi, found in times.items():
            once = bench.seconds(f"{abi}{number}-1", source, target)
            twice = bench.seconds(f"{abi}{number}-2", source, target)
            found.append(max(twice - once, 0.0) / _TURNS)
    linux, wasi = (statistics.median(found) for found in times.values())
    return Row(name, duration(linux), duration(wasi), wasi / linux)


def _copy_row(bench: Bench, size: int, rounds: int) -> Row:
    times: dict[str, list[float]] = {"l": [], "w": []}
    for _ in range(rounds):
        for abi, found in times.items():
            found.append(bench.seconds(f"{abi}-copy-{size}", "/tmp/bulk", "/tmp/copied"))
    linux, wasi = (statistics.median(found) for found in times.values())
    name = f"copy a file, {size // 1024} KiB at a time"
    return Row(name, _rate(linux), _rate(wasi), wasi / linux)


def _rate(seconds: float) -> str:
    return f"{_COPIED_BYTES / 1e6 / seconds:.0f} MB/s"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.calls", description="The cost of calls by both guest ABIs."
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args(argv)
    with Console(stderr=True).status("") as status:
        rows = measure(options.rounds, lambda name: status.update(f"measuring: {name}"))
    cells = [(row.name, row.linux, row.wasi, f"{row.ratio:.2f}x") for row in rows]
    if options.markdown:
        print("| | Linux ABI | WASI | ratio |\n|---|--:|--:|--:|")
        for line in cells:
            print(f"| {' | '.join(line)} |")
        return 0
    table = Table(title="calls by both ABIs, CPU time, medians", title_justify="left")
    for heading in ("", "Linux ABI", "WASI", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for line in cells:
        table.add_row(*line)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
