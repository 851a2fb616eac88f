"""The path walk: links, dots, mounts, lengths, search permission."""

from __future__ import annotations

import pytest

from tests.kernel.vfs.world import OTHER, USER, World, fails
from wasmsand.kernel import flags as numbers
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import ROOT


@pytest.fixture
def world() -> World:
    world = World()
    world.mkdir(b"/dir")
    world.mkdir(b"/dir/sub")
    world.write(b"/dir/file", b"content")
    return world


def test_paths_to_one_object_give_one_node(world: World) -> None:
    world.symlink(b"dir", b"/link")
    world.symlink(b"/dir/sub/..", b"/around")
    wanted = world.find(b"/dir/file")
    base = world.find(b"/dir/sub")
    for path in (b"//dir///file", b"/dir/./sub/../file", b"/link/file", b"/around/file"):
        assert world.find(path) == wanted
    assert world.ns.resolve(ROOT, base, b"../file") == wanted
    assert hash(world.ns.resolve(ROOT, base, b"../file")) == hash(wanted)


def test_dot_dot_stops_at_the_root(world: World) -> None:
    assert world.find(b"/../../..") == world.root
    assert world.find(b"/../dir/../../dir") == world.find(b"/dir")


@pytest.mark.parametrize(
    ("path", "errno"),
    [
        (b"", Errno.ENOENT),
        (b"/missing", Errno.ENOENT),
        (b"/missing/..", Errno.ENOENT),
        (b"/dir/file/", Errno.ENOTDIR),
        (b"/dir/file/.", Errno.ENOTDIR),
        (b"/dir/file/..", Errno.ENOTDIR),
        (b"/dir/file/missing", Errno.ENOTDIR),
        (b"/" + b"n" * 256, Errno.ENAMETOOLONG),
        (b"/missing/" + b"n" * 256, Errno.ENOENT),
        (b"/" + b"./" * 2047 + b"x", Errno.ENAMETOOLONG),
    ],
)
def test_a_bad_path_gives_the_errno_of_linux(world: World, path: bytes, errno: Errno) -> None:
    with fails(errno):
        world.find(path)


def test_a_path_of_4095_bytes_is_not_too_long(world: World) -> None:
    assert world.find(b"/" + b"./" * 2046 + b"./") == world.root


def test_forty_links_are_followed_and_forty_one_are_too_many(world: World) -> None:
    world.symlink(b"dir/file", b"/l1")
    for number in range(2, 42):
        world.symlink(b"l%d" % (number - 1), b"/l%d" % number)
    assert world.find(b"/l40") == world.find(b"/dir/file")
    with fails(Errno.ELOOP):
        world.find(b"/l41")


def test_a_link_to_itself_gives_eloop(world: World) -> None:
    world.symlink(b"loop", b"/loop")
    for path in (b"/loop", b"/loop/x"):
        with fails(Errno.ELOOP):
            world.find(path)
    assert world.ns.readlink(world.find(b"/loop", follow=False)) == b"loop"


def test_a_last_link_is_followed_when_asked_or_when_a_slash_follows(world: World) -> None:
    world.symlink(b"dir", b"/link")
    world.symlink(b"dir/file", b"/to-file")
    link = world.find(b"/link", follow=False)
    assert world.ns.stat(link).mode & numbers.S_IFMT == numbers.S_IFLNK
    assert world.find(b"/link/", follow=False) == world.find(b"/dir")
    assert world.find(b"/link/.", follow=False) == world.find(b"/dir")
    with fails(Errno.ENOTDIR):
        world.find(b"/to-file/", follow=False)


def test_a_link_with_a_trailing_slash_demands_a_directory(world: World) -> None:
    world.symlink(b"dir/", b"/good")
    world.symlink(b"dir/file/", b"/bad")
    assert world.find(b"/good/file") == world.find(b"/dir/file")
    with fails(Errno.ENOTDIR):
        world.find(b"/bad")


def test_an_absolute_link_starts_at_the_root_not_at_the_base(world: World) -> None:
    world.symlink(b"/", b"/dir/top")
    assert world.ns.resolve(ROOT, world.find(b"/dir"), b"top/dir/file") == world.find(b"/dir/file")


def test_every_directory_on_the_way_must_grant_search(world: World) -> None:
    world.ns.chmod(ROOT, world.find(b"/dir"), 0o644)
    for path in (b"/dir/file", b"/dir/.", b"/dir/..", b"/dir/missing"):
        with fails(Errno.EACCES):
            world.find(path, USER)
    assert world.find(b"/dir", USER) == world.find(b"/dir")
    assert world.find(b"/dir/file", ROOT)


def test_search_permission_is_that_of_the_class_one_belongs_to(world: World) -> None:
    directory = world.find(b"/dir")
    world.ns.chown(ROOT, directory, USER.uid, 2000)
    world.ns.chmod(ROOT, directory, 0o011)
    with fails(Errno.EACCES):
        world.find(b"/dir/file", USER)
    assert world.find(b"/dir/file", OTHER)
    world.ns.chown(ROOT, directory, 0, 2000)
    world.ns.chmod(ROOT, directory, 0o701)
    with fails(Errno.EACCES):
        world.find(b"/dir/file", USER)


def test_a_base_that_is_no_directory_gives_enotdir(world: World) -> None:
    with fails(Errno.ENOTDIR):
        world.ns.resolve(ROOT, world.find(b"/dir/file"), b"x")


def test_resolve_parent_keeps_the_last_name(world: World) -> None:
    directory = world.find(b"/dir")
    for path, wanted in (
        (b"/dir/new", (directory, b"new")),
        (b"/dir/new/", (directory, b"new")),
        (b"/dir/.", (directory, b".")),
        (b"/dir/..", (directory, b"..")),
        (b"/", (world.root, b"")),
    ):
        assert world.ns.resolve_parent(ROOT, world.root, path) == wanted


def test_path_of_is_the_way_from_the_root(world: World) -> None:
    world.rename(b"/dir/sub", b"/moved")
    for path in (b"/", b"/dir", b"/moved", b"/dir/file"):
        assert world.ns.path_of(world.find(path)) == path


def test_path_of_a_file_follows_its_last_name(world: World) -> None:
    node = world.find(b"/dir/file")
    world.link(b"/dir/file", b"/second")
    assert world.ns.path_of(node) == b"/second"
    world.ns.retain(node)
    world.unlink(b"/second")
    world.unlink(b"/dir/file")
    with fails(Errno.ENOENT):
        world.ns.path_of(node)


def test_a_mount_covers_its_point_and_dot_dot_leads_out(world: World) -> None:
    inner = World()
    inner.mkdir(b"/deep")
    inner.write(b"/deep/f", b"inside")
    world.write(b"/dir/sub/hidden", b"")
    world.ns.mount(world.find(b"/dir/sub"), inner.tree)
    assert world.read(b"/dir/sub/deep/f") == b"inside"
    assert world.find(b"/dir/sub/deep/../..") == world.find(b"/dir")
    assert world.ns.path_of(world.find(b"/dir/sub/deep/f")) == b"/dir/sub/deep/f"
    assert world.ns.path_of(world.find(b"/dir/sub")) == b"/dir/sub"
    with fails(Errno.ENOENT):
        world.find(b"/dir/sub/hidden")
    assert world.ns.stat(world.find(b"/dir/sub")).dev != world.ns.stat(world.root).dev
    world.ns.unmount(inner.tree)
    assert world.find(b"/dir/sub/hidden")


def test_a_mount_on_a_mounted_root_covers_it(world: World) -> None:
    first, second = World(), World()
    second.mkdir(b"/second")
    world.ns.mount(world.find(b"/dir/sub"), first.tree)
    world.ns.mount(world.find(b"/dir/sub"), second.tree)
    assert world.find(b"/dir/sub/second/../..") == world.find(b"/dir")
    assert world.ns.path_of(world.find(b"/dir/sub/second")) == b"/dir/sub/second"
    with fails(Errno.EBUSY):
        world.ns.unmount(first.tree)
    world.ns.unmount(second.tree)
    assert world.names(b"/dir/sub") == []


def test_mounting_needs_a_free_place_and_a_free_file_system(world: World) -> None:
    inner = World()
    with fails(Errno.EBUSY):
        world.ns.mount(world.root, inner.tree)
    with fails(Errno.ENOTDIR):
        world.ns.mount(world.find(b"/dir/file"), inner.tree)
    world.ns.mount(world.find(b"/dir"), inner.tree)
    inner.mkdir(b"/x")
    with fails(Errno.EBUSY):
        world.ns.mount(world.find(b"/dir/x"), inner.tree)


def test_mounts_are_listed_with_their_flags(world: World) -> None:
    inner = World()
    point = world.mkdir(b"/with space")
    world.ns.mount(point, inner.tree, numbers.MS_RDONLY | numbers.MS_NOEXEC, b"data")
    assert world.ns.mounts_text() == (
        b"root / tmpfs rw,relatime 0 0\ndata /with\\040space tmpfs ro,noexec,relatime 0 0\n"
    )
    assert world.ns.mountinfo_text() == (
        b"32 1 0:32 / / rw,relatime - tmpfs root rw\n"
        b"33 32 0:33 / /with\\040space ro,noexec,relatime - tmpfs data ro\n"
    )
    assert (
        world.ns.statfs(world.find(b"/with space")).flags == numbers.MS_RDONLY | numbers.MS_NOEXEC
    )


# A tree caches the directories of earlier paths. Every change to the meaning of a path must
# invalidate the cache.

DEEP = b"/dir/sub/leaf/file"


@pytest.fixture
def deep(world: World) -> World:
    """A path of four names that every user has walked."""
    world.mkdir(b"/dir/sub/leaf")
    world.write(DEEP, b"old")
    world.mkdir(b"/other")
    world.mkdir(b"/other/leaf")
    world.write(b"/other/leaf/file", b"new")
    assert world.find(DEEP, USER) == world.find(DEEP)
    return world


def test_a_directory_that_was_renamed_is_not_found_under_its_old_name(deep: World) -> None:
    node = deep.find(DEEP)
    deep.rename(b"/dir/sub", b"/dir/moved")
    with fails(Errno.ENOENT):
        deep.find(DEEP)
    assert deep.find(b"/dir/moved/leaf/file") == node


def test_directories_that_changed_places_are_found_in_them(deep: World) -> None:
    deep.rename(b"/dir/sub", b"/other", numbers.RENAME_EXCHANGE)
    assert deep.read(DEEP) == b"new"


def test_a_directory_made_again_is_another_one(deep: World) -> None:
    deep.unlink(DEEP)
    deep.rmdir(b"/dir/sub/leaf")
    with fails(Errno.ENOENT):
        deep.find(DEEP)
    deep.mkdir(b"/dir/sub/leaf")
    deep.write(DEEP, b"again")
    assert deep.read(DEEP) == b"again"


def test_a_directory_that_became_a_link_is_followed(deep: World) -> None:
    deep.rename(b"/dir/sub", b"/dir/moved")
    deep.symlink(b"/other", b"/dir/sub")
    assert deep.read(DEEP) == b"new"


def test_a_directory_that_was_closed_to_others_stays_closed(deep: World) -> None:
    deep.ns.chmod(ROOT, deep.find(b"/dir/sub"), 0o700)
    with fails(Errno.EACCES):
        deep.find(DEEP, USER)
    assert deep.find(DEEP) == deep.find(b"/dir/sub/leaf/file")


def test_a_mount_along_a_path_covers_what_was_there(deep: World) -> None:
    mounted = World()
    mounted.mkdir(b"/leaf")
    mounted.write(b"/leaf/file", b"mounted")
    deep.ns.mount(deep.find(b"/dir/sub"), mounted.tree)
    assert deep.read(DEEP) == b"mounted"
    deep.ns.unmount(mounted.tree)
    assert deep.read(DEEP) == b"old"


def test_a_name_that_appears_in_a_known_directory_is_found(deep: World) -> None:
    with fails(Errno.ENOENT):
        deep.find(b"/dir/sub/leaf/new")
    node = deep.write(b"/dir/sub/leaf/new", b"")
    assert deep.find(b"/dir/sub/leaf/new") == node
    deep.unlink(b"/dir/sub/leaf/new")
    with fails(Errno.ENOENT):
        deep.find(b"/dir/sub/leaf/new")


def test_a_directory_in_the_place_of_a_file_is_entered(world: World) -> None:
    with fails(Errno.ENOTDIR):
        world.find(b"/dir/file/name")
    world.unlink(b"/dir/file")
    world.mkdir(b"/dir/file")
    node = world.write(b"/dir/file/name", b"")
    assert world.find(b"/dir/file/name") == node


def test_the_paths_of_many_directories_are_not_mixed_up(world: World) -> None:
    nodes = {}
    for number in range(5000):
        path = b"/dir/sub/%d" % number
        world.mkdir(path)
        nodes[path] = world.write(path + b"/file", b"")
    for path, node in nodes.items():
        assert world.find(path + b"/file") == node
