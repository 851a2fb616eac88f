"""Tar archives: the description of a member, and the error for bad archives.

Owns `Member`, `MemberKind` and `ArchiveRejected`, which reader and writer share. Rules: names and
link targets are bytes, as in file systems; times are in nanoseconds; every defect of an archive
raises `ArchiveRejected` and no other exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple
from zlib import adler32

from wasmsand.kernel.errno import Errno, KernelError

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
"""The end of an archive."""
SECOND: Final = 10**9
OWN_KEYS: Final = b"WASMSAND."
"""The prefix of the keys of our own pax records."""
NO_RECORDS: Final[Mapping[bytes, bytes]] = MappingProxyType({})


class ArchiveRejected(KernelError):
    """The data is not a tar archive, or the archive is cut short, contradicts itself or exceeds a
    limit."""

    def __init__(self, reason: str, *, readable: bool = False) -> None:
        """`readable`: it is a tar archive, but must not be unpacked."""
        super().__init__(Errno.EINVAL, reason if readable else f"not a tar archive: {reason}")


class MemberKind(Enum):
    """The type of a member; the value is the letter in its header."""

    FILE = b"0"
    LINK = b"1"
    """A hard link to an earlier member."""
    SYMLINK = b"2"
    CHARACTER_DEVICE = b"3"
    BLOCK_DEVICE = b"4"
    DIRECTORY = b"5"
    FIFO = b"6"
    OTHER = b"?"
    """Not a type of file."""


class Member(NamedTuple):
    """One member of an archive, without its content."""

    name: bytes
    kind: MemberKind = MemberKind.FILE
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    """The size of a file, including holes."""
    mtime_ns: int = 0
    target: bytes = b""
    """The target of a link."""
    extents: list[tuple[int, int]] | None = None
    """Offset and length of each data extent, in order; None if the file has no holes."""
    own: Mapping[bytes, bytes] = NO_RECORDS
    """Our own records, by key without `OWN_KEYS`."""

    def text(self) -> str:
        """The name, for messages."""
        return self.name[:80].decode("utf-8", "replace")


def sum_of_block(block: bytes) -> int:
    """The sum of the bytes of a block. Adler-32 computes it twenty times faster than `sum`: for up
    to 256 bytes its lower half is their sum plus one."""
    half = BLOCK // 2
    return (adler32(block[:half]) & 0xFFFF) + (adler32(block[half:]) & 0xFFFF) - 2


def padding(size: int) -> bytes:
    """The zeros that pad `size` bytes to whole blocks."""
    return bytes(-size % BLOCK)
