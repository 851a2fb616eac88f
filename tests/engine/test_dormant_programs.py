"""Programs that wait, written down as differences from a new instance, and made again."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.engine.guests import forking, program
from tests.engine.hosts import MEMORY_LIMIT, load
from wasmsand.engine.abilities import NoMemoryCopies
from wasmsand.engine.dormant import PAGE, RUN_MAX, DormantFork, DormantProgram, differing_runs
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance

WASM_PAGE = 65536
STACK = 65536
"""The initial stack pointer of guests."""
VARIABLE = '(global $v (export "kept") (mut i32) (i32.const 3))'
PLAIN = program("", more=VARIABLE, pages=8)


def fresh(engine: WasmtimeEngine, wat: str = PLAIN) -> WasmtimeInstance:
    return load(engine, wat).instantiate(MEMORY_LIMIT)


def copied(engine: WasmtimeEngine, source: WasmtimeInstance) -> WasmtimeInstance:
    """A copy by way of a description."""
    copies = engine.abilities.memory_copies
    base, target = fresh(engine), fresh(engine)
    parts = list(copies.differences(source, base))
    copies.fill(target, copies.describe(source), parts)
    base.close()
    return target


def test_memory_size_and_variables_are_the_same_in_the_copy(engine: WasmtimeEngine) -> None:
    chosen, source = random.Random(1), fresh(engine)
    assert source.grow_memory(20 * WASM_PAGE)
    source.set_variable("kept", 0xFFFF_FFFE)
    for _ in range(40):
        content = chosen.randbytes(chosen.randrange(1, 9000))
        source.write(chosen.randrange(STACK, 20 * WASM_PAGE - len(content)), content)
    target = copied(engine, source)
    assert target.memory_size() == 20 * WASM_PAGE
    assert target.exported_variables()["kept"] == 0xFFFF_FFFE
    size = 20 * WASM_PAGE - STACK
    assert target.read(STACK, size) == source.read(STACK, size)
    target.close()
    source.close()


def test_only_pages_that_differ_are_written_down(engine: WasmtimeEngine) -> None:
    copies, source, base = engine.abilities.memory_copies, fresh(engine), fresh(engine)
    assert list(copies.differences(source, base)) == []
    source.write(STACK + 3 * PAGE + 5, b"x")
    source.write(STACK + 9 * PAGE, b"y")
    source.write(STACK + 9 * PAGE, b"\0")  # written, and the same again
    ((address, content),) = copies.differences(source, base)
    assert (address, len(content), content[5:6]) == (STACK + 3 * PAGE, PAGE, b"x")
    source.close()
    base.close()


def test_a_memory_prepared_differently_is_compared_page_by_page(engine: WasmtimeEngine) -> None:
    copies, module = engine.abilities.memory_copies, load(engine, PLAIN)
    first = fresh(engine)
    first.write(STACK + PAGE, b"prepared" * 100)
    image = engine.abilities.memory_images.capture(first, stack=False)
    source = engine.abilities.memory_images.instantiate(module, MEMORY_LIMIT, image)
    base = fresh(engine)
    assert [address for address, _ in copies.differences(source, base)] == [STACK + PAGE]
    for instance in (first, source, base):
        instance.close()


def test_runs_are_bounded_and_beyond_the_base_are_zeros() -> None:
    size = 3 * RUN_MAX + 2 * PAGE
    memory = memoryview(b"m" * size + bytes(PAGE))
    runs = list(differing_runs(memory, memoryview(b"m" * PAGE), [(0, size + PAGE)]))
    assert [len(content) for _, content in runs] == [RUN_MAX, RUN_MAX, RUN_MAX, PAGE]
    assert runs[0][0] == PAGE
    assert b"".join(content for _, content in runs) == b"m" * (size - PAGE)


def test_ranges_that_share_a_page_give_it_once() -> None:
    memory = memoryview(b"m" * 4 * PAGE)
    runs = list(
        differing_runs(memory, memoryview(b""), [(10, 20), (30, PAGE + 5), (3 * PAGE, 4 * PAGE)])
    )
    assert [(address, len(content)) for address, content in runs] == [
        (0, PAGE),
        (PAGE, PAGE),
        (3 * PAGE, PAGE),
    ]


def description(engine: WasmtimeEngine) -> DormantProgram:
    source = fresh(engine)
    found = engine.abilities.memory_copies.describe(source)
    source.close()
    return found


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"entry": "other"}, "does not start at 'other'"),
        ({"memory_size": 5}, "cannot have a memory of 5 bytes"),
        ({"memory_size": WASM_PAGE}, "cannot have a memory"),
        ({"variables": {"unknown": 1}}, "lacks variables"),
        ({"variables": {"kept": -1}}, "impossible value"),
        ({"variables": {"kept": 1 << 32}}, "impossible value"),
        ({"fork": DormantFork(0, 0)}, "cannot fork"),
    ],
    ids=str,
)
def test_a_wrong_description_is_refused(
    engine: WasmtimeEngine, changes: dict[str, object], reason: str
) -> None:
    target, dormant = fresh(engine), replace(description(engine), **changes)  # type: ignore[arg-type]
    with pytest.raises(ModuleRejected, match=reason):
        engine.abilities.memory_copies.fill(target, dormant, ())
    target.close()


def test_a_memory_beyond_the_limit_is_a_memory_error(engine: WasmtimeEngine) -> None:
    target = fresh(engine)
    dormant = replace(description(engine), memory_size=MEMORY_LIMIT + WASM_PAGE)
    with pytest.raises(MemoryError):
        engine.abilities.memory_copies.fill(target, dormant, ())
    target.close()


@pytest.mark.parametrize(
    "parts",
    [[(8 * WASM_PAGE - 1, b"xx")], [(-1, b"x")], [(1 << 40, b"")], [(PAGE, b"x"), (0, b"y")]],
    ids=["over the end", "negative", "far outside", "not in order"],
)
def test_parts_outside_the_memory_are_refused(
    engine: WasmtimeEngine, parts: list[tuple[int, bytes]]
) -> None:
    target = fresh(engine)
    with pytest.raises(ModuleRejected, match="not in order, or outside"):
        engine.abilities.memory_copies.fill(target, description(engine), parts)
    target.close()


def test_a_fork_with_a_wrong_buffer_is_refused(engine: WasmtimeEngine) -> None:
    copies = engine.abilities.memory_copies
    for buffer in (0xFFFF_FFFF, 0xFFFF_0000):
        target = fresh(engine, forking())
        dormant = replace(copies.describe(target), fork=DormantFork(buffer, 5))
        with pytest.raises(ModuleRejected, match="lies outside the memory"):
            copies.fill(target, dormant, ())
        target.close()


def test_an_engine_without_copies_refuses(engine: WasmtimeEngine) -> None:
    source, none = fresh(engine), NoMemoryCopies()
    with pytest.raises(MemoryError, match="cannot copy programs"):
        none.describe(source)
    with pytest.raises(MemoryError, match="cannot copy programs"):
        none.differences(source, source)
    with pytest.raises(MemoryError, match="cannot copy programs"):
        none.fill(source, description(engine), ())
    source.close()
