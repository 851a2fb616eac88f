"""Copies of large memories: the same content, however pages are copied and shared."""

from __future__ import annotations

import os
import random
import resource
import sys
from pathlib import Path

import pytest

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host, load
from tests.engine.test_leaks import Growth
from wasmsand.engine.wasmtime import page_copies, touched_pages
from wasmsand.engine.wasmtime.bindings import ffi
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.layered_image import FILE_NAME, FILES_MAX, LayeredImage

MIB = 1 << 20
WASM_PAGE = 65536
STACK = 65536
"""The initial stack pointer of guests."""
SIZE = 24 * MIB
LIMIT = 64 * MIB
PLAIN = program("", pages=8)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs files without a name")


def new(engine: WasmtimeEngine, size: int = SIZE) -> WasmtimeInstance:
    instance = load(engine, PLAIN).instantiate(LIMIT)
    assert instance.grow_memory(size)
    return instance


def content(instance: WasmtimeInstance) -> bytes:
    return instance.read(STACK, instance.memory_size() - STACK)


def with_data(engine: WasmtimeEngine, seed: int = 1) -> WasmtimeInstance:
    """A program that has written most of its memory."""
    instance, chance = new(engine), random.Random(seed)
    instance.write(STACK + 12345, chance.randbytes(20 * MIB))
    return instance


def copy_of(engine: WasmtimeEngine, program: WasmtimeInstance) -> WasmtimeInstance:
    copy = engine.abilities.memory_copies.duplicate(program, LIMIT)
    assert isinstance(copy, WasmtimeInstance)
    return copy


def shared_files() -> int:
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sum(os.path.lexists(link) and FILE_NAME in os.readlink(link) for link in links)


def own_bytes(instance: WasmtimeInstance) -> int:
    """Private pages of its memory, as the system counts them."""
    address = int(ffi.cast("uintptr_t", instance.memory_base))
    last = address + instance.memory_size()
    counts, total = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition("-")
        if rest and ":" not in first:
            counts = address <= int(first, 16) < last
        elif counts and line.startswith("Anonymous:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.fixture(params=["as it is", "without huge pages"], autouse=True)
def _huge_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without huge pages":
        monkeypatch.setattr(page_copies, "_USE_HUGE_PAGES", None)


@pytest.mark.parametrize("seed", range(6))
def test_random_copies_writes_and_sharing_agree_with_a_model(
    engine: WasmtimeEngine, seed: int
) -> None:
    chance = random.Random(seed)
    first = new(engine)
    live: list[tuple[WasmtimeInstance, bytearray]] = [(first, bytearray(SIZE - STACK))]
    for _ in range(40):
        number = chance.randrange(len(live))
        instance, model = live[number]
        act = chance.choice(("write", "write", "share", "copy", "grow", "drop", "charge"))
        if act == "write":
            data = chance.randbytes(chance.choice((3, 5000, 300_000, 5 * MIB)))
            at = chance.randrange(len(model) - len(data))
            instance.write(STACK + at, data)
            model[at : at + len(data)] = data
        elif act == "share":
            engine.abilities.memory_copies.share(instance)
        elif act == "charge":
            engine.abilities.memory_control.written_bytes(instance)
        elif act == "copy" and len(live) < 5:
            live.append((copy_of(engine, instance), bytearray(model)))
        elif act == "grow" and len(model) < LIMIT - STACK - WASM_PAGE:
            assert instance.grow_memory(instance.memory_size() + WASM_PAGE)
            model += bytes(WASM_PAGE)
        elif act == "drop" and len(live) > 1:
            instance.close()
            del live[number]
        for each, expected in live:
            assert content(each) == expected
    for each, _ in live:
        each.close()


@on_linux
def test_copies_share_pages_until_they_write(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    before = content(program)
    assert own_bytes(program) >= 20 * MIB
    engine.abilities.memory_copies.share(program)
    twins = [copy_of(engine, program) for _ in range(3)]
    for each in (program, *twins):
        assert content(each) == before
        assert own_bytes(each) < MIB
    twins[0].write(10 * MIB, b"x" * MIB)
    assert MIB <= own_bytes(twins[0]) < 2 * MIB
    assert content(program) == content(twins[1]) == before
    for each in (program, *twins):
        each.close()


@on_linux
def test_the_file_ends_with_its_last_user(engine: WasmtimeEngine) -> None:
    files = shared_files()
    program = with_data(engine)
    engine.abilities.memory_copies.share(program)
    twin = copy_of(engine, program)
    assert shared_files() == files + 1
    program.close()
    assert shared_files() == files + 1
    twin.close()
    assert shared_files() == files


def bytes_in_file(instance: WasmtimeInstance) -> int:
    image = instance.image
    assert isinstance(image, LayeredImage)
    return os.fstat(image._file).st_blocks * 512


@on_linux
def test_what_its_only_user_has_overwritten_is_freed(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    engine.abilities.memory_copies.share(program)
    twin = copy_of(engine, program)
    full = bytes_in_file(program)
    assert full >= 20 * MIB
    for each, mark in ((program, b"p"), (twin, b"t")):
        each.write(4 * MIB, mark * 10 * MIB)
        engine.abilities.memory_control.written_bytes(each)
    assert bytes_in_file(program) == full  # each of them may be copied from the file
    expected = content(program)
    twin.close()
    engine.abilities.memory_control.written_bytes(program)
    assert bytes_in_file(program) == full - 10 * MIB
    assert content(program) == expected
    copy = copy_of(engine, program)
    assert content(copy) == expected
    copy.write(15 * MIB, b"c" * 2 * MIB)
    assert content(program) == expected
    copy.close()
    program.close()


@on_linux
def test_a_process_that_the_host_forked_keeps_what_it_sees(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    engine.abilities.memory_copies.share(program)
    expected = content(program)
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(to_child[0], 1)
        os.write(from_child[1], b"y" if content(program) == expected else b"n")
        os._exit(0)
    program.write(4 * MIB, b"p" * 10 * MIB)
    engine.abilities.memory_control.written_bytes(program)
    os.write(to_child[1], b"x")
    assert os.read(from_child[0], 1) == b"y"
    os.waitpid(child, 0)
    for descriptor in (*to_child, *from_child):
        os.close(descriptor)
    program.close()


@on_linux
def test_nothing_is_freed_if_the_system_does_not_tell_what_was_written(
    engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = with_data(engine)
    engine.abilities.memory_copies.share(program)
    expected = content(program)
    monkeypatch.setattr(touched_pages, "_read_page_map", lambda *_: None)
    engine.abilities.memory_control.written_bytes(program)
    assert content(program) == expected
    assert content(copy_of(engine, program)) == expected
    program.close()


@on_linux
def test_few_mappings_are_used_however_scattered_the_pages_are(engine: WasmtimeEngine) -> None:
    program = new(engine)
    for address in range(2 * MIB, 22 * MIB, 16384):  # every fourth page
        program.write(address, b"page")
    for number in range(30):  # more runs than segments
        program.write(2 * MIB + number * 640 * 1024, b"r" * 300 * 1024)
    before = content(program)
    engine.abilities.memory_copies.share(program)
    twin = copy_of(engine, program)
    image = twin.image
    assert isinstance(image, LayeredImage)
    assert len(image.segments) <= 16
    assert content(twin) == before
    program.close()
    twin.close()


@on_linux
def test_a_program_that_changed_little_keeps_its_file(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    copies = engine.abilities.memory_copies
    copies.share(program)
    image = program.image
    program.write(5 * MIB, b"y" * 2 * MIB)
    copies.share(program)
    assert program.image is image
    program.write(5 * MIB, b"z" * 9 * MIB)
    expected = content(program)
    copies.share(program)
    assert program.image is not image
    twin = copy_of(engine, program)
    assert content(twin) == content(program) == expected
    assert own_bytes(twin) < MIB
    program.close()
    twin.close()


def test_a_small_memory_is_not_shared(engine: WasmtimeEngine) -> None:
    program = new(engine)
    program.write(2 * MIB, b"x" * 900_000)
    engine.abilities.memory_copies.share(program)
    assert program.image is None
    program.close()


@on_linux
def test_without_a_free_descriptor_copies_have_their_own_pages(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    copy_of(engine, program).close()  # opens what every copy needs
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, hard))
    try:
        engine.abilities.memory_copies.share(program)
        twin = copy_of(engine, program)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert program.image is None
    assert content(twin) == content(program)
    program.close()
    twin.close()


@on_linux
def test_the_number_of_files_is_bounded(engine: WasmtimeEngine) -> None:
    files, programs = shared_files(), []
    for number in range(FILES_MAX + 3):
        program = new(engine, 3 * MIB)
        program.write(MIB, bytes([1 + number % 255]) * (MIB + 5))
        engine.abilities.memory_copies.share(program)
        programs.append(program)
    assert shared_files() - files <= FILES_MAX
    assert programs[0].image is not None
    assert programs[-1].image is None
    twin = copy_of(engine, programs[-1])
    assert content(twin) == content(programs[-1])
    for each in (*programs, twin):
        each.close()
    del programs, program, each
    another = with_data(engine)
    engine.abilities.memory_copies.share(another)
    assert another.image is not None
    another.close()


@on_linux
def test_a_copy_computes_with_shared_memory(engine: WasmtimeEngine, host: Host) -> None:
    address = 9 * MIB
    word = f"(i32.load (i32.const {address}))"
    add = f"(i32.store (i32.const {address}) (i32.add {word} (i32.const 1)))"
    module = load(engine, program(f"{add} (drop {call_host('(i32.const 1)', word)})", pages=8))
    original = module.instantiate(LIMIT)
    assert original.grow_memory(SIZE)
    original.write(2 * MIB, b"\7" * 15 * MIB)
    original.write(address, (41).to_bytes(4, "little"))
    engine.abilities.memory_copies.share(original)
    twin = copy_of(engine, original)
    assert host.run(twin) is None
    assert host.calls == [(1, 42, 0, 0, 0, 0, 0)]
    assert original.read(address, 4) == (41).to_bytes(4, "little")
    original.close()


@on_linux
def test_differences_of_shared_memory_are_found(engine: WasmtimeEngine) -> None:
    copies = engine.abilities.memory_copies
    program, base = with_data(engine), new(engine)
    alone = list(copies.differences(program, base))
    copies.share(program)
    program.write(3 * MIB, b"changed")
    parts = copies.differences(program, base)
    target = new(engine, 8 * WASM_PAGE)
    copies.fill(target, copies.describe(program), parts)
    assert content(target) == content(program)
    assert sum(len(part) for _, part in alone) < 21 * MIB
    for each in (program, base, target):
        each.close()


@on_linux
def test_a_thousand_copies_leave_nothing(engine: WasmtimeEngine) -> None:
    program = with_data(engine)
    engine.abilities.memory_copies.share(program)
    copy_of(engine, program).close()
    growth = Growth()
    for number in range(1000):
        twin = copy_of(engine, program)
        twin.write(number * 20 * 1000 + STACK, b"mine")
        twin.close()
    growth.assert_none(bytes_allowed=8 * MIB)
    program.close()
