"""Which times an operation moves: access, modification, change, birth."""

from __future__ import annotations

from collections.abc import Callable

from tests.kernel.vfs.world import OTHER, USER, World, fails, image
from wasmsand.kernel import flags
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import NOW, ROOT, Node


def times(world: World, node: Node) -> tuple[int, int, int, int]:
    stat = world.ns.stat(node)
    return stat.atime_ns, stat.mtime_ns, stat.ctime_ns, stat.btime_ns


def test_creating_sets_all_times_and_touches_the_directory() -> None:
    world = World()
    born = world.clock.tick()
    node = world.open(b"/f", flags.O_CREAT | flags.O_WRONLY)
    assert times(world, node) == (born,) * 4
    assert times(world, world.root)[1:3] == (born, born)


def test_writing_moves_modification_and_change() -> None:
    world = World()
    node = world.write(b"/f", b"")
    born = world.clock.ns
    now = world.clock.tick()
    world.ns.write(ROOT, node, 0, b"x")
    assert times(world, node) == (born, now, now, born)
    world.clock.tick()
    world.ns.write(ROOT, node, 0, b"")
    assert times(world, node) == (born, now, now, born)


def test_reading_moves_access_once_after_a_change() -> None:
    world = World()
    node = world.write(b"/f", b"x")
    first = world.clock.tick()
    world.ns.read(node, 0, 1)
    world.clock.tick()
    world.ns.read(node, 0, 1)
    assert times(world, node)[0] == first
    world.clock.tick()
    world.ns.write(ROOT, node, 0, b"y")
    again = world.clock.tick()
    world.ns.read(node, 0, 1)
    assert times(world, node)[0] == again


def test_listing_and_following_count_as_access() -> None:
    world = World()
    directory = world.mkdir(b"/d")
    link = world.symlink(b"d", b"/l")
    now = world.clock.tick()
    world.ns.readdir(directory)
    assert world.find(b"/l") == directory
    assert (times(world, directory)[0], times(world, link)[0]) == (now, now)


def test_reading_the_image_copies_nothing() -> None:
    world = World(image(lambda builder: builder.add_file(b"/f", b"x")))
    world.clock.tick()
    assert world.read(b"/f") == b"x"
    assert times(world, world.find(b"/f"))[0] == 0
    assert not world.tree._table.top


def test_attributes_and_names_move_change_only() -> None:
    world = World()
    node = world.write(b"/f", b"")
    born = world.clock.ns
    changes: tuple[Callable[[], object], ...] = (
        lambda: world.ns.chmod(ROOT, node, 0o600),
        lambda: world.ns.chown(ROOT, node, 1, 1),
        lambda: world.link(b"/f", b"/g"),
        lambda: world.rename(b"/g", b"/h"),
        lambda: world.unlink(b"/h"),
    )
    for change in changes:
        now = world.clock.tick()
        change()
        assert times(world, node) == (born, born, now, born)


def test_truncate_to_the_same_size_moves_times_only_through_a_descriptor() -> None:
    world = World()
    node = world.write(b"/f", b"abc")
    before = times(world, node)
    world.clock.tick()
    world.ns.truncate(ROOT, node, 3)
    assert times(world, node) == before
    world.ns.resize(ROOT, node, 3)
    assert times(world, node)[1] == world.clock.ns
    world.clock.tick()
    world.open(b"/f", flags.O_WRONLY | flags.O_TRUNC)
    assert times(world, node)[1] == world.clock.ns


def test_a_failed_change_moves_nothing() -> None:
    world = World()
    world.mkdir(b"/d")
    world.write(b"/d/f", b"")
    before = times(world, world.root), times(world, world.find(b"/d"))
    world.clock.tick()
    with fails(Errno.ENOTEMPTY):
        world.rmdir(b"/d")
    with fails(Errno.EEXIST):
        world.mkdir(b"/d")
    with fails(Errno.ENOSPC):
        world.ns.fallocate(ROOT, world.find(b"/d/f"), 0, 0, 1 << 40)
    assert (times(world, world.root), times(world, world.find(b"/d"))) == before
    assert times(world, world.find(b"/d/f"))[1] < world.clock.ns


def test_utimens_sets_what_is_given() -> None:
    world = World()
    node = world.write(b"/f", b"")
    now = world.clock.tick()
    world.ns.utimens(ROOT, node, 5, None)
    assert times(world, node)[:3] == (5, 1000, now)
    world.ns.utimens(ROOT, node, None, -7)
    assert times(world, node)[:2] == (5, -7)
    world.ns.utimens(ROOT, node, NOW, NOW)
    assert times(world, node)[:2] == (now, now)


def test_write_permission_is_enough_for_now_but_not_for_another_time() -> None:
    world = World()
    node = world.write(b"/f", b"", 0o666)
    world.ns.utimens(USER, node, NOW, NOW)
    with fails(Errno.EPERM):
        world.ns.utimens(USER, node, 1, 1)
    world.ns.chmod(ROOT, node, 0o644)
    with fails(Errno.EACCES):
        world.ns.utimens(OTHER, node, NOW, NOW)
    world.ns.utimens(OTHER, node, None, None)
