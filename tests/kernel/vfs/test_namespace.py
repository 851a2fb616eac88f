"""Path operations that the comparison with Linux does not cover: mounts, flags of open, devices,
limits of names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kernel.vfs.world import OTHER, USER, World, fails
from wasmsand.kernel import flags as numbers
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs import ROOT
from wasmsand.kernel.vfs import model as m

CREATE = numbers.O_WRONLY | numbers.O_CREAT


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def mounted(world: World) -> World:
    """/ro is a read-only mount with a file, /rw a writable one."""
    for name, flags in ((b"/ro", numbers.MS_RDONLY), (b"/rw", 0)):
        inner = World()
        inner.write(b"/file", b"x", 0o666)
        inner.mkdir(b"/dir")
        world.ns.mount(world.mkdir(name), inner.tree, flags)
    return world


def test_a_read_only_mount_refuses_every_change(mounted: World) -> None:
    ns, root = mounted.ns, mounted.root
    node = mounted.find(b"/ro/file")
    changes: tuple[Callable[[], object], ...] = (
        lambda: mounted.open(b"/ro/new", CREATE),
        lambda: mounted.open(b"/ro/file", numbers.O_WRONLY),
        lambda: mounted.open(b"/ro/file", numbers.O_RDONLY | numbers.O_TRUNC),
        lambda: mounted.mkdir(b"/ro/new"),
        lambda: mounted.symlink(b"x", b"/ro/new"),
        lambda: ns.mknod(ROOT, root, b"/ro/new", numbers.S_IFIFO | 0o644),
        lambda: mounted.link(b"/ro/file", b"/ro/new"),
        lambda: mounted.unlink(b"/ro/file"),
        lambda: mounted.unlink(b"/ro/missing"),
        lambda: mounted.rmdir(b"/ro/dir"),
        lambda: mounted.rename(b"/ro/file", b"/ro/new"),
        lambda: ns.chmod(ROOT, node, 0),
        lambda: ns.chown(ROOT, node, 1, 1),
        lambda: ns.utimens(ROOT, node, 1, 1),
        lambda: ns.truncate(ROOT, node, 0),
        lambda: ns.resize(ROOT, node, 0),
        lambda: ns.write(ROOT, node, 0, b"y"),
        lambda: ns.fallocate(ROOT, node, 0, 0, 1),
        lambda: ns.access(ROOT, node, numbers.W_OK),
    )
    for change in changes:
        with fails(Errno.EROFS):
            change()
    assert mounted.read(b"/ro/file") == b"x"
    mounted.open(b"/ro/file", numbers.O_RDONLY)
    ns.access(ROOT, node, numbers.R_OK)
    with fails(Errno.EEXIST):
        mounted.mkdir(b"/ro/dir")


def test_names_do_not_cross_mounts(mounted: World) -> None:
    with fails(Errno.EXDEV):
        mounted.rename(b"/rw/file", b"/moved")
    with fails(Errno.EXDEV):
        mounted.link(b"/rw/file", b"/linked")


def test_a_mount_point_is_busy(mounted: World) -> None:
    with fails(Errno.EBUSY):
        mounted.rmdir(b"/rw")
    with fails(Errno.EBUSY):
        mounted.rename(b"/rw", b"/elsewhere")
    mounted.mkdir(b"/dir")
    with fails(Errno.EBUSY):
        mounted.rename(b"/dir", b"/rw")
    with fails(Errno.EBUSY):
        mounted.rmdir(b"/")
    with fails(Errno.EISDIR):
        mounted.unlink(b"/rw")


def test_creating_through_a_dangling_link_makes_its_target(world: World) -> None:
    world.mkdir(b"/d")
    world.symlink(b"d/made", b"/l1")
    world.symlink(b"l1", b"/l2")
    world.write(b"/l2", b"through")
    assert world.read(b"/d/made") == b"through"
    world.symlink(b"d/never", b"/l3")
    with fails(Errno.EEXIST):
        world.open(b"/l3", CREATE | numbers.O_EXCL)
    with fails(Errno.ELOOP):
        world.open(b"/l3", CREATE | numbers.O_NOFOLLOW)
    world.symlink(b"loop", b"/loop")
    with fails(Errno.ELOOP):
        world.open(b"/loop", CREATE)
    assert world.names(b"/d") == [b"made"]


def test_open_follows_a_link_across_a_mount(mounted: World) -> None:
    mounted.symlink(b"/rw/new", b"/link")
    mounted.write(b"/link", b"there")
    assert mounted.read(b"/rw/new") == b"there"


def test_path_descriptors_need_no_permission_on_the_object(world: World) -> None:
    world.write(b"/secret", b"", 0o000)
    world.symlink(b"secret", b"/link")
    with fails(Errno.EACCES):
        world.open(b"/secret", numbers.O_RDONLY, cred=USER)
    assert world.open(b"/secret", numbers.O_PATH, cred=USER) == world.find(b"/secret")
    link = world.open(b"/link", numbers.O_PATH | numbers.O_NOFOLLOW, cred=USER)
    assert world.ns.readlink(link) == b"secret"
    with fails(Errno.ENOTDIR):
        world.open(b"/secret", numbers.O_PATH | numbers.O_DIRECTORY)


def test_a_new_file_may_be_opened_as_its_mode_would_not_allow(world: World) -> None:
    world.mkdir(b"/tmp", 0o1777)
    world.open(b"/tmp/f", numbers.O_RDWR | numbers.O_CREAT, 0o000, USER)
    with fails(Errno.EACCES):
        world.open(b"/tmp/f", numbers.O_RDWR | numbers.O_CREAT, 0o000, USER)


def test_open_refuses_what_linux_refuses(world: World) -> None:
    world.mkdir(b"/d")
    with fails(Errno.EINVAL):
        world.open(b"/d", numbers.O_CREAT | numbers.O_DIRECTORY)
    with fails(Errno.EOPNOTSUPP):
        world.open(b"/d", numbers.O_TMPFILE_BIT | numbers.O_DIRECTORY | numbers.O_RDWR)
    with fails(Errno.EISDIR):
        world.open(b"/d", numbers.O_CREAT)
    world.ns.mknod(ROOT, world.root, b"/sock", numbers.S_IFSOCK | 0o666)
    with fails(Errno.ENXIO):
        world.open(b"/sock", numbers.O_RDWR)
    world.write(b"/f", b"", 0o666)
    with fails(Errno.EPERM):
        world.open(b"/f", numbers.O_RDONLY | numbers.O_NOATIME, cred=USER)


def test_only_root_makes_devices_and_a_device_keeps_its_number(world: World) -> None:
    world.mkdir(b"/dev", 0o777)
    null = m.device_number(1, 3)
    with fails(Errno.EPERM):
        world.ns.mknod(USER, world.root, b"/dev/null", numbers.S_IFCHR | 0o666, null)
    world.ns.mknod(ROOT, world.root, b"/dev/null", numbers.S_IFCHR | 0o666, null, umask=0o022)
    stat = world.ns.stat(world.find(b"/dev/null"))
    assert (stat.mode, stat.rdev) == (numbers.S_IFCHR | 0o644, null)
    assert (m.device_major(null), m.device_minor(null)) == (1, 3)
    with fails(Errno.EPERM):
        world.ns.mknod(ROOT, world.root, b"/dev/x", numbers.S_IFDIR | 0o755)
    with fails(Errno.EINVAL):
        world.ns.mknod(ROOT, world.root, b"/dev/x", numbers.S_IFLNK | 0o755)
    world.ns.mknod(USER, world.root, b"/dev/plain", 0o600)
    assert world.ns.stat(world.find(b"/dev/plain")).mode == numbers.S_IFREG | 0o600


def test_devices_on_a_nodev_mount_cannot_be_opened(world: World) -> None:
    inner = World()
    inner.ns.mknod(ROOT, inner.root, b"/null", numbers.S_IFCHR | 0o666, m.device_number(1, 3))
    world.ns.mount(world.mkdir(b"/mnt"), inner.tree, numbers.MS_NODEV)
    with fails(Errno.EACCES):
        world.open(b"/mnt/null", numbers.O_RDONLY)


def test_a_noexec_mount_denies_execution(world: World) -> None:
    inner = World()
    inner.write(b"/tool", b"", 0o755)
    world.ns.mount(world.mkdir(b"/mnt"), inner.tree, numbers.MS_NOEXEC)
    with fails(Errno.EACCES):
        world.ns.access(ROOT, world.find(b"/mnt/tool"), numbers.X_OK)
    world.ns.access(ROOT, world.find(b"/mnt"), numbers.X_OK)


def test_root_executes_only_what_somebody_may_execute(world: World) -> None:
    node = world.write(b"/f", b"", 0o666)
    with fails(Errno.EACCES):
        world.ns.access(ROOT, node, numbers.X_OK)
    world.ns.chmod(ROOT, node, 0o001)
    world.ns.access(ROOT, node, numbers.X_OK | numbers.R_OK | numbers.W_OK)


def test_in_a_sticky_directory_only_owners_remove_and_rename(world: World) -> None:
    world.mkdir(b"/tmp", 0o1777)
    world.open(b"/tmp/f", CREATE, cred=USER)
    world.open(b"/tmp/g", CREATE, cred=OTHER)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: world.unlink(b"/tmp/f", OTHER),
        lambda: world.rename(b"/tmp/f", b"/tmp/h", cred=OTHER),
        lambda: world.rename(b"/tmp/g", b"/tmp/f", cred=OTHER),
    )
    for attempt in attempts:
        with fails(Errno.EPERM):
            attempt()
    world.rename(b"/tmp/f", b"/tmp/h", cred=USER)
    world.unlink(b"/tmp/g", OTHER)
    world.unlink(b"/tmp/h")


def test_exchange_swaps_a_file_and_a_directory(world: World) -> None:
    world.mkdir(b"/a")
    world.mkdir(b"/a/d")
    world.write(b"/a/d/inside", b"1")
    world.write(b"/f", b"2")
    world.rename(b"/a/d", b"/f", numbers.RENAME_EXCHANGE)
    assert world.read(b"/a/d") == b"2"
    assert world.read(b"/f/inside") == b"1"
    assert world.ns.path_of(world.find(b"/f")) == b"/f"
    assert world.ns.resolve(ROOT, world.find(b"/f"), b"..") == world.root
    assert [world.ns.stat(world.find(p)).nlink for p in (b"/", b"/a")] == [4, 2]


def test_names_and_link_texts_have_their_lengths(world: World) -> None:
    world.write(b"/" + b"n" * 255, b"")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: world.mkdir(b"/" + b"n" * 256),
        lambda: world.open(b"/" + b"n" * 256, CREATE),
        lambda: world.rename(b"/" + b"n" * 255, b"/" + b"n" * 256),
        lambda: world.unlink(b"/" + b"n" * 256),
        lambda: world.symlink(b"t" * 4096, b"/l"),
    )
    for attempt in attempts:
        with fails(Errno.ENAMETOOLONG):
            attempt()
    world.symlink(b"t" * 4095, b"/l")
    with fails(Errno.ENOENT):
        world.symlink(b"", b"/empty")


def test_fallocate_allocates_keeps_the_size_and_punches(world: World) -> None:
    ns = world.ns
    node = world.write(b"/f", b"data")
    keep, punch, zero = (
        numbers.FALLOC_FL_KEEP_SIZE,
        numbers.FALLOC_FL_PUNCH_HOLE,
        numbers.FALLOC_FL_ZERO_RANGE,
    )
    ns.fallocate(ROOT, node, keep, 0, 100_000)
    assert (ns.stat(node).size, ns.stat(node).blocks) == (4, 200)
    ns.fallocate(ROOT, node, 0, 0, 100_000)
    assert ns.read(node, 0, 6) == b"data\0\0"
    ns.fallocate(ROOT, node, punch | keep, 0, 65_536)
    assert (ns.read(node, 0, 4), ns.stat(node).size) == (bytes(4), 100_000)
    assert ns.seek_data(node, 0) == 65_536
    ns.fallocate(ROOT, node, zero, 0, 4096)
    assert ns.seek_data(node, 0) == 0
    for mode, offset, length, errno in (
        (0, -1, 1, Errno.EINVAL),
        (0, 0, 0, Errno.EINVAL),
        (punch, 0, 1, Errno.EOPNOTSUPP),
        (8, 0, 1, Errno.EOPNOTSUPP),
        (0, 1 << 44, 1, Errno.EFBIG),
    ):
        with fails(errno):
            ns.fallocate(ROOT, node, mode, offset, length)
    with fails(Errno.EISDIR):
        ns.fallocate(ROOT, world.root, 0, 0, 1)


def test_writing_takes_set_id_bits_from_everybody_but_root(world: World) -> None:
    node = world.write(b"/f", b"", 0o6777)
    world.ns.write(ROOT, node, 0, b"x")
    assert world.ns.stat(node).mode & 0o7777 == 0o6777
    world.ns.write(USER, node, 0, b"x")
    assert world.ns.stat(node).mode & 0o7777 == 0o777


def test_chmod_of_a_link_is_not_supported(world: World) -> None:
    world.symlink(b"x", b"/l")
    with fails(Errno.EOPNOTSUPP):
        world.ns.chmod(ROOT, world.find(b"/l", follow=False), 0o777)
