"""A tree of files outside the sandbox, as the kernel sees it.

Owns `OutsideTree`, what the kernel may ask of a mounted host directory, and its values: `Facts`,
`Place`, `Listing`. Rules: the kernel never waits. A method that needs the host raises
`OutsideWait`; the driver waits, and the call is made again, with the same view of the tree: a place
that a waiting change concerns is `pinned`, and not looked at again until that change has ended.
A method called by an operation of the host returns its result at once; the sandbox's lock is
released meanwhile. Failures are `KernelError`s with the errno that Linux would give.

An outside tree consists of regular files, directories and symbolic links. Symbolic links are text:
the sandbox's own path walk follows them, never the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.wait import WaitQueue

Key = tuple[int, int]
"""The identity of an outside object: device and inode number of the host."""


class Facts(NamedTuple):
    """What is known about an outside object."""

    key: Key
    mode: int
    """As the guest sees it: without set-id bits."""
    nlink: int
    uid: int
    gid: int
    size: int
    blocks: int
    """In units of 512 bytes."""
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    target: bytes
    """The text of a symbolic link."""
    is_settled: bool
    """False if the object changed so recently that a further change may not show in its times."""

    def same_content(self, other: Facts) -> bool:
        """Whether the content (of a directory: the names) is certainly the same."""
        return (
            self.is_settled
            and (self.key, self.size, self.mtime_ns, self.ctime_ns)
            == (other.key, other.size, other.mtime_ns, other.ctime_ns)
        )  # fmt: skip


class Place:
    """Where an outside object is: a name in the place of its directory. A rename moves the place,
    and so everything below it."""

    __slots__ = (
        "checked",
        "facts",
        "listed",
        "listed_at",
        "name",
        "parent",
        "pinned",
        "unpinned",
    )

    def __init__(self, parent: Place | None, name: bytes, facts: Facts, checked: float) -> None:
        self.parent = parent
        self.name = name
        self.facts = facts
        self.checked = checked
        """When the facts were true, on the host's monotonic clock."""
        self.listed: Facts | None = None
        """For a directory whose names are in the tree: its facts when they were read."""
        self.listed_at = 0.0
        """When the names were true."""
        self.pinned = 0
        """How many changes are under way that concern this place."""
        self.unpinned: WaitQueue | None = None
        """Woken when one of these changes has ended, if somebody waits for that."""

    @property
    def is_loaded(self) -> bool:
        """Whether the names of this directory are in the tree."""
        return self.listed is not None

    def unpin(self) -> None:
        """One of the changes has ended."""
        self.pinned -= 1
        if self.unpinned is not None:
            self.unpinned.wake()

    def doubt(self) -> None:
        """What is known may be wrong: it does not count as current any more."""
        self.checked = self.listed_at = 0.0

    def doubted_copy(self) -> Place:
        """A copy that does not count as current."""
        copy = Place(self.parent, self.name, self.facts, 0.0)
        copy.listed = self.listed
        return copy

    def path(self) -> tuple[bytes, ...]:
        """The names from the root of the outside tree to here."""
        names = []
        place: Place = self
        while place.parent is not None:
            names.append(place.name)
            place = place.parent
        names.reverse()
        return tuple(names)


class Listing(NamedTuple):
    """A look at a directory."""

    facts: Facts
    """Of the directory itself."""
    entries: Mapping[bytes, Facts | None]
    """By name; None for a name that does not exist."""
    is_complete: bool
    """Whether these are all entries of the directory."""


class Move(NamedTuple):
    """A rename."""

    place: Place
    """What is moved. It may have other names, and its place may be one of these."""
    parent: Place
    name: bytes
    new_parent: Place
    new_name: bytes
    replaced: Place | None
    """What has the new name."""
    exchange: bool = False
    """Whether that gets the old name."""


class OutsideTree(Protocol):
    """What the kernel may ask of an outside tree. Every method may raise `OutsideWait`, except
    `since`, `seen_at`, `give_way`, `retain` and `release`."""

    root: Place

    def since(self) -> float:
        """Facts that were checked at or after this time count as current for the present call."""

    def seen_at(self) -> float:
        """When the latest result of another method was true, as in `Place.checked`."""

    def give_way(self) -> None:
        """Let others have the sandbox's lock: a guest's call raises `Yield`, and is made again; an
        operation of the host goes on."""

    # Reading.

    def list(self, place: Place, known: Facts | None, names: tuple[bytes, ...]) -> Listing:
        """All entries of a directory; if it has not changed since `known`, only those in
        `names`."""

    def facts(self, place: Place) -> Facts:
        """The current facts. ESTALE if something else is in this place now."""

    def read(self, place: Place, offset: int, size: int) -> bytes:
        """Up to `size` bytes of a regular file; fewer only at its end."""

    def whole(self, place: Place, most: int) -> FileContent:
        """A regular file's content, not charged to any file system. EFBIG if it is longer than
        `most`."""

    def retain(self, place: Place) -> None:
        """The file is open: it stays readable even if its name is removed through this mount."""

    def release(self, place: Place) -> None:
        """The file is no longer open."""

    # Changing. Each returns the facts of the object after the change.

    def create(self, parent: Place, name: bytes, mode: int) -> Facts:
        """A new regular file."""

    def mkdir(self, parent: Place, name: bytes, mode: int) -> Facts:
        """A new directory."""

    def symlink(self, parent: Place, name: bytes, target: bytes) -> Facts:
        """A new symbolic link."""

    def link(self, place: Place, parent: Place, name: bytes) -> Facts:
        """A further name of a file."""

    def unlink(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """Remove a name. The facts are the parent's."""

    def rmdir(self, parent: Place, name: bytes, victim: Place) -> Facts:
        """Remove an empty directory. The facts are the parent's."""

    def rename(self, move: Move) -> Facts:
        """Move a name. Does not change the places."""

    def set_attributes(
        self, place: Place, mode: int | None, atime: int | None, mtime: int | None
    ) -> Facts:
        """Change permission bits and times (in nanoseconds; -1 means now)."""

    def write(self, place: Place, offset: int, data: Data) -> tuple[int, Facts]:
        """Write as much as fits."""

    def truncate(self, place: Place, size: int) -> Facts:
        """Cut or extend a file."""
