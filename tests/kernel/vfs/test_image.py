"""The image builder, and the tree with which every sandbox starts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernel.vfs.world import USER, World, fails, image
from wasmsand.kernel import flags
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import ROOT, ImageBuilder, standard_tree
from wasmsand.kernel.vfs import model as m


@pytest.fixture(scope="module")
def standard() -> World:
    return World(image(standard_tree))


def test_parents_are_made_and_may_be_given_a_mode_later() -> None:
    def fill(builder: ImageBuilder) -> None:
        builder.add_file(b"/a/b/c", b"x", 0o600, 7, 8)
        builder.add_dir(b"/a/b", 0o700, 7, 8)

    world = World(image(fill))
    stat = world.ns.stat(world.find(b"/a/b"))
    assert (stat.mode, stat.uid, stat.gid, stat.nlink) == (flags.S_IFDIR | 0o700, 7, 8, 2)
    stat = world.ns.stat(world.find(b"/a/b/c"))
    assert (stat.mode, stat.uid, stat.size, stat.blocks) == (flags.S_IFREG | 0o600, 7, 1, 8)
    assert world.ns.stat(world.root).nlink == 3
    assert world.ns.path_of(world.find(b"/a/b/c")) == b"/a/b/c"


def test_many_names_of_one_file_are_one_inode() -> None:
    def fill(builder: ImageBuilder) -> None:
        builder.add_file(b"/bin/coreutils", b"\0asm", 0o755, content_key="k")
        for name in (b"ls", b"cat"):
            builder.add_link(b"/bin/" + name, b"/bin/coreutils")

    world = World(image(fill))
    assert world.find(b"/bin/ls") == world.find(b"/bin/cat")
    assert world.ns.stat(world.find(b"/bin/ls")).nlink == 3
    world.unlink(b"/bin/ls")
    assert world.ns.stat(world.find(b"/bin/cat")).nlink == 2
    assert world.used() == (0, 0)


def test_the_hosts_mistakes_are_value_errors() -> None:
    builder = ImageBuilder()
    builder.add_file(b"/f", b"")
    mistakes: tuple[Callable[[], object], ...] = (
        lambda: builder.add_file(b"/f", b""),
        lambda: builder.add_file(b"relative", b""),
        lambda: builder.add_file(b"/a/../b", b""),
        lambda: builder.add_file(b"/f/below", b""),
        lambda: builder.add_file(b"/later", lambda: b"x"),
        lambda: builder.add_file(b"/" + b"n" * 256, b""),
        lambda: builder.add_dir(b"/f"),
        lambda: builder.add_symlink(b"/l", b""),
        lambda: builder.add_link(b"/l", b"/missing"),
    )
    for mistake in mistakes:
        with pytest.raises(ValueError, match=r"."):
            mistake()


def test_two_builds_of_the_same_calls_are_the_same_image() -> None:
    first, second = World(image(standard_tree)), World(image(standard_tree))
    assert first.names(b"/") == second.names(b"/")
    for path in (b"/etc/passwd", b"/dev/null", b"/tmp"):
        assert first.ns.stat(first.find(path)) == second.ns.stat(second.find(path))


def test_the_standard_devices_have_linux_numbers(standard: World) -> None:
    for name, device in {
        b"null": (1, 3),
        b"zero": (1, 5),
        b"full": (1, 7),
        b"random": (1, 8),
        b"urandom": (1, 9),
        b"tty": (5, 0),
        b"console": (5, 1),
        b"ptmx": (5, 2),
    }.items():
        stat = standard.ns.stat(standard.find(b"/dev/" + name))
        assert (m.device_major(stat.rdev), m.device_minor(stat.rdev)) == device
        assert stat.mode & flags.S_IFMT == flags.S_IFCHR


def test_the_standard_tree_has_the_owners_and_modes_of_linux(standard: World) -> None:
    for path, mode, owner in (
        (b"/tmp", 0o1777, 0),
        (b"/var/tmp", 0o1777, 0),
        (b"/dev/shm", 0o1777, 0),
        (b"/root", 0o700, 0),
        (b"/home/user", 0o755, 1000),
        (b"/etc/passwd", 0o644, 0),
    ):
        stat = standard.ns.stat(standard.find(path))
        assert (stat.mode & 0o7777, stat.uid) == (mode, owner)
    assert standard.find(b"/bin") == standard.find(b"/usr/bin") == standard.find(b"/sbin")
    assert standard.find(b"/lib") == standard.find(b"/usr/lib")
    assert standard.ns.readlink(standard.find(b"/dev/stdin", follow=False)) == b"/proc/self/fd/0"
    with fails(Errno.ENOENT):
        standard.find(b"/etc/localtime")


def test_the_user_writes_at_home_and_not_elsewhere(standard: World) -> None:
    world = standard.fork()
    create = flags.O_CREAT | flags.O_WRONLY
    world.open(b"/home/user/f", create, cred=USER)
    world.open(b"/tmp/f", create, cred=USER)
    for path in (b"/f", b"/etc/f", b"/usr/bin/f", b"/root/f"):
        with fails(Errno.EACCES):
            world.open(path, create, cred=USER)
    assert world.names(b"/home/user") == [b"f"]
    world.ns.access(ROOT, world.find(b"/root"), flags.W_OK)


def test_a_directory_is_read_once_when_first_looked_into() -> None:
    calls: list[str] = []

    def zones(part: ImageBuilder) -> None:
        calls.append("read")
        part.add_file(b"/share/zones/Area/City", b"city", 0o644)
        part.add_symlink(b"/share/zones/Town", b"Area/City")

    def fill(builder: ImageBuilder) -> None:
        builder.add_dir_later(b"/share/zones", zones, inodes=3, subdirs=1)
        builder.add_file(b"/after", b"2")

    tree = image(fill)
    first, second = World(tree), World(tree)
    assert first.ns.stat(first.find(b"/share/zones")).nlink == 3
    assert first.ns.stat(first.find(b"/share")).nlink == 3
    after = first.ns.stat(first.find(b"/after")).ino
    assert calls == []
    city = first.ns.stat(first.find(b"/share/zones/Area/City")).ino
    assert second.ns.stat(second.find(b"/share/zones/Town")).ino == city
    assert calls == ["read"]
    # The numbers were reserved, so entries that were added later have greater ones.
    assert city < after
    first.unlink(b"/share/zones/Town")
    assert second.ns.path_of(second.find(b"/share/zones/Area/City")) == b"/share/zones/Area/City"


def test_a_directory_must_hold_what_was_declared() -> None:
    def fill(builder: ImageBuilder) -> None:
        builder.add_dir_later(b"/d", lambda part: part.add_file(b"/d/f", b""), inodes=2, subdirs=0)

    world = World(image(fill))
    with pytest.raises(ValueError, match="announced content"):
        world.find(b"/d/f")
