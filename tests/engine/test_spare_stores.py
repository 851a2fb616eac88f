"""Forks that get the memory of a copy that has ended."""

from __future__ import annotations

import sys
import time

import pytest

from tests.engine.guests import forking
from tests.engine.hosts import PATIENCE, Host
from wasmsand.engine.protocol import Arguments, GuestTrap, GuestUnwind, Instance, TrapKind
from wasmsand.engine.wasmtime.bindings import ffi
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.spare_stores import SPARES_MAX, WRITTEN_MAX, SpareStores
from wasmsand.engine.wasmtime.touched_pages import writes_can_be_told

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not writes_can_be_told(), reason="the system cannot tell writes"
)
WASM_PAGE = 65536


class Exit(GuestUnwind):
    """The guest's host ended it in a call."""


class Waiting(Host):
    """Ends each child at its first call after it has written its memory, and lets the parent go on
    then. Keeps what it saw of the children before they ran."""

    seen: list[bytes]
    parents: list[bytes]
    bases: list[int]
    """The addresses of their memories."""
    spoilt: tuple[int, ...] = (0, 5000, 2 * WASM_PAGE, 3 * WASM_PAGE, 5 * WASM_PAGE)
    """Where a child writes."""
    ends: BaseException = Exit()
    """How a child ends."""

    def fork_child(self, child: Instance) -> int:
        assert isinstance(child, WasmtimeInstance)
        assert self.instance is not None
        self.seen.append(child.read(0, child.memory_size()))
        self.parents.append(self.instance.read(0, self.instance.memory_size()))
        self.bases.append(int(ffi.cast("uintptr_t", child.memory_base)))
        pid = len(self.seen)
        host = Ending(self.engine, pid=pid)
        host.spoilt, host.ends = self.spoilt, self.ends
        host.instance = child
        self.children.append(host)
        child.bind(host)
        self.engine.start_thread(lambda: host._run_child(child))
        assert host.ended.wait(PATIENCE)
        return pid


class Ending(Host):
    """The host of a child."""

    spoilt: tuple[int, ...] = ()
    ends: BaseException = Exit()

    def syscall(self, nr: int, arguments: Arguments) -> int:
        assert self.instance is not None
        for address in self.spoilt:
            if address < self.instance.memory_size():
                self.instance.write(address, b"left by a child")
        raise self.ends


def waiting(engine: WasmtimeEngine) -> Waiting:
    host = Waiting(engine)
    host.seen, host.parents, host.bases = [], [], []
    return host


def spares(engine: WasmtimeEngine) -> SpareStores:
    return engine._runtime.spares


def test_the_next_copy_has_nothing_of_the_one_before(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    data = f'(data (i32.const {3 * WASM_PAGE}) "of the module")'
    assert host.run_wat(forking(forks=5, pages=8, more=data)) is None
    assert len(host.seen) == 5
    assert len(set(host.bases)) == 1  # all in one store
    for child, parent in zip(host.seen, host.parents, strict=True):
        assert b"left by a child" not in child
        assert b"of the module" in child
        # Unused stack and the unused part of the buffer need not be the same.
        assert child[WASM_PAGE:] == parent[WASM_PAGE:]


def test_a_copy_that_traps_is_not_used_again(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    host.ends = GuestTrap(TrapKind.UNREACHABLE, "as if it had trapped")
    before = len(spares(engine))
    assert host.run_wat(forking(forks=3)) is None
    assert len(host.seen) == 3
    assert len(spares(engine)) == before


def test_another_sandbox_does_not_get_it(engine: WasmtimeEngine) -> None:
    first = waiting(engine)
    assert first.run_wat(forking()) is None
    (spare,) = spares(engine)._spares[-1:]
    assert spares(engine).take(object(), spare.module, spare.image, spare.size) is None
    assert spares(engine).take(spare.realm, spare.module, spare.image, spare.size) is spare
    spare.store.free()


def test_a_larger_memory_is_not_used_for_a_smaller_one(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    assert host.run_wat(forking()) is None
    (spare,) = spares(engine)._spares[-1:]
    smaller = spare.size - WASM_PAGE
    assert spares(engine).take(spare.realm, spare.module, spare.image, smaller) is None


def test_a_copy_that_has_written_much_is_freed(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    host.spoilt = tuple(range(WASM_PAGE, WASM_PAGE + 2 * WRITTEN_MAX, 4096))
    before = len(spares(engine))
    assert host.run_wat(forking(forks=2, pages=64)) is None
    assert len(spares(engine)) == before
    assert len(host.seen) == 2


def test_the_oldest_one_makes_room(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    kept = SpareStores(seconds=60)
    stores = []
    for _ in range(SPARES_MAX + 1):
        assert host.run_wat(forking()) is None
        spare = spares(engine)._spares.pop()
        stores.append(spare.store)
        kept.keep(spare)
    assert len(kept) == SPARES_MAX
    assert [store.closed for store in stores] == [True] + [False] * SPARES_MAX
    for store in stores[1:]:
        store.free()


def test_one_that_nobody_takes_is_freed(engine: WasmtimeEngine) -> None:
    host = waiting(engine)
    assert host.run_wat(forking()) is None
    spare = spares(engine)._spares.pop()
    kept = SpareStores(seconds=0.01)
    kept.keep(spare._replace(since=time.monotonic()))
    time.sleep(0.02)
    kept.free_old()
    assert len(kept) == 0
    assert spare.store.closed
