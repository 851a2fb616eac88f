"""The differences between a tree and its image.

Owns `changes`, and looking things up in a frozen tree. Rules: it works on a frozen tree, so the
original tree may change meanwhile. Changes are listed by path, each directory before its entries,
so that applying them in order to a new tree produces the same tree. An access time is not a change.
Nothing recurses, because guests can nest directories to any depth. Paths of PATH_MAX bytes or more
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wasmsand.kernel.limits import PATH_MAX
from wasmsand.kernel.vfs.inode import (
    REMOVED,
    DirectoryInode,
    FileInode,
    Inode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree


class Change(NamedTuple):
    """The change at one path."""

    path: bytes
    """Without a leading slash; empty for the root."""
    inode: Inode | None
    """The new inode; an existing directory keeps its entries. None: remove what is there, with
    everything in it."""
    same_as: bytes | None = None
    """For a hard link: the path of an earlier change, or a path in the image, with the same
    inode."""


def changes(tree: FrozenTree) -> Iterator[Change]:
    """All differences between a frozen tree and its image. The root always comes first. A directory
    is included whenever one of its entries has changed, so that its mtime can be set again."""
    image = tree.layers[-1]
    touched = _touched(tree)
    names: dict[int, bytes] = {}
    """A path for each inode that has several."""
    waiting: list[tuple[bytes, bytes, int, bool]] = [(b"", b"", ROOT_INO, True)]
    """Directories to visit: path of the parent, name, inode number, and whether the image has the
    same directory there. Full paths are built only when needed, because they may be long."""
    while waiting:
        prefix, own_name, ino, in_image = waiting.pop()
        path = prefix + own_name
        directory = _inode(tree, ino)
        assert isinstance(directory, DirectoryInode)
        before = image[ino] if in_image else None
        old_entries = before.entries if isinstance(before, DirectoryInode) else {}
        prefix = path + b"/" if path else b""
        gone = sorted(old_entries.keys() - directory.entries.keys())
        found: list[tuple[bytes, int | None]] = [(name, None) for name in gone]
        below: list[tuple[bytes, bytes, int, bool]] = []
        for name, (child, _) in sorted(directory.entries.items()):
            if len(prefix) + len(name) >= PATH_MAX:
                continue
            old = old_entries.get(name)
            same = old is not None and old[0] == child
            if old is not None and not same:
                found.append((name, None))
            inode = _inode(tree, child)
            if isinstance(inode, DirectoryInode):
                if not same or touched is None or child in touched:
                    below.append((prefix, name, child, same))
            elif not same or not _same(inode, image[child]):
                found.append((name, child))
            elif inode.nlink > 1:
                names.setdefault(child, prefix + name)
        if found or not path or before is None or not _same(directory, before):
            yield Change(path, directory)
        for name, number in found:
            place = prefix + name
            if number is None:
                yield Change(place, None)
                continue
            inode = _inode(tree, number)
            yield Change(place, inode, names.get(number))
            if inode.nlink > 1:
                names.setdefault(number, place)
        waiting.extend(reversed(below))


def _touched(tree: FrozenTree) -> set[int] | None:
    """The directories of the image in which, or below which, something may have changed. None if
    every directory has to be visited: a changed file may have several names, or a directory that
    was moved may contain a file with several names."""
    image = tree.layers[-1]
    touched, seen = {ROOT_INO}, set[int]()
    for layer in tree.layers[:-1]:  # the newest comes first
        for ino, inode in layer.items():
            if ino in seen:
                continue
            seen.add(ino)
            if inode is REMOVED or ino in tree.orphans:
                continue  # the directory of its last name has changed
            before = image.get(ino)
            if not isinstance(inode, DirectoryInode):
                if inode.nlink > 1 or not _is_named(tree, ino, inode):
                    return None
                ino = inode.parent
            elif before is not None and (before.parent, before.name) != (inode.parent, inode.name):
                return None
            while ino not in touched:
                touched.add(ino)
                ino = _inode(tree, ino).parent
    return touched


def _is_named(tree: FrozenTree, ino: int, inode: Inode) -> bool:
    """Whether an inode has the name that it had last."""
    directory = _find(tree, inode.parent)
    if not isinstance(directory, DirectoryInode):
        return False
    return directory.entries.get(inode.name, (0, 0))[0] == ino


def path_in(tree: FrozenTree, ino: int) -> bytes | None:
    """A path of an inode that exists, without a leading slash; None if it has no name, or if its
    name is not known."""
    if ino in tree.orphans:
        return None
    names: list[bytes] = []
    length = 0
    while ino != ROOT_INO:
        inode = _inode(tree, ino)
        directory = _inode(tree, inode.parent)
        length += len(inode.name) + 1
        if not isinstance(directory, DirectoryInode) or length >= PATH_MAX:
            return None
        if directory.entries.get(inode.name, (0, 0))[0] != ino:
            return None  # the name was that of a hard link which was removed
        names.append(inode.name)
        ino = inode.parent
    return b"/".join(reversed(names))


def node_at(tree: FrozenTree, path: bytes) -> Inode | None:
    """The inode at a path without a leading slash; None if there is none. Symbolic links are not
    followed."""
    inode = _inode(tree, ROOT_INO)
    for name in path.split(b"/"):
        entry = inode.entries.get(name) if isinstance(inode, DirectoryInode) else None
        if entry is None:
            return None
        inode = _inode(tree, entry[0])
    return inode


def inode_in(tree: FrozenTree, ino: int) -> Inode:
    """An inode that exists."""
    return _inode(tree, ino)


def _inode(tree: FrozenTree, ino: int) -> Inode:
    inode = _find(tree, ino)
    assert inode is not None, f"inode {ino} has a name but does not exist"
    return inode


def _find(tree: FrozenTree, ino: int) -> Inode | None:
    for layer in tree.layers:
        inode = layer.get(ino)
        if inode is not None and inode is not REMOVED:
            return inode
    for shared in tree.shared.values():
        if ino in shared:
            return shared[ino]
    return None


def _same(inode: Inode, before: Inode) -> bool:
    """Whether an inode is unchanged from the image. A symbolic link's target never changes."""
    if inode is before:
        return True
    if (inode.mode, inode.uid, inode.gid) != (before.mode, before.uid, before.gid):
        return False
    if isinstance(inode, FileInode) and isinstance(before, FileInode):
        return inode.content is before.content and inode.mtime == before.mtime
    return inode.mtime == before.mtime
