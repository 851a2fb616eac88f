"""The engine's own timings: `python -m tests.engine.measure`.

Prints the numbers that the engine's docstrings quote; medians of one run on this machine.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.engine.guests import call_host, forking, program
from tests.engine.hosts import Host, load, on_guest_thread
from tests.host_process import resident_bytes
from wasmsand.engine.protocol import Arguments, Instance
from wasmsand.engine.wasmtime.bindings import ffi
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

MIB = 1 << 20


def show(what: str, seconds: list[float]) -> None:
    print(f"{what:54} {statistics.median(seconds) * 1e6:9.2f} us  (least {min(seconds) * 1e6:.2f})")


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


class Answering(Host):
    """Answers at once, and records nothing."""

    def syscall(self, nr: int, arguments: Arguments) -> int:
        return 0


def repeated(body: str, times: int) -> str:
    return program(f"""(local $i i32) (loop $again {body}
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const {times}))))""")


def per_turn(engine: WasmtimeEngine, host: Host, body: str, times: int) -> list[float]:
    """Seconds per turn of a guest's loop, for several runs."""
    module, taken = load(engine, repeated(body, times)), []
    for _ in range(7):
        instance = module.instantiate(MIB)
        instance.bind(host)

        def run(instance: Instance = instance) -> None:
            taken.append(timed(instance.run) / times)

        assert on_guest_thread(engine, run) is None
        instance.close()
    return taken


def measure_calls(engine: WasmtimeEngine) -> None:
    host, call = Answering(engine), f"(drop {call_host('(i32.const 63)')})"
    handler, arguments = host.syscall, ffi.new("syscall_values_t *")
    show(
        "the Python handler alone",
        [timed(lambda: [handler(1, arguments) for _ in range(1000)]) / 1000 for _ in range(50)],
    )
    show("a system call, handler included", per_turn(engine, host, call, 50_000))

    class Interrupting(Answering):
        def syscall(self, nr: int, arguments: Arguments) -> int:
            engine.interrupt()
            return 0

        def tick(self) -> None:
            pass

    show(
        "a system call, an interrupt and a tick",
        per_turn(engine, Interrupting(engine), call, 20_000),
    )


def measure_instances(engine: WasmtimeEngine) -> None:
    data = "".join(
        f'(data (i32.const {65536 + page * 4096}) "{"abcdefgh" * 500}")' for page in range(500)
    )
    module = load(engine, program("", pages=50, more=data))
    before = resident_bytes()
    instances = [module.instantiate(64 * MIB) for _ in range(100)]
    print(f"{'resident memory of an idle instance':54} {(resident_bytes() - before) / 1e5:9.2f} KB")
    for instance in instances:
        instance.close()
    opened, closed = [], []
    for _ in range(500):
        started = time.perf_counter()
        instance = module.instantiate(64 * MIB)
        opened.append(time.perf_counter() - started)
        closed.append(timed(instance.close))
    show("instantiate, 2 MB of data", opened)
    show("close", closed)


def measure_forks(engine: WasmtimeEngine) -> None:
    class Timing(Answering):
        def fork_allowed(self) -> int:
            self.started = time.perf_counter()
            return 0

        def fork_child(self, child: Instance) -> int:
            taken.append(time.perf_counter() - self.started)
            child.close()
            return 5

    for written in (100_000, MIB, 3 * MIB):
        taken: list[float] = []
        fill = f"(memory.fill (i32.const 80000) (i32.const 1) (i32.const {written}))"
        module = load(engine, forking(forks=100, pages=50, before=fill))
        assert Timing(engine).run(module.instantiate(64 * MIB)) is None
        show(f"fork, 3.2 MB memory of which {written / 1e6:.1f} MB written", taken)


def measure_threads(engine: WasmtimeEngine) -> None:
    taken: list[float] = []
    ended = threading.Semaphore(0)
    for _ in range(500):
        started = time.perf_counter()

        def job(started: float = started) -> None:
            taken.append(time.perf_counter() - started)
            ended.release()

        engine.start_thread(job)
        ended.acquire()
        time.sleep(0.0002)
    show("hand-over to an idle thread", taken)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        engine = WasmtimeEngine(cache_directory=Path(folder, "modules"))
        measure_calls(engine)
        measure_instances(engine)
        measure_forks(engine)
        measure_threads(engine)
