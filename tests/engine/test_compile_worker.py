"""Another process compiles the modules of guests: limited, cancellable, cached."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.background import Running
from tests.engine.bombs import BOMBS, FAT, SLOW, module, section, slow
from tests.engine.guests import program
from tests.engine.hosts import Host
from tests.engine.orders import NO_LIMITS, order
from tests.engine.processes import alive, compilers, descendants
from tests.waiting import wait_until
from wasmsand.engine.compile_orders import (
    CompileCancelled,
    CompileOrder,
    CompileTooCostly,
    CompileUnavailable,
)
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime import apart, compile_pool
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.compile_pool import CompilePool
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.kernel.limits import MIB

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
WASM = wat_to_wasm(program("nop"))
PATIENCE = 60.0


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[CompilePool]:
    """The pool of the test's engines, with one worker; it leaves no process behind."""
    pool = CompilePool(1)
    monkeypatch.setattr(apart, "shared_pool", lambda: pool)
    before = descendants()
    yield pool
    pool.end_idle_now()
    wait_until(lambda: descendants() <= before, "a worker was left behind")


@pytest.fixture
def engine(pool: CompilePool, tmp_path: Path) -> WasmtimeEngine:
    return WasmtimeEngine(cache_directory=tmp_path)


def variant(number: int) -> bytes:
    return WASM + section(0, b"\1" + bytes([number]))


class Compiling(Running[WasmtimeModule]):
    """A compilation on a thread of its own."""

    def __init__(self, engine: WasmtimeEngine, wanted: CompileOrder) -> None:
        self.order = wanted
        super().__init__(lambda: engine.compile_apart(wanted))

    def cancel(self) -> object:
        """Cancel the compilation; returns its result, or what it raised."""
        self.order.cancellation.cancel()
        return self.wait()


def start_slow(engine: WasmtimeEngine, number: int = 0, **more: object) -> tuple[Compiling, int]:
    """A compilation that takes long, and the process that compiles."""
    before = compilers()
    compiling = Compiling(engine, order(slow(number), shape=NO_LIMITS, **more))  # type: ignore[arg-type]
    wait_until(lambda: compilers() - before or compiling.results)
    (compiler,) = compilers() - before
    return compiling, compiler


def start_waiting(
    engine: WasmtimeEngine, pool: CompilePool, *orders: CompileOrder
) -> list[Compiling]:
    """Compilations that wait for a worker."""
    waiting = [Compiling(engine, wanted) for wanted in orders]
    wait_until(lambda: pool.waiting() == len(waiting))
    return waiting


def test_a_module_compiled_apart_runs_and_is_cached(engine: WasmtimeEngine, tmp_path: Path) -> None:
    wanted = order(WASM)
    compiled = engine.compile_apart(wanted)
    assert wanted.begun
    assert 0 < wanted.cpu_seconds < 20
    assert Host(engine).run(compiled.instantiate(1 << 20)) is None
    again, other = order(WASM), WasmtimeEngine(cache_directory=tmp_path)
    assert Host(other).run(other.compile_apart(again).instantiate(1 << 20)) is None
    assert not again.begun


def test_without_a_directory_modules_are_compiled_apart_too(
    pool: CompilePool, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    engine = WasmtimeEngine(cache_directory=tmp_path / "file" / "modules")
    module = engine.compile_apart(order(WASM))
    assert Host(engine).run(module.instantiate(1 << 20)) is None


def test_a_worker_is_used_again_after_a_success_and_ends_when_idle(
    engine: WasmtimeEngine, pool: CompilePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_pool, "IDLE_SECONDS", 0.5)
    before = descendants()
    engine.compile_apart(order(variant(1)))
    (worker,) = descendants() - before
    engine.compile_apart(order(variant(2)))
    assert descendants() - before <= {worker}
    with pytest.raises(ModuleRejected):
        engine.compile_apart(order(b"\0asm broken"))
    wait_until(lambda: not alive(worker), "an idle worker does not end")


def test_a_worker_that_failed_is_not_used_again(engine: WasmtimeEngine, pool: CompilePool) -> None:
    before = descendants()
    engine.compile_apart(order(variant(1), shape=NO_LIMITS))
    (worker,) = descendants() - before
    with pytest.raises(CompileTooCostly):
        engine.compile_apart(order(FAT, shape=NO_LIMITS, memory_bytes=200 * MIB))
    assert not alive(worker)
    engine.compile_apart(order(variant(2)))


def test_processor_time_is_limited(engine: WasmtimeEngine) -> None:
    wanted = order(SLOW, shape=NO_LIMITS, cpu_seconds=1)
    with pytest.raises(CompileTooCostly, match="more than 1 s of processor time") as raised:
        engine.compile_apart(wanted)
    assert raised.value.of_time
    assert 0.5 < wanted.cpu_seconds < 5


def test_memory_is_limited(engine: WasmtimeEngine) -> None:
    with pytest.raises(CompileTooCostly, match="more than 209715200 bytes of memory") as raised:
        engine.compile_apart(order(FAT, shape=NO_LIMITS, memory_bytes=200 * MIB))
    assert not raised.value.of_time


def test_the_size_of_the_result_is_limited(engine: WasmtimeEngine, tmp_path: Path) -> None:
    with pytest.raises(CompileTooCostly, match="compiles to more than 5000 bytes"):
        engine.compile_apart(order(WASM, output_bytes=5000))
    assert not list((tmp_path / "guests").iterdir())


def test_nothing_of_a_rejected_module_is_cached_and_it_is_not_compiled_again(
    engine: WasmtimeEngine, tmp_path: Path
) -> None:
    missing = wat_to_wasm(
        '(module (import "env" "teleport" (func)) (memory (export "memory") 1)'
        ' (func (export "_start")))'
    )
    for wasm, reason in (
        (missing, "env.teleport"),
        (BOMBS["nested loops"][0], "nested loops"),
        (b"\0asm\1\0\0\0\x01", "not a module this engine can run"),
    ):
        for begun in (True, False):
            wanted = order(wasm)
            with pytest.raises(ModuleRejected, match=reason):
                engine.compile_apart(wanted)
            assert wanted.begun is begun
    assert not list((tmp_path / "guests").iterdir())


def test_a_module_that_only_its_sandbox_could_not_afford_is_tried_again(
    engine: WasmtimeEngine,
) -> None:
    for _ in range(2):
        wanted = order(SLOW, shape=NO_LIMITS, cpu_seconds=1)
        wanted.limited_by_module = False
        with pytest.raises(CompileTooCostly):
            engine.compile_apart(wanted)
        assert wanted.begun


def test_remembered_rejections_are_bounded(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "REJECTIONS_MAX", 2)
    for number in (1, 2, 3, 1):
        wanted = order(b"\0asm broken" + bytes([number]))
        with pytest.raises(ModuleRejected):
            engine.compile_apart(wanted)
        assert wanted.begun


def test_a_compilation_is_ended_at_once(engine: WasmtimeEngine, pool: CompilePool) -> None:
    compiling, compiler = start_slow(engine)
    started = time.monotonic()
    assert isinstance(compiling.cancel(), CompileCancelled)
    assert time.monotonic() - started < 10
    assert not alive(compiler)
    assert not compilers()
    assert compiling.order.cpu_seconds > 0
    engine.compile_apart(order(WASM))


def test_a_cancelled_compilation_never_begins(engine: WasmtimeEngine) -> None:
    running, _ = start_slow(engine)
    waiting = Compiling(engine, order(slow(1), shape=NO_LIMITS))
    cancelled = order(WASM)
    cancelled.cancellation.cancel()
    with pytest.raises(CompileCancelled):
        engine.compile_apart(cancelled)
    assert isinstance(waiting.cancel(), CompileCancelled)
    assert not waiting.order.begun
    assert not cancelled.begun
    running.cancel()


def test_the_sandbox_that_used_least_goes_first(engine: WasmtimeEngine, pool: CompilePool) -> None:
    running, _ = start_slow(engine)
    begun: list[float] = []

    def compile(priority: float, number: int) -> None:
        def pieces() -> Iterator[bytes]:
            begun.append(priority)
            yield variant(number)

        engine.compile_apart(order(variant(number), priority=priority, pieces=pieces))

    threads = []
    for number, priority in enumerate((9.0, 5.0, 7.0, 0.0)):
        threads.append(threading.Thread(target=compile, args=(priority, number)))
        threads[-1].start()
        wait_until(lambda: pool.waiting() == len(threads))
    running.order.cancellation.cancel()
    for thread in threads:
        thread.join(PATIENCE)
    assert begun == [0.0, 5.0, 7.0, 9.0]


def test_a_small_module_does_not_wait_for_a_large_one(engine: WasmtimeEngine) -> None:
    running, _ = start_slow(engine)
    assert (
        Host(engine).run(engine.compile_apart(order(WASM, small=True)).instantiate(1 << 20)) is None
    )
    assert not running.results
    running.cancel()


def test_a_full_queue_refuses_further_compilations(
    engine: WasmtimeEngine, pool: CompilePool
) -> None:
    running, _ = start_slow(engine)
    (waiting,) = start_waiting(engine, pool, order(variant(1), queue=1))
    with pytest.raises(CompileUnavailable, match="1 programs wait"):
        engine.compile_apart(order(variant(2), queue=1))
    for each in (running, waiting):
        each.cancel()


def test_a_module_that_is_being_compiled_serves_all_who_wait_for_it(
    engine: WasmtimeEngine, pool: CompilePool
) -> None:
    running, _ = start_slow(engine)
    both = start_waiting(engine, pool, order(WASM), order(WASM))
    running.order.cancellation.cancel()
    first, second = (each.result() for each in both)
    assert first is second
    assert sorted(each.order.begun for each in both) == [False, True]


def test_a_module_that_cannot_be_read_ends_its_compilation(
    engine: WasmtimeEngine, pool: CompilePool
) -> None:
    def failing() -> Iterator[bytes]:
        yield WASM[:20]
        raise LookupError("changed")

    before = descendants()
    with pytest.raises(LookupError):
        engine.compile_apart(order(WASM, pieces=failing))
    assert descendants() <= before


def test_the_process_that_compiles_is_confined(engine: WasmtimeEngine) -> None:
    os.environ["SECRET_OF_THE_HOST"] = "x"
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    try:
        compiling, compiler = start_slow(engine, cpu_seconds=7, memory_bytes=300 * MIB)
        proc = Path(f"/proc/{compiler}")
        limits = (proc / "limits").read_text()
        assert sorted(path.name for path in (proc / "fd").iterdir()) == ["0", "1", "2"]
        assert b"SECRET" not in (proc / "environ").read_bytes()
        assert b"HOME=" not in (proc / "environ").read_bytes()
        assert "NoNewPrivs:\t1" in (proc / "status").read_text()
        assert os.readlink(proc / "cwd") == "/"
        for name, value in (
            ("Max cpu time", 7),
            ("Max address space", 300 * MIB),
            ("Max data size", 300 * MIB),
            ("Max core file size", 0),
            ("Max file size", 0),
            ("Max open files", 0),
        ):
            (line,) = [line for line in limits.splitlines() if line.startswith(name)]
            assert line[26:].split()[0] == str(value), line
        assert os.getpriority(os.PRIO_PROCESS, compiler) >= 5
        compiling.cancel()
    finally:
        del os.environ["SECRET_OF_THE_HOST"]
        os.close(read_end)
        os.close(write_end)


def in_another_host(code: str, tmp_path: Path) -> subprocess.Popen[str]:
    """A host process that runs `code`, with an `engine`."""
    prologue = f"""
        import os, sys, threading, time
        from pathlib import Path
        from tests.engine.bombs import slow, harmless
        from tests.engine.orders import NO_LIMITS, order
        from wasmsand.engine.wasmtime.engine import WasmtimeEngine
        def new_engine():
            return WasmtimeEngine(cache_directory=Path({str(tmp_path)!r}))
        engine = new_engine()
        """
    source = textwrap.dedent(prologue) + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_workers_end_with_their_host(tmp_path: Path, number: int) -> None:
    with in_another_host("engine.compile_apart(order(slow(0), shape=NO_LIMITS))", tmp_path) as host:
        wait_until(lambda: len(descendants(host.pid)) >= 2)
        workers = descendants(host.pid)
        host.send_signal(number)
        host.wait(PATIENCE)
        wait_until(lambda: not any(map(alive, workers)), "a worker outlived its host")


def test_a_forked_host_has_workers_of_its_own(tmp_path: Path) -> None:
    code = """
        engine.compile_apart(order(harmless(1)))
        child = os.fork()
        if not child:
            new_engine().compile_apart(order(harmless(2)))
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        engine.compile_apart(order(harmless(3)))
        print("done")
        """
    with in_another_host(code, tmp_path) as host:
        assert host.communicate(timeout=PATIENCE)[0] == "done\n"


@pytest.mark.parametrize("interpreter", ["/bin/true", "/bin/cat", "/no/such/python", "/bin/sh"])
def test_an_unusable_interpreter_is_reported(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch, interpreter: str
) -> None:
    monkeypatch.setenv("WASMSAND_PYTHON", interpreter)
    with pytest.raises(CompileUnavailable, match=r"WASMSAND_PYTHON|cannot start a compile worker"):
        engine.compile_apart(order(WASM))


@pytest.mark.parametrize("broken", ["frozen", "executable"])
def test_a_host_without_an_interpreter_is_told_what_to_set(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setattr(sys, broken, broken == "frozen" or "", raising=False)
    with pytest.raises(CompileUnavailable, match="set WASMSAND_PYTHON"):
        engine.compile_apart(order(WASM))


def pipes() -> int:
    """Open pipes of this process."""
    links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(str(link).startswith("pipe:") for link in links)


def test_workers_leave_no_pipe_behind(engine: WasmtimeEngine, pool: CompilePool) -> None:
    engine.compile_apart(order(WASM))
    pool.end_idle_now()
    before = pipes()
    for number in range(10):
        engine.compile_apart(order(variant(number)))
        pool.end_idle_now()
    with pytest.raises(CompileTooCostly):
        engine.compile_apart(order(FAT, shape=NO_LIMITS, memory_bytes=200 * MIB))
    assert pipes() <= before


def test_a_large_module_passes_through_the_host_in_pieces(engine: WasmtimeEngine) -> None:
    wasm = module(b"", more=section(0, b"\1x" + bytes(20 * MIB)))
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for at in range(0, len(wasm), MIB):
            taken += 1
            yield wasm[at : at + MIB]

    engine.compile_apart(order(wasm, pieces=pieces))
    assert taken == 21


def test_a_host_that_wants_no_workers_compiles_by_itself(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WASMSAND_COMPILE", "in-process")
    before = descendants()
    assert Host(engine).run(engine.compile_apart(order(WASM)).instantiate(1 << 20)) is None
    for bomb in ("nested loops", "exports"):
        with pytest.raises(ModuleRejected, match=BOMBS[bomb][1]):
            engine.compile_apart(order(BOMBS[bomb][0]))
    assert descendants() <= before
    assert len(list((tmp_path / "guests").iterdir())) == 1
