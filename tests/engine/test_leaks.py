"""Nothing is left behind, however often guests come and go."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import pytest

from tests.engine.guests import call_host, forking, program
from tests.engine.hosts import Host, load, on_guest_thread, run_and_close
from tests.host_process import mappings, open_descriptors, resident_bytes
from wasmsand.engine.protocol import Arguments, GuestTrap, GuestUnwind, Instance, ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")

MIB = 1 << 20


class Growth:
    """How much resident memory, mappings, files and threads grew."""

    def __init__(self) -> None:
        gc.collect()
        self._before = resident_bytes(), mappings(), open_descriptors(), threading.active_count()

    def assert_none(self, *, bytes_allowed: int) -> None:
        gc.collect()
        memory, maps, files, threads = self._before
        assert resident_bytes() - memory < bytes_allowed
        assert mappings() - maps < 20
        assert open_descriptors() <= files
        assert threading.active_count() - threads <= 2


def test_ten_thousand_instances_leave_nothing(engine: WasmtimeEngine) -> None:
    data = '(data (i32.const 70000) "abc")'
    module = load(engine, program("", pages=40, more=data))

    def cycle(times: int) -> None:
        for _ in range(times):
            instance = module.instantiate(8 * MIB)
            instance.memory_view()[100_000] = 1
            instance.close()

    cycle(500)
    growth = Growth()
    cycle(10_000)
    growth.assert_none(bytes_allowed=4 * MIB)


def test_guests_that_end_in_every_way_leave_nothing(engine: WasmtimeEngine) -> None:
    class Exit(GuestUnwind):
        pass

    class Calls(Host):
        def syscall(self, nr: int, arguments: Arguments) -> int:
            raise Exit

        def fork_child(self, child: Instance) -> int:
            child.close()
            return 7

    endings = [
        program(""),
        program("unreachable"),
        program(f"(drop {call_host('(i32.const 1)')})"),
        program("(throw $oops)", more="(tag $oops)"),
        forking(forks=1),
    ]
    modules = [load(engine, wat) for wat in endings]

    def cycle(times: int) -> None:
        for _ in range(times):
            for module in modules:
                run_and_close(module.instantiate(8 * MIB), Calls(engine))

    assert on_guest_thread(engine, lambda: cycle(200)) is None
    growth = Growth()
    assert on_guest_thread(engine, lambda: cycle(1000)) is None
    growth.assert_none(bytes_allowed=4 * MIB)


def test_an_instance_dropped_without_close_is_freed(engine: WasmtimeEngine) -> None:
    module = load(engine, program("", pages=40))
    for _ in range(50):
        module.instantiate(8 * MIB)
    growth = Growth()
    for _ in range(2000):
        module.instantiate(8 * MIB)
    growth.assert_none(bytes_allowed=4 * MIB)


def test_a_failed_instance_is_freed_without_waiting_for_the_collector(
    engine: WasmtimeEngine,
) -> None:
    modules = [load(engine, program("unreachable")), load(engine, forking(buffer_bytes=0))]
    alive = []

    def run() -> None:
        for module in modules:
            instance = module.instantiate(8 * MIB)
            instance.bind(Host(engine))
            with pytest.raises(GuestTrap):
                instance.run()
            instance.close()
            alive.append(weakref.ref(instance))

    gc.disable()
    try:
        assert on_guest_thread(engine, run) is None
        assert [reference() for reference in alive] == [None, None]
    finally:
        gc.enable()


def test_modules_that_are_rejected_leave_nothing(engine: WasmtimeEngine) -> None:
    def cycle(times: int) -> None:
        for number in range(times):
            content = b"\0asm\1\0\0\0\xff" + number.to_bytes(4, "little")
            with pytest.raises(ModuleRejected):
                load(engine, content)

    cycle(100)
    growth = Growth()
    cycle(2000)
    growth.assert_none(bytes_allowed=4 * MIB)
