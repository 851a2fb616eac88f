"""Tar archives: what a member is, and how an archive is refused.

Owns `Member`, `Kind` and `ArchiveRejected`, which reader and writer share. Rules: names and
link targets are bytes, as they are in file systems; times are nanoseconds; whatever is wrong
with an archive is `ArchiveRejected` and no other exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""What an archive ends with."""
SECOND: Final = 10**9
OWN_KEYS: Final = b"WASMSAND."
"""What the keys of our own pax records begin with."""


class ArchiveRejected(KernelError):
    """Bytes that are no tar archive, or one that is cut short, contradicts itself or asks for
    more than is allowed."""

    def __init__(self, reason: str, *, readable: bool = False) -> None:
        """`readable` says that it is an archive, but none that may be unpacked."""
        super().__init__(Errno.EINVAL, reason if readable else f"not a tar archive: {reason}")


class Kind(Enum):
    """What a member is, by the letter of its header."""

    FILE = b"0"
    LINK = b"1"
    """A hard link to an earlier member."""
    SYMLINK = b"2"
    CHARACTER_DEVICE = b"3"
    BLOCK_DEVICE = b"4"
    DIRECTORY = b"5"
    FIFO = b"6"
    OTHER = b"?"
    """Nothing that a tree of files has."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an archive, without its content."""

    name: bytes
    kind: Kind = Kind.FILE
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    """Of a file, with its holes."""
    mtime_ns: int = 0
    target: bytes = b""
    """Of a link: what it leads to."""
    extents: list[tuple[int, int]] | None = None
    """Offset and length of all that is no hole, in order; None if a file has no holes."""
    own: Mapping[bytes, bytes] = field(default_factory=dict)
    """Records of our own, by their keys without `OWN_KEYS`."""

    def text(self) -> str:
        """The name for a message."""
        return self.name[:80].decode("utf-8", "replace")


def padding(size: int) -> bytes:
    """Zeros that fill the last block of `size` bytes."""
    return bytes(-size % BLOCK)
