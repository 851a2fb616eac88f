"""Paths that must stay beneath a directory: none leads out of it."""

from __future__ import annotations

from random import Random

import pytest

from tests.kernel.vfs.world import World, fails
from wasmsand.kernel import flags as numbers
from wasmsand.kernel.errno import Errno, KernelError, PathEscapes
from wasmsand.kernel.vfs import ROOT, Beneath, Node

CREATE = numbers.O_CREAT | numbers.O_WRONLY


@pytest.fixture
def world() -> World:
    world = World()
    for path in (b"/base", b"/base/dir", b"/base/dir/deep", b"/outside", b"/basement"):
        world.mkdir(path)
    world.write(b"/base/file", b"inside")
    world.write(b"/base/dir/file", b"inside too")
    world.write(b"/outside/file", b"secret")
    for target, path in (
        (b"../outside", b"/base/up"),
        (b"/outside", b"/base/absolute"),
        (b"dir/../..", b"/base/above"),
        (b"../file", b"/base/dir/back"),
        (b"/base/file", b"/base/home"),
        (b"../../outside/new", b"/base/dir/dangling"),
        (b"deep/new", b"/base/dir/fresh"),
        (b"above/outside/file", b"/base/chain"),
    ):
        world.symlink(target, path)
    return world


def base(world: World) -> Beneath:
    node = world.find(b"/base")
    return Beneath(node.fs, node.ino)


@pytest.mark.parametrize(
    ("path", "same_as"),
    [
        (b".", b"/base"),
        (b"file", b"/base/file"),
        (b"dir/../file", b"/base/file"),
        (b"./dir/.//deep/../../file", b"/base/file"),
        (b"dir/back", b"/base/file"),
        (b"dir/deep/../back", b"/base/file"),
    ],
)
def test_a_path_that_stays_inside_is_found(world: World, path: bytes, same_as: bytes) -> None:
    assert world.ns.resolve(ROOT, base(world), path) == world.find(same_as)


OUTSIDE = [
    b"..", b"../base/file", b"dir/../../base/file", b"dir/../..", b"/base/file", b"/", b"up/file",
    b"absolute/file", b"home", b"above/outside/file", b"chain", b"dir/deep/../../../base",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_out_is_refused_by_every_operation(world: World, path: bytes) -> None:
    ns, start, inside = world.ns, base(world), world.find(b"/base/file")
    for attempt in (
        lambda: ns.resolve(ROOT, start, path),
        lambda: ns.open_node(ROOT, start, path, numbers.O_RDONLY),
        lambda: ns.open_node(ROOT, start, path, CREATE),
        lambda: ns.mkdir(ROOT, start, path + b"/new", 0o755),
        lambda: ns.unlink(ROOT, start, path + b"/x"),
        lambda: ns.rmdir(ROOT, start, path + b"/x"),
        lambda: ns.symlink(ROOT, b"t", start, path + b"/x"),
        lambda: ns.link(ROOT, inside, start, path + b"/x"),
        lambda: ns.rename(ROOT, start, path + b"/x", start, b"y"),
        lambda: ns.rename(ROOT, start, b"file", start, path + b"/x"),
    ):
        with pytest.raises(PathEscapes):
            attempt()
    assert world.names(b"/outside") == [b"file"]


@pytest.mark.parametrize("path", [b"up", b"absolute", b"chain", b"dir/dangling"])
def test_a_link_that_leads_out_can_itself_be_seen_and_removed(world: World, path: bytes) -> None:
    node = world.ns.resolve(ROOT, base(world), path, follow=False)
    assert world.ns.readlink(node)
    world.ns.unlink(ROOT, base(world), path)
    with fails(Errno.ENOENT):
        world.ns.resolve(ROOT, base(world), path, follow=False)


def test_nothing_is_created_outside_through_a_dangling_link(world: World) -> None:
    with pytest.raises(PathEscapes):
        world.ns.open_node(ROOT, base(world), b"dir/dangling", CREATE, 0o644)
    assert world.names(b"/outside") == [b"file"]


def test_a_dangling_link_that_stays_inside_creates_its_target(world: World) -> None:
    world.ns.open_node(ROOT, base(world), b"dir/fresh", CREATE, 0o644)
    assert world.names(b"/base/dir/deep") == [b"new"]


def test_a_mount_below_is_inside_and_its_parent_too(world: World) -> None:
    mounted = World()
    mounted.write(b"/in", b"")
    world.ns.mount(world.find(b"/base/dir/deep"), mounted.tree)
    assert world.ns.resolve(ROOT, base(world), b"dir/deep/in") == Node(
        mounted.tree, mounted.find(b"/in").ino
    )
    assert world.ns.resolve(ROOT, base(world), b"dir/deep/../file") == world.find(b"/base/dir/file")
    with pytest.raises(PathEscapes):
        world.ns.resolve(ROOT, base(world), b"dir/deep/../../..")


def is_beneath(world: World, node: Node) -> bool:
    path = world.ns.path_of(node)
    return path == b"/base" or path.startswith(b"/base/")


def test_random_paths_over_random_links_end_inside_or_are_refused() -> None:
    random = Random(7)
    names = [b"a", b"b", b"c", b"..", b".", b"base", b"l0", b"l1", b"l2"]
    refused = 0
    for _ in range(60):
        world = World()
        directories = [b"/base", b"/base/a", b"/base/a/b", b"/base/c", b"/a", b"/a/b"]
        for path in directories:
            world.mkdir(path)
        for directory in directories:
            for number in range(3):
                target = b"/".join(random.choices(names, k=random.randint(1, 4)))
                if random.random() < 0.2:
                    target = b"/" + target
                world.symlink(target, directory + b"/l%d" % number)
        for _ in range(60):
            path = b"/".join(random.choices(names, k=random.randint(1, 6)))
            try:
                found = world.ns.resolve(ROOT, base(world), path)
            except PathEscapes:
                refused += 1
            except KernelError as error:
                # The unrestricted walk fails with the same error, or is outside by then.
                with fails(error.errno):
                    world.ns.resolve(ROOT, world.find(b"/base"), path)
            else:
                assert is_beneath(world, found), path
                assert found == world.ns.resolve(ROOT, world.find(b"/base"), path)
    assert refused > 300
