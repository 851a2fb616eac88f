"""Files and directories laid out to be expensive: the cost is proportional to the content.

Times are compared with each other, or have a bound that only a quadratic algorithm misses.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import pytest

from tests.kernel.vfs.world import World, fails
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.flags import O_CREAT, O_WRONLY
from wasmsand.kernel.limits import FREED_PER_CALL, MIB, PATH_MAX, Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Node
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import Space

MANY = 65_536
STRIDE = 2 * CHUNK_SIZE


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(count: int = MANY, space: Space | None = None) -> FileContent:
    """One byte in every second chunk."""
    content = FileContent()
    space = space or Space(1 << 40, 0)
    for number in range(count):
        content.write(number * STRIDE, b"x", space)
    return content


def test_extents_of_an_interleaved_file_are_found_in_linear_time() -> None:
    content = interleaved()
    assert seconds(lambda: list(content.extents())) < 5
    assert list(content.extents()) == [
        (number * STRIDE, min(BLOCK_SIZE, content.size - number * STRIDE)) for number in range(MANY)
    ]


def test_seeking_does_not_depend_on_the_number_of_chunks() -> None:
    content = interleaved()
    middle = MANY // 2 * STRIDE
    assert content.seek_data(middle + CHUNK_SIZE) == middle + STRIDE
    took = seconds(lambda: [content.seek_data(middle + CHUNK_SIZE) for _ in range(2_000)])
    assert took < 2


@pytest.mark.parametrize("order", ["down", "middle"])
def test_chunks_written_in_any_order_are_found_in_order(order: str) -> None:
    content, space = FileContent(), Space(1 << 40, 0)
    places = list(range(4_000))
    places = places[::-1] if order == "down" else places[2_000:] + places[:2_000]
    for place in places:
        content.write(place * STRIDE, b"x", space)
    assert [offset for offset, _ in content.extents()] == [n * STRIDE for n in range(4_000)]


def test_truncating_and_punching_cost_what_they_remove() -> None:
    space = Space(1 << 40, 0)
    content = interleaved(space=space)

    def punch_and_cut() -> None:
        for _ in range(2_000):
            content.punch_hole(1, 1, space)
            content.truncate(content.size - 1, space)

    assert seconds(punch_and_cut) < 5
    content.punch_hole(STRIDE, MANY // 2 * STRIDE, space)
    assert content.blocks == space.used_blocks == MANY - MANY // 2 - 1
    content.truncate(0, space)
    assert (content.chunks, space.used_blocks) == ({}, 0)


def test_the_memory_of_a_large_file_is_freed_in_steps_and_counts_until_then() -> None:
    world = World(limits=Limits(fs_limit_bytes=8_000 * BLOCK_SIZE))
    space = world.tree.space
    tracemalloc.start()
    node = world.write(b"/f", b"")
    for number in range(7_000):
        world.ns.write(ROOT, node, number * CHUNK_SIZE, b"x" * BLOCK_SIZE)
    world.ns.unlink(ROOT, world.root, b"f")
    assert (space.used_blocks, space.free_blocks()) == (0, 8_000)
    assert space.discarded_blocks == 7_000
    node = world.write(b"/g", b"")
    assert space.discarded_blocks == 7_000 - FREED_PER_CALL
    for number in range(8_000):
        world.ns.write(ROOT, node, number * CHUNK_SIZE, b"x" * BLOCK_SIZE)
        assert space.used_blocks + space.discarded_blocks <= 8_000
    with fails(Errno.ENOSPC):
        world.ns.write(ROOT, node, 9_000 * CHUNK_SIZE, b"x")
    assert tracemalloc.get_traced_memory()[1] < 8_000 * BLOCK_SIZE * 1.25
    tracemalloc.stop()
    world.ns.resize(ROOT, node, 0)
    world.write(b"/h", b"x" * 8_000 * BLOCK_SIZE)
    assert (space.used_blocks, space.discarded_blocks) == (8_000, 0)


def test_stat_of_an_image_file_extended_by_many_chunks_looks_at_the_image_only() -> None:
    content, space = FileContent(ImageData(1, b"i")).fork(), Space(1 << 40, 0)
    for number in range(1, 20_000):
        content.write(number * STRIDE, b"x", space)
    assert content.stat_blocks() == 20_000 * BLOCK_SIZE // 512
    assert seconds(lambda: [content.stat_blocks() for _ in range(2_000)]) < 2


def test_allocated_room_takes_no_memory_before_it_is_written() -> None:
    space = Space(256 * MIB, 0)
    content = FileContent()
    for number in range(2_000):  # short chunks that allocating fills up
        content.write(number * CHUNK_SIZE, b"x", space)
    tracemalloc.start()
    content.allocate(0, 256 * MIB, space, keep_size=False)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()
    assert space.free_blocks() == 0
    assert content.write(3 * CHUNK_SIZE - 4, b"written!", space) == 8
    assert content.read(3 * CHUNK_SIZE - 5, 10) == b"\0written!\0"
    with fails(Errno.ENOSPC):
        FileContent().write(0, b"x", space)


def test_a_file_that_was_cut_gives_its_memory_back() -> None:
    space = Space(256 * MIB, 0)
    tracemalloc.start()
    contents = []
    for _ in range(100):
        content = FileContent()
        content.write(0, bytes(CHUNK_SIZE), space)
        content.truncate(CHUNK_SIZE // 2 + 1, space)
        contents.append(content)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 1.25 * space.used_bytes + 100 * 2048


def test_memory_of_small_chunks_is_within_what_is_paid_for() -> None:
    space = Space(256 * MIB, 0)
    tracemalloc.start()
    content = interleaved(10_000, space)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 10_000 * 512 < space.used_bytes == len(content.chunks) * BLOCK_SIZE


def test_a_shared_content_is_charged_and_both_go_on_by_themselves() -> None:
    space = Space(1 << 40, 0)
    left = interleaved(1_000)
    left.allocate(0, 10 * STRIDE, space, keep_size=True)
    right = left.share()
    assert right.blocks == 1_000
    left.write(0, b"LEFT", space)
    right.write(STRIDE, b"RIGHT", space)
    assert (left.read(0, 4), left.read(STRIDE, 5)) == (b"LEFT", b"x\0\0\0\0")
    assert (right.read(0, 4), right.read(STRIDE, 5)) == (b"x\0\0\0", b"RIGHT")


# Directories.


def deep(world: World, depth: int) -> list[Node]:
    """A chain of directories, each in the one before."""
    chain = [world.root]
    for _ in range(depth):
        chain.append(world.ns.mkdir(ROOT, chain[-1], b"d", 0o755))
    return chain


def test_a_chain_of_removed_directories_is_freed_without_recursion() -> None:
    world = World()
    chain = deep(world, 5_000)
    world.ns.retain(chain[-1])
    for above in reversed(chain[:-1]):
        world.ns.rmdir(ROOT, above, b"d")
    assert world.tree.space.used_inodes == 5_000
    world.ns.release(chain[-1])
    # A call frees a part of them; later calls free the rest.
    assert world.tree.space.used_inodes == 5_000 - FREED_PER_CALL
    for number in range(5):
        world.write(b"/%d" % number, b"")
    assert world.tree.space.used_inodes == 5


def test_an_emptied_directory_gives_its_table_back() -> None:
    world = World()
    names = [b"%d" % number for number in range(10_000)]
    here, there = (world.ns.mkdir(ROOT, world.root, name, 0o755) for name in (b"a", b"b"))
    for name in names:
        world.ns.open_node(ROOT, here, name, O_CREAT | O_WRONLY, 0o644)
    tracemalloc.start()
    for name in names:
        world.ns.rename(ROOT, here, name, there, name)
    for name in names:
        world.ns.rename(ROOT, there, name, here, name)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # One table, with a pair of numbers for each name.
    assert held < 10_000 * 260
    attributes = world.tree.attributes(there.ino)
    assert attributes.entries == {}  # type: ignore[attr-defined]
    assert attributes.entries.__sizeof__() < 10_000  # type: ignore[attr-defined]


@pytest.mark.needs_sources
def test_removed_names_are_not_kept_by_old_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wasmsand.kernel.vfs.tree.SCANNED_NAMES_KEPT", 2_000)
    world = World()
    tracemalloc.start()
    for number in range(12):
        directory = world.ns.mkdir(ROOT, world.root, b"dir%d" % number, 0o755)
        names = [b"%d-%d-" % (number, entry) + b"n" * 200 for entry in range(1_000)]
        for name in names:
            world.ns.open_node(ROOT, directory, name, O_CREAT | O_WRONLY, 0o644)
        world.ns.readdir(directory, 0, 10)
        for name in names:
            world.ns.unlink(ROOT, directory, name)
    del names, name
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 4_000 * 350


def test_the_path_of_a_deep_directory_is_too_long() -> None:
    world = World()
    chain = deep(world, PATH_MAX)
    assert len(world.ns.path_of(chain[2_000])) == 4_000
    with fails(Errno.ENAMETOOLONG):
        world.ns.path_of(chain[-1])


def test_unnamed_files_do_not_count_up_from_the_first_name_every_time() -> None:
    world = World(limits=Limits(max_inodes=20_000))
    for number in range(10_000):
        world.write(b"/.unnamed-%d" % number, b"")

    def make() -> None:
        for _ in range(2_000):
            world.ns.release(world.ns.make_unnamed(ROOT, world.root, 0o600))

    assert seconds(make) < 3


@pytest.mark.parametrize("name", [b"a\0b", b"\0"])
def test_names_that_no_program_could_name_again_are_refused(name: bytes) -> None:
    world = World(ImageBuilder().build())
    node = world.write(b"/f", b"")
    for attempt in (
        lambda: world.ns.mkdir(ROOT, world.root, name, 0o755),
        lambda: world.ns.open_node(ROOT, world.root, name, O_CREAT | O_WRONLY, 0o644),
        lambda: world.ns.link(ROOT, node, world.root, name),
        lambda: world.ns.symlink(ROOT, b"x", world.root, name),
        lambda: world.ns.symlink(ROOT, name, world.root, b"link"),
        lambda: world.ns.rename(ROOT, world.root, b"f", world.root, name),
    ):
        with fails(Errno.EINVAL):
            attempt()
    assert [entry.name for entry in world.ns.readdir(world.root)] == [b".", b"..", b"f"]
