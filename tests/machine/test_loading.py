"""Programs that must be compiled first do not block their sandbox."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.background import Running
from tests.engine.hosts import load
from tests.machine.guests import (
    EXECVE,
    EXIT_GROUP,
    PROGRAMS,
    SPAWN,
    WAIT4,
    do,
    program,
    text,
)
from tests.waiting import PATIENCE, wait_until
from wasmsand.engine.compile_orders import CompileOrder
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.module import WasmtimeModule
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import IO_CHUNK
from wasmsand.kernel.vfs import ImageBuilder, Node, standard_tree
from wasmsand.machine import CommandRequest, Completed, Machine, MachineOptions

pytestmark = pytest.mark.no_userland
SLOW = wat_to_wasm(program(do(EXIT_GROUP, 5), more="(global i32 (i32.const 4711))"))
KEYED = wat_to_wasm(program("nop", more="(global i32 (i32.const 815))"))
MISSING = wat_to_wasm(
    '(module (import "env" "teleport" (func)) (memory (export "memory") 1)'
    ' (func (export "_start")))'
)


class GatedEngine(WasmtimeEngine):
    """Compiles `SLOW` only when the gate is open."""

    def __init__(self, cache: Path) -> None:
        super().__init__(cache_directory=cache)
        self.gate = threading.Event()
        self.asked = threading.Semaphore(0)
        self.loads = 0

    def compile_apart(self, order: CompileOrder) -> WasmtimeModule:
        if order.key == hashlib.sha256(SLOW).hexdigest():
            self.loads += 1
            self.asked.release()
            with order.cancellation.calling(self.gate.set):
                assert self.gate.wait(PATIENCE)
        return super().compile_apart(order)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[GatedEngine]:
    engine = GatedEngine(tmp_path)
    yield engine
    engine.gate.set()


@pytest.fixture
def machine(engine: GatedEngine) -> Iterator[Machine]:
    builder = ImageBuilder()
    standard_tree(builder)
    become = do(EXECVE, 256, 0, 0)
    status = "(i32.load8_u (i32.const 8193))"
    slow_path, missing_path = text(256, "/usr/bin/slow"), text(256, "/usr/bin/missing")
    programs = {
        "slow": SLOW,
        "missing": MISSING,
        "ok": wat_to_wasm(PROGRAMS["ok"]),
        "become": wat_to_wasm(program(become, more=slow_path)),
        "spawn": wat_to_wasm(
            program(SPAWN, do(WAIT4, -1, 8192, 0, 0), do(EXIT_GROUP, status), more=slow_path)
        ),
        "try": wat_to_wasm(program(become, do(EXIT_GROUP, 3), more=missing_path)),
    }
    for name, wasm in programs.items():
        builder.add_file(b"/usr/bin/" + name.encode(), wasm, 0o755)
    builder.add_file(b"/usr/bin/keyed", KEYED, 0o755, content_key=hashlib.sha256(KEYED).hexdigest())
    machine = Machine(MachineOptions(), image=builder.build(), engine=engine)
    for name in ("ok", "become", "spawn"):  # only `slow` must still be compiled
        load(engine, programs[name])
    yield machine
    engine.gate.set()
    machine.close()


def run(machine: Machine, name: str, timeout: float | None = None) -> Completed:
    return machine.run(CommandRequest((name,), {}, "/", timeout_seconds=timeout))


def run_beside(machine: Machine, name: str) -> Running[Completed]:
    return Running(lambda: run(machine, name))


@pytest.mark.parametrize("name", ["become", "spawn", "slow"], ids=["exec", "vfork", "host"])
def test_others_go_on_while_a_program_is_compiled(
    machine: Machine, engine: GatedEngine, name: str
) -> None:
    waiting = run_beside(machine, name)
    assert engine.asked.acquire(timeout=PATIENCE)
    assert run(machine, "ok").stdout == b"ok"
    machine.files.write("/tmp/x", b"also the host's")
    assert not waiting.results
    engine.gate.set()
    assert waiting.result().exit_code == 5


def test_a_program_is_compiled_once_and_then_known(machine: Machine, engine: GatedEngine) -> None:
    both = [run_beside(machine, "become"), run_beside(machine, "spawn")]
    assert engine.asked.acquire(timeout=PATIENCE)
    engine.gate.set()
    assert [running.result().exit_code for running in both] == [5, 5]
    assert run(machine, "slow").exit_code == 5
    assert engine.loads == 1


@pytest.mark.parametrize("name", ["become", "spawn", "slow"], ids=["exec", "vfork", "host"])
def test_the_timeout_ends_the_wait_for_a_compilation(
    machine: Machine, engine: GatedEngine, name: str
) -> None:
    started = time.monotonic()
    completed = run(machine, name, timeout=0.3)
    assert (completed.exit_code, completed.timed_out) == (124, True)
    assert time.monotonic() - started < 10
    assert run(machine, "ok").stdout == b"ok"
    assert engine.gate.wait(PATIENCE), "the compilation was not ended"
    assert not engine.is_compiled(hashlib.sha256(SLOW).hexdigest())
    assert run(machine, name).exit_code == 5


def test_a_machine_that_is_closed_leaves_nobody_waiting(
    machine: Machine, engine: GatedEngine
) -> None:
    guest = run_beside(machine, "become")
    assert engine.asked.acquire(timeout=PATIENCE)
    host = run_beside(machine, "slow")
    time.sleep(0.2)
    machine.close()
    assert guest.result().exit_code == 128 + 9
    with pytest.raises(KernelError):
        host.result()


def test_programs_of_a_machine_are_compiled_one_at_a_time(
    machine: Machine, engine: GatedEngine
) -> None:
    waiting = run_beside(machine, "become")
    assert engine.asked.acquire(timeout=PATIENCE)
    other = wat_to_wasm(program(do(EXIT_GROUP, 6), more="(global i32 (i32.const 12))"))
    machine.files.write("/usr/bin/other", other, mode=0o755)
    second = run_beside(machine, "other")
    time.sleep(0.2)
    assert not engine.is_compiled(hashlib.sha256(other).hexdigest())
    engine.gate.set()
    assert (waiting.result().exit_code, second.result().exit_code) == (5, 6)


def test_the_hash_of_a_written_program_is_remembered_until_it_changes(
    machine: Machine, engine: GatedEngine
) -> None:
    engine.gate.set()
    machine.files.write("/tmp/p", SLOW, mode=0o755)
    namespace = machine.kernel.namespace
    node = namespace.resolve(machine.identity.credentials(), namespace.root, b"/tmp/p")
    assert namespace.content_key(node) is None
    assert run(machine, "/tmp/p").exit_code == 5
    assert namespace.content_key(node) == hashlib.sha256(SLOW).hexdigest()
    namespace.write(machine.identity.credentials(), node, 4, b"\2")
    assert namespace.content_key(node) is None
    with pytest.raises(KernelError, match="ENOEXEC"):
        run(machine, "/tmp/p")


def test_programs_of_guests_are_cached_apart_from_the_image(
    machine: Machine, engine: GatedEngine, tmp_path: Path
) -> None:
    engine.gate.set()
    namespace = machine.kernel.namespace
    image = namespace.resolve(machine.identity.credentials(), namespace.root, b"/usr/bin/keyed")
    assert namespace.is_of_image(image)
    assert run(machine, "keyed").exit_code == 0
    machine.files.write("/tmp/p", SLOW, mode=0o755)
    for _ in range(2):
        assert run(machine, "/tmp/p").exit_code == 5
    node = namespace.resolve(machine.identity.credentials(), namespace.root, b"/tmp/p")
    assert not namespace.is_of_image(node)
    assert [path.name[:64] for path in (tmp_path / "guests").iterdir()] == [
        hashlib.sha256(SLOW).hexdigest()
    ]


def test_a_refused_program_says_why_on_standard_error(machine: Machine) -> None:
    completed = run(machine, "try")
    reason = b"/usr/bin/missing: unknown import: env.teleport"
    assert (completed.stderr, completed.exit_code) == (b"wasmsand: " + reason + b"\n", 3)
    with pytest.raises(KernelError, match=reason.decode()) as raised:
        run(machine, "missing")
    assert raised.value.errno is Errno.ENOEXEC


def test_a_program_that_is_too_large_is_not_even_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wasmsand.machine.loading.MODULE_BYTES_MAX", 10)
    machine.files.write("/tmp/p", SLOW + b"\0" * 10, mode=0o755)
    with pytest.raises(KernelError, match="larger than 10 bytes"):
        run(machine, "/tmp/p")


def test_a_program_that_changes_while_it_waits_is_refused(
    machine: Machine, engine: GatedEngine
) -> None:
    machine.files.write("/tmp/p", SLOW, mode=0o755)
    waiting = run_beside(machine, "/tmp/p")
    assert engine.asked.acquire(timeout=PATIENCE)
    namespace = machine.kernel.namespace
    with machine.lock:
        node = namespace.resolve(machine.identity.credentials(), namespace.root, b"/tmp/p")
        namespace.write(machine.identity.credentials(), node, 8, b"\xff")
    engine.gate.set()
    with pytest.raises(KernelError, match="changed while it was loaded"):
        waiting.result()


def test_a_known_program_that_is_no_longer_cached_is_compiled_apart_again(
    machine: Machine, engine: GatedEngine, tmp_path: Path
) -> None:
    engine.gate.set()
    machine.files.write("/tmp/p", SLOW, mode=0o755)
    assert run(machine, "/tmp/p").exit_code == 5
    for path in (tmp_path / "guests").iterdir():
        path.unlink()
    key = hashlib.sha256(SLOW).hexdigest()
    engine.unload(key)

    def nothing_of_the_first_run_is_left() -> bool:
        run(machine, "ok")  # a start updates the ledger for ended processes
        gc.collect()
        return not engine.is_compiled(key)

    wait_until(nothing_of_the_first_run_is_left)
    assert run(machine, "/tmp/p").exit_code == 5
    assert engine.loads == 2


@pytest.mark.needs_sources
def test_a_program_is_read_in_pieces(
    machine: Machine, engine: GatedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.gate.set()
    size = 5 * IO_CHUNK
    custom = b"\0" + bytes(
        [size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21]
    )
    machine.files.write("/tmp/p", SLOW + custom + b"\1x" + bytes(size - 2), mode=0o755)
    longest = 0
    read = machine.kernel.namespace.read

    def counting(node: Node, offset: int, size: int) -> bytes:
        nonlocal longest
        longest = max(longest, size)
        return read(node, offset, size)

    monkeypatch.setattr(machine.kernel.namespace, "read", counting)
    assert run(machine, "/tmp/p").exit_code == 5
    assert longest == IO_CHUNK
