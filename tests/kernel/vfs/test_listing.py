"""Listing a directory in steps while it changes."""

from __future__ import annotations

import pytest

from tests.kernel.vfs.world import World, fails
from wasmsand.kernel import flags
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import ROOT, DirEntry


def full(count: int) -> World:
    world = World()
    world.mkdir(b"/d")
    for number in range(count):
        world.write(b"/d/%d" % number, b"")
    return world


def step(world: World, cookie: int, limit: int) -> list[DirEntry]:
    return world.ns.readdir(world.find(b"/d"), cookie, limit)


def test_a_listing_starts_with_the_dots_and_keeps_the_order_of_creation() -> None:
    world = full(3)
    world.mkdir(b"/d/sub")
    entries = step(world, 0, 100)
    assert [entry.name for entry in entries] == [b".", b"..", b"0", b"1", b"2", b"sub"]
    assert entries[0].ino == world.find(b"/d").ino
    assert entries[1].ino == world.root.ino
    assert [entry.type for entry in entries[2:]] == [flags.S_IFREG] * 3 + [flags.S_IFDIR]
    assert [entry.ino for entry in entries[2:]] == [
        world.find(b"/d/" + entry.name).ino for entry in entries[2:]
    ]


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_removing_while_listing_skips_nothing(limit: int) -> None:
    world = full(100)
    cookie, removed = 0, []
    while entries := step(world, cookie, limit):
        cookie = entries[-1].cookie
        for entry in entries:
            if entry.name not in (b".", b".."):
                world.unlink(b"/d/" + entry.name)
                removed.append(entry.name)
    assert removed == [b"%d" % number for number in range(100)]
    world.rmdir(b"/d")


def test_entries_that_exist_throughout_are_listed_once_even_without_a_position() -> None:
    world = full(50)
    others = [b"/other%d" % number for number in range(20)]
    for other in others:
        world.mkdir(other)
    seen, cookie = [], 0
    while entries := step(world, cookie, 5):
        cookie = entries[-1].cookie
        seen += [entry.name for entry in entries]
        for other in others:
            world.ns.readdir(world.find(other))
    assert seen[2:] == [b"%d" % number for number in range(50)]


def test_renaming_what_was_listed_comes_to_an_end() -> None:
    world = full(10)
    cookie, steps = 0, 0
    while entries := step(world, cookie, 3):
        cookie = entries[-1].cookie
        for entry in entries:
            if entry.name not in (b".", b".."):
                world.rename(b"/d/" + entry.name, b"/d/" + entry.name + b"x")
        steps += 1
        assert steps < 20
    assert len(world.names(b"/d")) == 10


def test_a_removed_and_recreated_name_is_not_listed_in_its_old_place() -> None:
    world = full(3)
    first = step(world, 0, 3)
    assert first[-1].name == b"0"
    world.unlink(b"/d/1")
    world.write(b"/d/1", b"")
    assert [entry.name for entry in step(world, first[-1].cookie, 10)] == [b"2"]
    assert world.names(b"/d") == [b"0", b"2", b"1"]


def test_two_listings_of_one_directory_do_not_disturb_each_other() -> None:
    world = full(6)
    one = step(world, 0, 4)
    two = step(world, 0, 3)
    assert [e.name for e in step(world, one[-1].cookie, 9)] == [b"2", b"3", b"4", b"5"]
    assert [e.name for e in step(world, two[-1].cookie, 9)] == [b"1", b"2", b"3", b"4", b"5"]


def test_only_a_directory_can_be_listed() -> None:
    world = World()
    with fails(Errno.ENOTDIR):
        world.ns.readdir(world.write(b"/f", b""))


def test_the_listing_of_a_mounted_root_shows_the_directory_outside_as_its_parent() -> None:
    world, inner = World(), World()
    point = world.mkdir(b"/mnt")
    world.ns.mount(point, inner.tree)
    entries = world.ns.readdir(world.find(b"/mnt"))
    assert [(entry.name, entry.ino) for entry in entries] == [
        (b".", inner.root.ino),
        (b"..", world.root.ino),
    ]
    assert world.ns.resolve(ROOT, world.find(b"/mnt"), b"..") == world.root
