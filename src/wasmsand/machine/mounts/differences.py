"""How an overlay differs from the directory of the host below it.

Owns `Difference` and `differences`. Rules: the old side is what the host has now; a difference is a
conflict if that is not what the sandbox saw when it made its change. Files with the same bytes and
mode do not differ. Nothing recurses. The lock is held for one step at a time.
"""

from __future__ import annotations

import stat as modes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import MOUNT_DIFFERENCES_MAX
from wasmsand.kernel.vfs import Node, Stat
from wasmsand.kernel.vfs.outside import Facts
from wasmsand.machine import trees
from wasmsand.machine.host_access import HostAccess

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.mounts.host_directory import HostDirectory

_KINDS = (modes.S_IFREG, modes.S_IFDIR, modes.S_IFLNK)


@dataclass(frozen=True, slots=True)
class Difference:
    """One path that differs."""

    path: bytes
    """Relative to the mount."""
    old: Facts | None
    """What the host has there; None if nothing."""
    new: Stat | None
    """What the sandbox has there; None if nothing."""
    node: Node | None
    is_conflict: bool
    """Whether the host has changed it since the sandbox saw it."""

    @property
    def kind(self) -> Literal["added", "changed", "removed"]:
        """What the sandbox did."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"

    @property
    def names(self) -> tuple[bytes, ...]:
        """The path as names."""
        return tuple(self.path.split(b"/"))

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory on each side where it exists."""
        mode = self.new.mode if self.new is not None else self.old.mode if self.old else 0
        return modes.S_ISDIR(mode)


class _Comparison:
    """The comparison of one overlay."""

    def __init__(self, machine: Machine, path: str) -> None:
        self.access = HostAccess(machine)
        mounted, self.tree = machine.mounts.overlay(path)
        assert mounted.directory is not None
        self.directory: HostDirectory = mounted.directory
        self.moved: list[Node] = []
        """Objects that have another path on the host."""

    def all(self) -> Iterator[Difference]:
        with self.access:
            found = list(self.tree.changes())
        for change in found:
            seen = None if change.place is None else change.place.facts
            if change.ino is None:
                yield from self._removed(change.path)
                continue
            node = Node(self.tree, change.ino)
            new = self._stat(node)
            if new is None or modes.S_IFMT(new.mode) not in _KINDS:
                continue
            is_new_tree = modes.S_ISDIR(new.mode) and (seen is None or not modes.S_ISDIR(seen.mode))
            difference = self._compare(change.path, node, new)
            if difference is not None:
                yield difference
            if is_new_tree:
                yield from self._added_tree(change.path, node)
            elif seen is None or not modes.S_ISDIR(seen.mode):
                continue
            elif not modes.S_ISDIR(new.mode):
                yield from list(self._removed(change.path))[1:]
            elif self.tree.place_of(change.ino) is not change.place:
                # Another directory with the same name. (In the same directory, the entries that
                # differ are changes of their own.)
                yield from self._added_tree(change.path, node, replaces=True)

    def _stat(self, node: Node) -> Stat | None:
        try:
            with self.access as namespace:
                return namespace.stat(node)
        except KernelError as error:
            if error.errno is Errno.ENOENT:
                return None
            raise

    def _compare(self, path: bytes, node: Node, new: Stat) -> Difference | None:
        names = tuple(path.split(b"/"))
        place = self.tree.place_of(node.ino)
        if place is not None and place.path() != names:
            self.moved.append(node)
        old = self.directory.at(names)
        if old is not None and modes.S_IFMT(old.mode) == modes.S_IFMT(new.mode):
            same_mode = old.mode & 0o777 == new.mode & 0o777 or modes.S_ISLNK(new.mode)
            if same_mode and self._same_content(names, node, old, new):
                return None
        return Difference(path, old, new, node, self._is_conflict(names, old))

    def _same_content(self, names: tuple[bytes, ...], node: Node, old: Facts, new: Stat) -> bool:
        if modes.S_ISDIR(new.mode):
            return True
        if modes.S_ISLNK(new.mode):
            with self.access as namespace:
                return namespace.readlink(node) == old.target
        if old.size != new.size:
            return False
        return self.directory.content_at(names, new.size + 1) == content_of(self.access, node)

    def _added_tree(
        self, path: bytes, node: Node, *, replaces: bool = False
    ) -> Iterator[Difference]:
        """What is below a new directory. If it replaces another one, what only that one has."""
        there = set()
        for entry in trees.walk(self.access, node):
            if modes.S_IFMT(entry.stat.mode) in _KINDS:
                there.add(entry.path)
                below = path + b"/" + entry.path
                difference = self._compare(below, entry.node, entry.stat)
                if difference is not None:
                    yield difference
        if replaces:
            for each in self._removed(path):
                if each.path != path and each.path[len(path) + 1 :] not in there:
                    yield each

    def _removed(self, path: bytes) -> Iterator[Difference]:
        """What the host has at a path that the sandbox has removed: a directory before its
        entries."""
        waiting = [path]
        while waiting:
            path = waiting.pop()
            names = tuple(path.split(b"/"))
            old = self.directory.at(names)
            if old is None:
                continue
            yield Difference(path, old, None, None, self._is_conflict(names, old))
            if modes.S_ISDIR(old.mode):
                below: list[bytes] = self.directory.names_in(names)
                waiting.extend(path + b"/" + name for name in reversed(below))

    def _is_conflict(self, names: tuple[bytes, ...], old: Facts | None) -> bool:
        """Whether the host has something else than the sandbox saw."""
        with self.access:
            has_looked, seen = self.tree.seen(names)
        if not has_looked:
            return False
        if old is None or seen is None:
            return old is not seen
        if modes.S_ISDIR(old.mode):
            return old.key != seen.key
        return (old.key, old.size, old.mtime_ns) != (seen.key, seen.size, seen.mtime_ns)


def content_of(access: HostAccess, node: Node) -> bytes:
    """The whole content of a file in the sandbox."""
    with access as namespace:
        content = namespace.share_content(node)
        assert content is not None
    return content.read(0, content.size)


def differences(machine: Machine, path: str, *, take_moved: bool = False) -> list[Difference]:
    """How the overlay on `path` differs from the host's directory, sorted by path. With
    `take_moved`, the sandbox gets a copy of its own of everything that differs in its path or mode
    only, because the host's object is about to be changed. EFBIG if there are more than
    MOUNT_DIFFERENCES_MAX differences."""
    found: dict[bytes, Difference] = {}
    comparison = _Comparison(machine, path)
    for difference in comparison.all():
        found[difference.path] = difference
        if len(found) > MOUNT_DIFFERENCES_MAX:
            raise KernelError(Errno.EFBIG, f"more than {MOUNT_DIFFERENCES_MAX} differences")
    if take_moved:
        changed = [each.node for each in found.values() if each.node is not None]
        for node in comparison.moved + changed:
            with comparison.access:
                comparison.tree.take(node.ino)
    return [found[path] for path in sorted(found)]
