"""How a tree differs from the image that it stands on.

Owns `changes`. Rules: it works on a frozen tree, so the tree may go on meanwhile; changes are by
path, each directory before its entries, so that doing them one after another, on a fresh tree,
makes the same tree; a time of access is no change; nothing recurses, since trees are as deep as
guests like; what lies deeper than a path can be long (PATH_MAX) is left out.
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
    """What to do at one path."""

    path: bytes
    """Without a leading slash; empty for the root."""
    inode: Inode | None
    """What is there now; a directory that is there already is kept, with its entries. None:
    remove what is there, whatever it holds."""
    same_as: bytes | None = None
    """The path of an earlier change, or of the image, that this is another name of."""


def changes(tree: FrozenTree) -> Iterator[Change]:
    """Every difference between a frozen tree and its image. The root always comes first, and a
    directory whenever one of its entries has changed, so that its time can be set again."""
    image = tree.layers[-1]
    names: dict[int, bytes] = {}
    """A path of each inode that has several."""
    waiting: list[tuple[bytes, bytes, int, bool]] = [(b"", b"", ROOT_INO, True)]
    """Directories: path of the one above, name, number, and whether the image has the same one
    there. Whole paths are made when they are needed: those of siblings may be long."""
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


def _inode(tree: FrozenTree, ino: int) -> Inode:
    for layer in tree.layers:
        inode = layer.get(ino)
        if inode is not None and inode is not REMOVED:
            return inode
    raise AssertionError(f"inode {ino} has a name and is not there")


def _same(inode: Inode, before: Inode) -> bool:
    """Whether an inode is as the image has it. A link's target never changes."""
    if inode is before:
        return True
    if (inode.mode, inode.uid, inode.gid) != (before.mode, before.uid, before.gid):
        return False
    if isinstance(inode, FileInode) and isinstance(before, FileInode):
        return inode.content is before.content and inode.mtime == before.mtime
    return inode.mtime == before.mtime
