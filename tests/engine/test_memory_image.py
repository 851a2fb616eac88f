"""Captured memory images, with which new instances of the same code start."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.engine.guests import COUNTER, call_host, forking, program
from tests.engine.hosts import MEMORY_LIMIT, Host, load, on_guest_thread, run_and_close
from tests.engine.test_leaks import Growth
from wasmsand.engine.protocol import Arguments, GuestTrap, Instance, ModuleRejected
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.instance import WasmtimeInstance
from wasmsand.engine.wasmtime.memory_image import FILE_NAME, MappedImage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files without a name")

PAGE = 65536
MIB = 1 << 20
STACK = 65536
"""The initial stack pointer of guests."""
DATA = 70_000
FAR = 20 * PAGE
"""An address on a page that a guest does not write."""
DATA_SEGMENT = f'(data (i32.const {DATA}) "module")'


def text(instance: WasmtimeInstance, address: int, size: int) -> bytes:
    return bytes(instance.memory_view()[address : address + size])


def fresh(engine: WasmtimeEngine, wat: str) -> WasmtimeInstance:
    return load(engine, wat).instantiate(MEMORY_LIMIT)


def captured(
    engine: WasmtimeEngine, wat: str, written: dict[int, bytes], *, stack: bool = False
) -> MappedImage:
    """An image of a fresh instance of this program, with something written to its memory."""
    instance = fresh(engine, wat)
    for address, content in written.items():
        instance.memory_view()[address : address + len(content)] = content
    image = instance.capture(stack=stack)
    instance.close()
    return image


OF_AN_IMAGE = re.compile(rf"/#\d+ \(deleted\)|{FILE_NAME}")
"""How /proc shows unnamed files on disk and in memory."""


def image_mappings() -> int:
    return len(OF_AN_IMAGE.findall(Path("/proc/self/maps").read_text()))


def image_files() -> set[int]:
    """The open descriptors of images."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor of this listing itself
            continue
        if OF_AN_IMAGE.search(target):
            found.add(int(name))
    return found


@pytest.fixture(params=["on disk", "in memory"])
def engine(
    request: pytest.FixtureRequest, engine: WasmtimeEngine, monkeypatch: pytest.MonkeyPatch
) -> WasmtimeEngine:
    """The engine, with images in each kind of file."""
    if request.param == "in memory":
        monkeypatch.delattr(os, "O_TMPFILE")
    return engine


def test_an_instance_begins_with_the_image_and_others_with_the_data(engine: WasmtimeEngine) -> None:
    wat = program("", more=DATA_SEGMENT)
    image = captured(engine, wat, {DATA: b"image!", 2 * PAGE - 3: b"end"})
    module = load(engine, wat)
    with_image, without = module.instantiate(MIB, image), module.instantiate(MIB)
    assert image_mappings() == 1
    assert text(with_image, DATA, 6) == b"image!"
    assert text(with_image, 2 * PAGE - 3, 3) == b"end"
    assert text(without, DATA, 6) == b"module"
    assert text(without, 2 * PAGE - 3, 3) == bytes(3)
    with_image.close()
    without.close()


def test_the_guest_computes_with_the_image(engine: WasmtimeEngine, host: Host) -> None:
    load_word = f"(i32.load (i32.const {DATA}))"
    wat = program(f"(drop {call_host('(i32.const 1)', load_word)})", more=DATA_SEGMENT)
    image = captured(engine, wat, {DATA: (4711).to_bytes(4, "little")})
    assert host.run(load(engine, wat).instantiate(MIB, image)) is None
    assert host.calls == [(1, 4711, 0, 0, 0, 0, 0)]


def test_writes_are_seen_by_nobody_else(engine: WasmtimeEngine) -> None:
    wat = program("")
    image = captured(engine, wat, {DATA: b"image"})
    module = load(engine, wat)
    one, other = module.instantiate(MIB, image), module.instantiate(MIB, image)
    one.memory_view()[DATA : DATA + 5] = b"mine!"
    assert text(other, DATA, 5) == b"image"
    assert text(other.sibling(MIB), DATA, 5) == b"image"
    assert text(module.instantiate(MIB, image), DATA, 5) == b"image"
    one.close()
    other.close()


def test_an_image_cannot_be_changed(engine: WasmtimeEngine) -> None:
    before = image_files()
    image = captured(engine, program(""), {DATA: b"image"})
    (file,) = image_files() - before
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pwrite(file, b"x", 0)
    with pytest.raises(OSError, match="Invalid argument"):
        os.ftruncate(file, 0)
    assert image.size == 2 * PAGE


def test_an_image_of_more_memory_makes_the_instance_grow(engine: WasmtimeEngine) -> None:
    image = captured(engine, program("", pages=5), {5 * PAGE - 4: b"high"})
    instance = load(engine, program("", pages=2)).instantiate(5 * PAGE, image)
    assert instance.memory_size() == 5 * PAGE
    assert text(instance, 5 * PAGE - 4, 4) == b"high"
    instance.close()


def test_memory_beyond_a_smaller_image_is_zero(engine: WasmtimeEngine) -> None:
    image = captured(engine, program("", pages=2), {DATA: b"image"})
    data = f'(data (i32.const {5 * PAGE - 6}) "module")'
    instance = load(engine, program("", pages=5, more=data)).instantiate(MIB, image)
    assert instance.memory_size() == 5 * PAGE
    assert text(instance, DATA, 5) == b"image"
    assert text(instance, 2 * PAGE, 3 * PAGE) == bytes(3 * PAGE)
    instance.close()


def test_an_image_without_content_is_all_zeros(engine: WasmtimeEngine) -> None:
    image = captured(engine, program(""), {})
    instance = load(engine, program("", more=DATA_SEGMENT)).instantiate(MIB, image)
    assert text(instance, 0, 2 * PAGE) == bytes(2 * PAGE)
    instance.close()


def test_growth_beyond_the_image_gives_zeros_up_to_the_limit(
    engine: WasmtimeEngine, host: Host
) -> None:
    grow = "(memory.grow (i32.const 1))"
    wat = program(
        f"""(drop {call_host("(i32.const 1)", grow)}) (drop {call_host("(i32.const 1)", grow)})
        (drop {call_host("(i32.const 2)", f"(i32.load (i32.const {2 * PAGE}))")})
        (i32.store (i32.const {3 * PAGE - 4}) (i32.const 5))"""
    )
    image = captured(engine, wat, {2 * PAGE - 4: b"\xff" * 4})
    assert host.run(load(engine, wat).instantiate(3 * PAGE, image)) is None
    assert [call[:2] for call in host.calls] == [(1, 2), (1, 0xFFFF_FFFF), (2, 0)]


def test_an_image_larger_than_the_limit_is_refused(engine: WasmtimeEngine) -> None:
    image = captured(engine, program("", pages=5), {})
    with pytest.raises(ModuleRejected, match=f"{5 * PAGE} bytes .* memory_limit_bytes"):
        load(engine, program("", pages=2)).instantiate(4 * PAGE, image)


def test_without_the_stack_an_instance_begins_with_an_empty_one(engine: WasmtimeEngine) -> None:
    wat = program("")
    instance = fresh(engine, wat)
    instance.memory_view()[STACK - 8 : STACK + 8] = b"stack..." + b"heap...."
    instance.set_stack_pointer(STACK - 8)
    without, whole = instance.capture(stack=False), instance.capture(stack=True)
    instance.close()
    module = load(engine, wat)
    one, other = module.instantiate(MIB, without), module.instantiate(MIB, whole)
    assert (one.stack_pointer(), text(one, STACK - 8, 16)) == (STACK, bytes(8) + b"heap....")
    assert (other.stack_pointer(), text(other, STACK - 8, 16)) == (STACK - 8, b"stack...heap....")
    assert one.stack_reserve() == other.stack_reserve() == STACK
    one.close()
    other.close()


UNALIGNED = """(module (memory (export "memory") 1)
  (global (export "__stack_pointer") (mut i32) (i32.const 5000)) (func (export "_start")))"""


def test_a_stack_may_end_within_a_page(engine: WasmtimeEngine) -> None:
    image = captured(engine, UNALIGNED, {4990: b"dead stack" + b"data"})
    instance = load(engine, UNALIGNED).instantiate(MIB, image)
    assert text(instance, 4990, 14) == bytes(10) + b"data"
    instance.close()


VARIABLE = '(global $depth (export "depth") (mut i32) (i32.const 1))'


def test_variables_are_part_of_an_image(engine: WasmtimeEngine) -> None:
    wat = program("(global.set $depth (i32.const -7))", more=VARIABLE)
    instance = fresh(engine, wat)
    instance.bind(Host(engine))
    assert on_guest_thread(engine, instance.run) is None
    image = instance.capture(stack=False)
    instance.close()
    again = load(engine, wat).instantiate(MIB, image)
    assert again.exported_variables()["depth"] == 0xFFFF_FFF9
    again.close()


def test_an_image_with_variables_that_the_module_lacks_is_refused(engine: WasmtimeEngine) -> None:
    image = captured(engine, program("", more=VARIABLE), {})
    with pytest.raises(ModuleRejected, match="another program"):
        load(engine, program("")).instantiate(MIB, image)


def test_a_fork_copies_what_was_written_and_shares_the_image(engine: WasmtimeEngine) -> None:
    class Looking(Host):
        seen: bytes = b""

        def fork_child(self, child: Instance) -> int:
            self.seen = child.read(FAR, 5) + child.read(COUNTER, 1)
            return super().fork_child(child)

    wat = forking(forks=2, pages=30, more=f'(data (i32.const {FAR}) "module")')
    image = captured(engine, wat, {FAR: b"image"})
    host = Looking(engine)
    assert host.run(load(engine, wat).instantiate(MEMORY_LIMIT, image)) is None
    family = host.family()
    assert [member.raised for member in family] == [None] * 4
    assert host.seen == b"image\2"
    assert image_mappings() == 0


def test_threads_run_in_the_memory_of_the_image_with_its_variables(engine: WasmtimeEngine) -> None:
    body = f"""(i32.store (i32.const {DATA + 8})
      (i32.add (global.get $depth) (i32.load (i32.const {DATA}))))"""
    wat = program(
        "", more=f'{VARIABLE} (func (export "__thread_start") (param i32) {body}) {DATA_SEGMENT}'
    )
    origin = fresh(engine, wat)
    origin.memory_view()[DATA : DATA + 4] = (40).to_bytes(4, "little")
    origin.set_variable("depth", 2)
    image = origin.capture(stack=False)
    origin.close()
    first = load(engine, wat).instantiate(MEMORY_LIMIT, image)
    thread = first.new_thread(60_000, 0)
    assert Host(engine).run(thread) is None
    assert text(first, DATA + 8, 1) == b"\x2a"
    first.close()
    assert image_mappings() == 0


def test_an_instance_outlives_the_last_reference_to_its_image(engine: WasmtimeEngine) -> None:
    wat = program("", pages=20)
    before = len(image_files())
    image = captured(engine, wat, {DATA: b"image", 19 * PAGE: b"unread"})
    instance = load(engine, wat).instantiate(4 * MIB, image)
    del image
    assert text(instance, 19 * PAGE, 6) == b"unread"
    assert text(instance.sibling(4 * MIB), 19 * PAGE, 6) == b"unread"
    instance.close()
    assert len(image_files()) == before
    assert image_mappings() == 0


def test_no_later_instance_sees_a_page_of_an_image(engine: WasmtimeEngine) -> None:
    """Not even one that gets the same addresses: of the same module or another, after any order
    of closing."""
    secret = b"secret of another sandbox"
    wat = program("", pages=40, more=DATA_SEGMENT)
    image = captured(engine, wat, {page * PAGE + 100: secret for page in range(1, 40)})
    modules = [load(engine, wat), load(engine, program("", pages=40))]
    addresses, reused = set(), 0
    for turn in range(30):
        used = [modules[0].instantiate(MEMORY_LIMIT, image) for _ in range(4)]
        for instance in used:
            instance.memory_view()[5 * PAGE : 5 * PAGE + 1000] = secret * 40
            addresses.add(instance.memory_base)
        for instance in used if turn % 2 else reversed(used):
            instance.close()
        assert image_mappings() == 0
        later = [module.instantiate(MEMORY_LIMIT) for module in modules for _ in range(4)]
        for instance in later:
            assert secret not in bytes(instance.memory_view())
            assert instance.grow_memory(60 * PAGE)
            assert secret not in bytes(instance.memory_view())
            reused += instance.memory_base in addresses
            instance.close()
    assert reused, "no later instance had the address of an earlier one, so nothing was shown"


@pytest.mark.parametrize("end", ["", "unreachable", f"(drop {call_host('(i32.const 1)')})"])
def test_a_thousand_starts_leave_no_mapping_and_no_file(engine: WasmtimeEngine, end: str) -> None:
    class Killed(Exception):
        pass

    class Killing(Host):
        def syscall(self, nr: int, arguments: Arguments) -> int:
            raise Killed

    wat = program(f"(i32.store (i32.const {DATA}) (i32.const 1)) {end}", pages=40)
    module = load(engine, wat)
    image = captured(engine, wat, {page * PAGE: b"page" for page in range(1, 40)})

    def cycle(times: int) -> None:
        for _ in range(times):
            raised = run_and_close(module.instantiate(8 * MIB, image), Killing(engine))
            assert raised is None or isinstance(raised, (GuestTrap, Killed))

    assert on_guest_thread(engine, lambda: cycle(100)) is None
    growth = Growth()
    assert on_guest_thread(engine, lambda: cycle(1000)) is None
    growth.assert_none(bytes_allowed=4 * MIB)
    assert image_mappings() == 0


def test_a_hundred_images_leave_no_file(engine: WasmtimeEngine) -> None:
    wat = program("", pages=40)
    captured(engine, wat, {DATA: b"x" * PAGE})
    growth = Growth()
    for number in range(100):
        image = captured(engine, wat, {DATA: bytes([number]) * PAGE})
        instance = load(engine, wat).instantiate(8 * MIB, image)
        assert text(instance, DATA, 1) == bytes([number])
        instance.close()
        del image
    growth.assert_none(bytes_allowed=4 * MIB)
