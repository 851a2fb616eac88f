"""Shared trees: attached to a live file system in constant time, and charged to nobody."""

from __future__ import annotations

import pytest

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Namespace, SharedTree, TreeFs, changes

RDWR, CREATE = 0o2, 0o102


def shared(count: int = 3) -> SharedTree:
    builder = ImageBuilder.for_shared_tree()
    for number in range(count):
        builder.add_file(b"/pkg/module%d.py" % number, b"x = %d\n" % number)
    builder.add_symlink(b"/pkg/link", b"module0.py")
    builder.add_file(b"/top.py", b"top\n")
    return builder.build_shared()


def base() -> ImageBuilder:
    builder = ImageBuilder()
    builder.add_dir(b"/lib")
    builder.add_file(b"/lib/old", b"old")
    return builder


def attach(tree: TreeFs, what: SharedTree, name: bytes = b"new") -> Namespace:
    parent = tree.lookup(tree.root_ino, b"lib")
    assert parent is not None
    tree.attach(parent, name, what)
    return Namespace(tree)


def content(namespace: Namespace, path: bytes) -> bytes:
    return namespace.read(namespace.resolve(ROOT, namespace.root, path), 0, 1000)


def names(namespace: Namespace, path: bytes) -> list[bytes]:
    node = namespace.resolve(ROOT, namespace.root, path)
    return [entry.name for entry in namespace.readdir(node)[2:]]


def test_an_attached_tree_is_a_directory_with_its_files() -> None:
    tree = TreeFs(base().build())
    namespace = attach(tree, shared())
    assert names(namespace, b"/lib") == [b"old", b"new"]
    assert names(namespace, b"/lib/new") == [b"pkg", b"top.py"]
    assert content(namespace, b"/lib/new/pkg/link") == b"x = 0\n"
    node = namespace.resolve(ROOT, namespace.root, b"/lib/new/pkg")
    assert namespace.path_of(node) == b"/lib/new/pkg"
    assert content(namespace, b"/lib/new/pkg/../../old") == b"old"
    assert namespace.stat(namespace.resolve(ROOT, namespace.root, b"/lib")).nlink == 3


def test_it_is_not_charged_and_removing_it_gives_nothing_back() -> None:
    tree = TreeFs(base().build(), Limits(max_inodes=1))
    namespace = attach(tree, shared(50))
    assert (tree.space.used_inodes, tree.space.used_blocks) == (0, 0)
    for name in names(namespace, b"/lib/new/pkg"):
        namespace.unlink(ROOT, namespace.root, b"/lib/new/pkg/" + name)
    namespace.unlink(ROOT, namespace.root, b"/lib/new/top.py")
    namespace.rmdir(ROOT, namespace.root, b"/lib/new/pkg")
    namespace.rmdir(ROOT, namespace.root, b"/lib/new")
    assert (tree.space.used_inodes, tree.space.used_blocks) == (0, 0)
    assert names(namespace, b"/lib") == [b"old"]


def test_a_change_in_one_tree_is_not_seen_in_another() -> None:
    what = shared()
    first, second = TreeFs(base().build()), TreeFs(base().build())
    one, other = attach(first, what), attach(second, what)
    node = one.open_node(ROOT, one.root, b"/lib/new/top.py", RDWR)
    one.write(ROOT, node, 0, b"TOP!")
    one.open_node(ROOT, one.root, b"/lib/new/pkg/mine", CREATE, 0o644)
    assert first.space.used_blocks == 1
    assert content(one, b"/lib/new/top.py") == b"TOP!"
    assert content(other, b"/lib/new/top.py") == b"top\n"
    assert b"mine" not in names(other, b"/lib/new/pkg")


def test_a_hard_link_to_a_shared_file_is_charged_once() -> None:
    tree = TreeFs(base().build())
    namespace = attach(tree, shared())
    node = namespace.resolve(ROOT, namespace.root, b"/lib/new/top.py")
    namespace.link(ROOT, node, namespace.root, b"/again")
    assert tree.space.used_inodes == 1
    namespace.unlink(ROOT, namespace.root, b"/again")
    assert tree.space.used_inodes == 0
    assert content(namespace, b"/lib/new/top.py") == b"top\n"


def test_a_frozen_tree_and_its_merged_form_keep_it() -> None:
    tree = TreeFs(base().build())
    attach(tree, shared())
    frozen = tree.freeze()
    for state in (frozen, frozen.merged()):
        copy = Namespace(TreeFs(state))
        assert content(copy, b"/lib/new/pkg/module1.py") == b"x = 1\n"
    before = Namespace(TreeFs(base().build()))
    assert names(before, b"/lib") == [b"old"]


def test_the_changes_of_a_tree_contain_its_files() -> None:
    tree = TreeFs(base().build())
    attach(tree, shared(1))
    found = [change.path for change in changes(tree.freeze())]
    assert found == [
        b"",
        b"lib",
        b"lib/new",
        b"lib/new/top.py",
        b"lib/new/pkg",
        b"lib/new/pkg/link",
        b"lib/new/pkg/module0.py",
    ]


def test_the_same_tree_cannot_be_attached_twice() -> None:
    tree = TreeFs(base().build())
    what = shared()
    attach(tree, what)
    with pytest.raises(KernelError) as caught:
        attach(tree, what, b"second")
    assert caught.value.errno is Errno.EEXIST
    assert names(Namespace(tree), b"/lib") == [b"old", b"new"]


def test_a_name_that_is_taken_is_an_error() -> None:
    tree = TreeFs(base().build())
    with pytest.raises(KernelError) as caught:
        attach(tree, shared(), b"old")
    assert caught.value.errno is Errno.EEXIST
    assert not tree.freeze().shared


def test_reading_does_not_copy_shared_inodes() -> None:
    tree = TreeFs(base().build())
    namespace = attach(tree, shared())
    before = len(tree._table.top)
    content(namespace, b"/lib/new/pkg/module0.py")
    names(namespace, b"/lib/new/pkg")
    assert len(tree._table.top) == before
