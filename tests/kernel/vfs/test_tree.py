"""The tree: forks, frozen trees, limits, lifetime of inodes."""

from __future__ import annotations

import random

import pytest

from tests.kernel.vfs.script import Script, TreeRunner
from tests.kernel.vfs.world import World, fails, image
from wasmsand.kernel import flags
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import LINK_MAX, Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Namespace, Node, TreeFs
from wasmsand.kernel.vfs import model as m
from wasmsand.kernel.vfs.inode import FileInode, SymlinkInode
from wasmsand.kernel.vfs.layers import LAYERS_MAX
from wasmsand.kernel.vfs.store import target_blocks


def dump(namespace: Namespace) -> dict[bytes, object]:
    """Everything visible: attributes and content, by path."""
    seen: dict[bytes, object] = {}

    def visit(node: Node, path: bytes) -> None:
        stat = namespace.stat(node)._replace(dev=0, atime_ns=0)  # reading changes the access time
        kind = stat.mode & flags.S_IFMT
        if kind == flags.S_IFDIR:
            seen[path] = stat
            for entry in namespace.readdir(node, 0, 100_000)[2:]:
                visit(Node(node.fs, entry.ino), path + b"/" + entry.name)
        elif kind == flags.S_IFREG:
            seen[path] = (stat, namespace.read(node, 0, stat.size))
        elif kind == flags.S_IFLNK:
            seen[path] = (stat, namespace.readlink(node))
        else:
            seen[path] = stat

    visit(namespace.root, b"")
    return seen


def recount(tree: TreeFs) -> tuple[int, int]:
    """(blocks, inodes) counted by a walk over all names."""
    blocks = inodes = 0
    seen: dict[int, int] = {}

    def visit(ino: int) -> None:
        for entry in tree.readdir(ino, 0, 100_000)[2:]:
            seen[entry.ino] = seen.get(entry.ino, 0) + 1
            if entry.type == flags.S_IFDIR:
                visit(entry.ino)

    visit(tree.root_ino)
    image_end = tree.freeze().image_end
    for ino, names in seen.items():
        inode = tree.attributes(ino)
        inodes += max(0, names - tree._table.image_links(ino)) if ino < image_end else names
        if isinstance(inode, FileInode):
            blocks += inode.content.blocks
        elif isinstance(inode, SymlinkInode) and ino >= image_end:
            blocks += target_blocks(inode.target)
    return blocks, inodes


@pytest.mark.parametrize("seed", range(6))
def test_forks_at_random_moments_never_see_each_other(seed: int) -> None:
    operations = Script(1000 + seed).operations(400)
    choose = random.Random(seed)
    runner = TreeRunner()
    kept: list[tuple[Namespace, dict[bytes, object]]] = []
    for operation in operations:
        runner.run(operation)
        if choose.random() < 0.05:
            tree = runner.namespace.root.fs
            assert isinstance(tree, TreeFs)
            twin = Namespace(TreeFs(tree.freeze(), tree.limits))
            assert dump(twin) == dump(runner.namespace)
            assert recount(twin.root.fs) == (  # type: ignore[arg-type]  # always a tree
                twin.root.fs.space.used_blocks,  # type: ignore[attr-defined]
                twin.root.fs.space.used_inodes,  # type: ignore[attr-defined]
            )
            kept.append((twin, dump(twin)))
    for twin, before in kept:
        assert dump(twin) == before


def test_a_fork_of_a_changed_image_goes_on_alone() -> None:
    base = image(lambda builder: builder.add_file(b"/etc/motd", b"welcome"))
    first = World(base)
    first.write(b"/etc/motd", b"changed")
    second = first.fork()
    second.unlink(b"/etc/motd")
    second.write(b"/new", b"only here")
    first.ns.write(ROOT, first.find(b"/etc/motd"), 0, b"CHA")
    assert first.read(b"/etc/motd") == b"CHAnged"
    assert first.names(b"/") == [b"etc"]
    assert second.names(b"/etc") == []
    assert World(base).read(b"/etc/motd") == b"welcome"


def test_many_freezes_keep_the_chain_short_and_the_files_right() -> None:
    world = World(image(lambda builder: builder.add_file(b"/gone", b"x")))
    world.unlink(b"/gone")
    for number in range(5 * LAYERS_MAX):
        world.write(b"/count", b"%d" % number)
        world.write(b"/f%d" % number, b"x")
        if number:
            world.unlink(b"/f%d" % (number - 1))
        frozen = world.tree.freeze()
        if frozen.is_long:
            merged = frozen.merged()
            world.tree.stand_on(merged, instead_of=frozen)
            frozen = merged
        assert len(world.tree.freeze().layers) <= LAYERS_MAX
    last = 5 * LAYERS_MAX - 1
    assert world.names(b"/") == [b"count", b"f%d" % last]
    assert World(frozen).read(b"/count") == b"%d" % last
    assert world.used() == (2 * m.BLOCK_SIZE, 2)


def test_layers_are_merged_while_the_tree_changes_and_is_frozen_again() -> None:
    world = World(image(lambda builder: builder.add_file(b"/gone", b"x")))
    for number in range(LAYERS_MAX + 1):
        world.write(b"/f", b"%d" % number)
        frozen = world.tree.freeze()
    merged = frozen.merged()
    world.unlink(b"/gone")
    world.write(b"/f", b"changed")
    later = world.tree.freeze()
    world.write(b"/new", b"x")
    world.tree.stand_on(merged, instead_of=frozen)
    assert len(world.tree.freeze().layers) == 4
    assert (world.names(b"/"), world.read(b"/f")) == ([b"f", b"new"], b"changed")
    assert World(later).names(b"/") == [b"f"]
    assert World(merged).read(b"/f") == b"%d" % LAYERS_MAX
    assert World(merged).names(b"/") == World(frozen).names(b"/") == [b"gone", b"f"]
    before = world.tree.freeze().layers
    world.tree.stand_on(merged, instead_of=frozen)  # it has other layers below it by now
    assert world.tree.freeze().layers == before


def test_freezing_an_unchanged_tree_adds_no_layer() -> None:
    world = World()
    world.write(b"/a", b"x")
    assert world.tree.freeze().layers == world.tree.freeze().layers


def test_the_image_costs_nothing_and_gives_nothing_back() -> None:
    world = World(image(lambda builder: builder.add_file(b"/big", b"x" * 1_000_000)))
    assert world.used() == (0, 0)
    world.unlink(b"/big")
    assert world.used() == (0, 0)


def test_enospc_names_the_option_to_raise() -> None:
    world = World(limits=Limits(fs_limit_bytes=8192, max_inodes=2))
    node = world.write(b"/a", b"x" * 8192)
    with pytest.raises(KernelError) as full:
        world.ns.write(ROOT, node, 8192, b"y")
    assert full.value.detail == "file system full (8192 bytes); raise fs_limit_bytes"
    world.mkdir(b"/d")
    with pytest.raises(KernelError) as many:
        world.mkdir(b"/e")
    assert many.value.errno is Errno.ENOSPC
    assert many.value.detail == "too many files (2 inodes); raise max_inodes"
    assert world.names(b"/") == [b"a", b"d"]


def test_removing_gives_bytes_and_inodes_back() -> None:
    world = World()
    world.write(b"/a", b"x" * 100_000)
    world.symlink(b"t" * 100, b"/long")
    world.link(b"/a", b"/b")
    world.mkdir(b"/d")
    assert world.used() == ((25 + 1) * m.BLOCK_SIZE, 4)
    world.unlink(b"/a")
    assert world.used() == ((25 + 1) * m.BLOCK_SIZE, 3)
    world.rename(b"/long", b"/b")
    assert world.used() == (m.BLOCK_SIZE, 2)
    world.unlink(b"/b")
    world.rmdir(b"/d")
    assert world.used() == (0, 0)


def test_every_name_counts_so_that_hard_links_cannot_fill_the_host() -> None:
    world = World(image(lambda builder: builder.add_file(b"/a", b"")), limits=Limits(max_inodes=3))
    for name in (b"/1", b"/2", b"/3"):
        world.link(b"/a", name)
    with fails(Errno.ENOSPC):
        world.link(b"/a", b"/4")
    world.unlink(b"/a")
    world.link(b"/1", b"/4")
    assert world.used() == (0, 3)


def test_an_unlinked_file_lives_until_its_last_release() -> None:
    world = World()
    node = world.write(b"/a", b"still here")
    world.ns.retain(node)
    world.ns.retain(node)
    world.unlink(b"/a")
    world.ns.release(node)
    assert world.ns.read(node, 0, 100) == b"still here"
    assert world.ns.stat(node).nlink == 0
    world.ns.write(ROOT, node, 0, b"x" * 100_000)
    assert world.used() == (25 * m.BLOCK_SIZE, 1)
    world.ns.release(node)
    assert world.used() == (0, 0)
    with fails(Errno.ENOENT):
        world.ns.stat(node)


def test_an_open_file_without_a_name_is_not_part_of_a_fork() -> None:
    world = World()
    node = world.write(b"/a", b"x" * 10_000)
    world.ns.retain(node)
    world.unlink(b"/a")
    twin = world.fork()
    assert twin.used() == (0, 0)
    assert world.used() == (3 * m.BLOCK_SIZE, 1)
    world.ns.release(node)
    assert world.used() == (0, 0)


def test_an_unlinked_file_cannot_be_linked_again() -> None:
    world = World()
    node = world.write(b"/a", b"")
    world.ns.retain(node)
    world.unlink(b"/a")
    with fails(Errno.ENOENT):
        world.ns.link(ROOT, node, world.root, b"/b")


def test_a_removed_working_directory_is_empty_and_leads_up() -> None:
    world = World()
    world.mkdir(b"/a")
    inner = world.mkdir(b"/a/b")
    world.ns.retain(inner)
    world.rmdir(b"/a/b")
    world.rmdir(b"/a")
    for attempt in (
        lambda: world.ns.resolve(ROOT, inner, b"x"),
        lambda: world.ns.mkdir(ROOT, inner, b"x", 0o755),
        lambda: world.ns.open_node(ROOT, inner, b"x", flags.O_CREAT | flags.O_WRONLY, 0o644),
        lambda: world.ns.readdir(inner),
        lambda: world.ns.path_of(inner),
    ):
        with fails(Errno.ENOENT):
            attempt()
    assert world.ns.resolve(ROOT, inner, b".") == inner
    assert world.ns.resolve(ROOT, inner, b"../..") == world.root
    world.ns.release(inner)
    assert world.used() == (0, 0)


def test_links_of_a_directory_are_two_and_its_subdirectories() -> None:
    world = World()
    for name in (b"/d", b"/d/a", b"/d/b", b"/e"):
        world.mkdir(name)
    world.write(b"/d/file", b"")
    assert world.ns.stat(world.find(b"/d")).nlink == 4
    world.rename(b"/d/a", b"/e/a")
    assert [world.ns.stat(world.find(d)).nlink for d in (b"/d", b"/e")] == [3, 3]
    world.rename(b"/d/b", b"/e/a")
    assert [world.ns.stat(world.find(d)).nlink for d in (b"/d", b"/e")] == [2, 3]


def test_files_ask_to_be_read_in_large_pieces() -> None:
    world = World()
    world.write(b"/file", b"x")
    stat = world.ns.stat(world.find(b"/file"))
    assert (stat.blksize, stat.blocks) == (65536, 8)
    assert world.ns.stat(world.find(b"/")).blksize == 4096


def test_too_many_links_give_emlink() -> None:
    world = World(limits=Limits(max_inodes=LINK_MAX + 10))
    node = world.write(b"/a", b"")
    for number in range(LINK_MAX - 1):
        world.tree.link(node.ino, world.root.ino, b"%d" % number)
    with fails(Errno.EMLINK):
        world.link(b"/a", b"/one-more")


def test_content_key_survives_everything_but_a_write() -> None:
    def fill(builder: ImageBuilder) -> None:
        builder.add_file(b"/bin/tool", b"\0asm", 0o755, content_key="abc")
        builder.add_link(b"/bin/same", b"/bin/tool")

    world = World(image(fill))
    world.ns.chmod(ROOT, world.find(b"/bin/tool"), 0o700)
    world.rename(b"/bin/tool", b"/bin/moved")
    twin = world.fork()
    assert twin.ns.content_key(twin.find(b"/bin/same")) == "abc"
    world.ns.write(ROOT, world.find(b"/bin/moved"), 0, b"\0")
    assert world.ns.content_key(world.find(b"/bin/same")) is None
    assert twin.ns.content_key(twin.find(b"/bin/moved")) == "abc"


def test_a_file_may_not_grow_past_the_largest_size() -> None:
    world = World()
    node = world.write(b"/a", b"")
    with fails(Errno.EFBIG):
        world.ns.write(ROOT, node, 1 << 44, b"x")
    with fails(Errno.EFBIG):
        world.ns.resize(ROOT, node, (1 << 44) + 1)
    assert world.ns.write(ROOT, node, (1 << 44) - 1, b"xy") == 1
    assert world.ns.size(node) == 1 << 44
