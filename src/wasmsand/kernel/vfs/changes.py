"""How a tree differs from the image that it stands on.

Owns `changes`. Rules: it works on a snapshot, so the tree may go on meanwhile; changes are by
path, each directory before its entries, so that doing them one after another, on a fresh tree,
makes the same tree; a time of access is no change; nothing recurses, since trees are as deep as
guests like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wasmsand.kernel.vfs.inode import (
    REMOVED,
    DirectoryInode,
    FileInode,
    Inode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, Snapshot


class Change(NamedTuple):
    """What to do at one path."""

    path: bytes
    """Without a leading slash; empty for the root."""
    inode: Inode | None
    """What is there now; a directory that is there already is kept, with its entries. None:
    remove what is there, whatever it holds."""
    same_as: bytes | None = None
    """The path of an earlier change, or of the image, that this is another name of."""


def changes(snapshot: Snapshot) -> Iterator[Change]:
    """Every difference between a snapshot and its image. The root always comes first, and a
    directory whenever one of its entries has changed, so that its time can be set again."""
    image = snapshot.layers[-1]
    names: dict[int, bytes] = {}
    """A path of each inode that may have several."""
    waiting: list[tuple[bytes, int, bool]] = [(b"", ROOT_INO, True)]
    """Directories: path, number, and whether the image has the same one at this path."""
    while waiting:
        path, ino, in_image = waiting.pop()
        directory = _inode(snapshot, ino)
        assert isinstance(directory, DirectoryInode)
        before = image[ino] if in_image else None
        old_entries = before.entries if isinstance(before, DirectoryInode) else {}
        prefix = path + b"/" if path else b""
        gone = old_entries.keys() - directory.entries.keys()
        found = [Change(prefix + name, None) for name in sorted(gone)]
        below: list[tuple[bytes, int, bool]] = []
        for name, (child, _) in sorted(directory.entries.items()):
            place = prefix + name
            old = old_entries.get(name)
            same = old is not None and old[0] == child
            if old is not None and not same:
                found.append(Change(place, None))
            inode = _inode(snapshot, child)
            if isinstance(inode, DirectoryInode):
                below.append((place, child, same))
                continue
            if not same or not _same(inode, image[child]):
                found.append(Change(place, inode, names.get(child)))
            names.setdefault(child, place)
        if found or not path or before is None or not _same(directory, before):
            yield Change(path, directory)
        yield from found
        waiting.extend(reversed(below))


def _inode(snapshot: Snapshot, ino: int) -> Inode:
    for layer in snapshot.layers:
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
