"""Programs that guests bring: the cost of a first run, and the modules that cost most to compile.

`python -m bench.compiling [shapes]` prints the first run of a 10 KB WASI program: compiled in
this process, compiled by an idle worker, compiled by a worker that must be started, and loaded
from the cache. With `shapes` it compiles modules of many shapes instead, each in a worker without
limits on shape, and prints CPU time and size. Rule: first runs are wall-clock time, because a
user waits for them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.engine.bombs import BLOCK, BOMBS, END, IF, LOOP, increments, module, nested
from tests.engine.orders import NO_LIMITS, order
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.compile_pool import shared_pool
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.worker_process import MODE_VARIABLE
from wasmsand.kernel.limits import MIB
from wasmsand.kernel.vfs import ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine

_RUNS = 20
_SHAPES = {
    "5,300 loops in a row": module((LOOP + END) * 5300),
    "20,000 loops in a row": module((LOOP + END) * 20_000),
    "20,000 nested blocks": module(nested(BLOCK, 20_000)),
    "100 loops over 10,000 locals": module(
        nested(LOOP, 100, increments(10_000)), local_count=10_000
    ),
    "44,000 branches": module((b"\x20\0" + IF + b"\x41\1\x21\0" + END) * 44_000, local_count=1),
    "1,000 functions of 50,000 locals": module(*[b""] * 1000, local_count=50_000),
} | {name: wasm for name, (wasm, _) in BOMBS.items()}


def _program(number: int) -> bytes:
    functions = "".join(
        f"""(func $f{i} (param i32 i32) (result i32) (local i32 i32)
          (loop $again
            (local.set 2 (i32.add (i32.mul (local.get 2) (i32.const {i * 7919 + number}))
              (i32.load offset={i * 4} (i32.and (local.get 0) (i32.const 1023)))))
            (if (i32.gt_s (local.get 2) (local.get 1))
              (then (i32.store (i32.and (local.get 1) (i32.const 4092)) (local.get 2))
                (local.set 3 (i32.xor (local.get 2) (local.get 0))))
              (else (local.set 3 (i32.shl (local.get 3) (i32.const 3)))))
            (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
            (br_if $again (i32.gt_s (local.get 0) (i32.const 0))))
          (i32.add (local.get 2) (local.get 3)))"""
        for i in range(110)
    )
    return wat_to_wasm(f"""(module
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1) {functions}
      (func (export "_start")
        (drop (call $f1 (i32.const 3) (i32.const 4))) (call $exit (i32.const 0))))""")


def _first_runs(machine: Machine, before: Callable[[], None], numbers: range) -> None:
    seconds = []
    for number in numbers:
        machine.files.write("/tmp/p", _program(number), mode=0o755)
        before()
        began = time.perf_counter()
        completed = machine.run(CommandRequest(("/tmp/p",), {}, "/"))
        seconds.append(time.perf_counter() - began)
        assert completed.exit_code == 0
    print(f"{statistics.median(seconds) * 1e3:.1f} ms (best {min(seconds) * 1e3:.1f})")


def _runs(engine: WasmtimeEngine) -> None:
    builder = ImageBuilder()
    standard_tree(builder)
    machine = Machine(image=builder.build(), engine=engine)
    print(f"first run of a {len(_program(0))}-byte WASI program, median of {_RUNS} runs")
    os.environ[MODE_VARIABLE] = "in-process"
    print("compiled in this process: ", end="")
    _first_runs(machine, lambda: None, range(_RUNS))
    del os.environ[MODE_VARIABLE]
    print("compiled by a worker that must be started: ", end="")
    _first_runs(machine, shared_pool().end_idle_now, range(100, 100 + _RUNS))
    print("compiled by an idle worker: ", end="")
    _first_runs(machine, lambda: None, range(200, 200 + _RUNS))
    print("loaded from the cache: ", end="")
    _first_runs(machine, lambda: None, range(200, 200 + _RUNS))
    machine.close()


def _shapes(engine: WasmtimeEngine) -> None:
    for name, wasm in _SHAPES.items():
        wanted = order(wasm, shape=NO_LIMITS, cpu_seconds=60, memory_bytes=2048 * MIB)
        try:
            engine.compile_apart(wanted)
            outcome = ""
        except ModuleRejected as rejected:
            outcome = f": {rejected}"
        print(f"{name}: {len(wasm)} bytes, {wanted.cpu_seconds:.2f} s{outcome}")


def main() -> None:
    """Measure first runs, or shapes."""
    with tempfile.TemporaryDirectory() as cache:
        engine = WasmtimeEngine(cache_directory=Path(cache))
        if sys.argv[1:] == ["shapes"]:
            _shapes(engine)
        else:
            _runs(engine)


if __name__ == "__main__":
    main()
