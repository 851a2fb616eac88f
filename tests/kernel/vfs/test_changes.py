"""The differences between a tree and its image: complete, and found without visiting everything."""

from __future__ import annotations

import random

import pytest

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import ROOT, FrozenTree, ImageBuilder, Namespace, TreeFs, changes
from wasmsand.kernel.vfs.changes import Change
from wasmsand.kernel.vfs.inode import DirectoryInode, FileInode, Inode, SymlinkInode
from wasmsand.kernel.vfs.layers import ROOT_INO

CREATE = 0o102
NAMES = (b"a", b"b", b"c")
Seen = dict[bytes, tuple[object, ...]]


def image(*, links: bool) -> FrozenTree:
    builder = ImageBuilder()
    for first in NAMES:
        for second in NAMES:
            builder.add_file(b"/".join((b"", first, second, b"file")), first + second)
            builder.add_symlink(b"/".join((b"", first, second, b"link")), b"file")
    builder.add_file(b"/untouched/deep/er/file", b"same")
    tree = TreeFs(builder.build())
    if links:
        namespace = Namespace(tree)
        node = namespace.resolve(ROOT, namespace.root, b"/a/a/file")
        namespace.link(ROOT, node, namespace.root, b"/b/b/hard")
    upper, lower = tree.freeze().merged().layers
    return FrozenTree(({**lower, **upper},), tree.freeze().next_ino, tree.freeze().next_ino)


def act(chance: random.Random, namespace: Namespace) -> None:
    def path() -> bytes:
        depth = chance.randrange(1, 4)
        return b"/" + b"/".join(chance.choice((*NAMES, b"file", b"hard")) for _ in range(depth))

    root = namespace.root
    match chance.randrange(8):
        case 0 | 1:
            node = namespace.open_node(ROOT, root, path(), CREATE, 0o644)
            namespace.write(ROOT, node, 0, chance.randbytes(5))
        case 2:
            namespace.mkdir(ROOT, root, path(), 0o755)
        case 3:
            namespace.unlink(ROOT, root, path())
        case 4:
            namespace.rmdir(ROOT, root, path())
        case 5:
            namespace.rename(ROOT, root, path(), root, path())
        case 6:
            namespace.chmod(ROOT, namespace.resolve(ROOT, root, path()), 0o700)
        case 7:
            if chance.random() < 0.1:
                node = namespace.resolve(ROOT, root, path(), follow=False)
                namespace.link(ROOT, node, root, path())


def everything(tree: FrozenTree) -> Seen:
    """All files of a tree, by path."""
    namespace, found = Namespace(TreeFs(tree)), Seen()

    def visit(path: bytes, ino: int) -> None:
        inode = namespace.root.fs.attributes(ino)
        assert isinstance(inode, Inode)
        found[path] = shown(inode)
        if isinstance(inode, DirectoryInode):
            for name, (child, _) in inode.entries.items():
                visit(path + b"/" + name, child)

    visit(b"", ROOT_INO)
    return found


def shown(inode: Inode) -> tuple[object, ...]:
    content: object = None
    if isinstance(inode, FileInode):
        content = inode.content.read(0, 100)
    elif isinstance(inode, SymlinkInode):
        content = inode.target
    return (inode.mode, content)


def applied(before: Seen, listed: list[Change]) -> Seen:
    """What a tree is after these changes."""
    after = dict(before)
    for change in listed:
        path = b"/" + change.path if change.path else b""
        if change.inode is None or not isinstance(change.inode, DirectoryInode):
            for old in [old for old in after if old == path or old.startswith(path + b"/")]:
                del after[old]
        if change.inode is not None:
            after[path] = shown(change.inode)
    return after


@pytest.mark.needs_sources
@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_random_changes_are_listed_completely(
    seed: int, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, base = random.Random(seed), image(links=links)
    before, tree = everything(base), TreeFs(base)
    namespace = Namespace(tree)
    for step in range(60):
        try:
            act(chance, namespace)
        except KernelError:
            continue
        if step % 5 == 0:
            frozen = tree.freeze()
            if chance.random() < 0.3:
                merged = frozen.merged()
                tree.stand_on(merged, instead_of=frozen)
                frozen = merged
            listed = list(changes(frozen))
            assert applied(before, listed) == everything(frozen)
            with monkeypatch.context() as patched:
                patched.setitem(changes.__globals__, "_touched", lambda _: None)
                assert listed == list(changes(frozen))


def test_only_directories_with_changes_are_visited() -> None:
    builder = ImageBuilder()
    for number in range(2000):
        builder.add_file(b"/lib/%d/file" % number, b"x")
    base = builder.build()
    visited: list[int] = []

    class Watched(dict[int, Inode]):
        def get(self, ino: int, default: object = None) -> Inode | None:  # type: ignore[override]
            visited.append(ino)
            return super().get(ino)

    tree = TreeFs(base)
    namespace = Namespace(tree)
    node = namespace.resolve(ROOT, namespace.root, b"/lib/7/file")
    namespace.write(ROOT, node, 0, b"y")
    frozen = tree.freeze()
    *upper, lowest = frozen.layers
    watched = FrozenTree((*upper, Watched(lowest)), frozen.next_ino, frozen.image_end)
    listed = [change.path for change in changes(watched)]
    assert listed == [b"", b"lib/7", b"lib/7/file"]
    # Each name in a visited directory is looked at, but nothing below the others.
    assert len(visited) < 2100
