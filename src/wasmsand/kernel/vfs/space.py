"""Exact accounting of what one sandbox stores.

Owns `Space`: blocks and inodes in use, and their limits. Rules: space is taken before it is used,
and the code that frees it gives it back. The shared image costs nothing. Each further name of a
file counts as an inode, because it costs as much. The memory of a large file is freed step by step
(`discard`): until then it counts against the limit, although its blocks are free.
"""

from __future__ import annotations

from collections.abc import Iterable

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import FREED_PER_CALL
from wasmsand.kernel.vfs.model import BLOCK_SIZE


def blocks_of(size: int) -> int:
    """The number of blocks that hold `size` bytes."""
    return (size + BLOCK_SIZE - 1) // BLOCK_SIZE


class Space:
    """Blocks and inodes that a tree uses and may use."""

    __slots__ = (
        "_discarded",
        "discarded_blocks",
        "limit_blocks",
        "limit_bytes",
        "max_inodes",
        "used_blocks",
        "used_inodes",
    )

    def __init__(
        self, limit_bytes: int, max_inodes: int, used_blocks: int = 0, used_inodes: int = 0
    ) -> None:
        self.limit_bytes = limit_bytes
        self.limit_blocks = limit_bytes // BLOCK_SIZE
        self.max_inodes = max_inodes
        self.used_blocks = used_blocks
        self.used_inodes = used_inodes
        self._discarded: list[bytearray | bytes] = []
        self.discarded_blocks = 0
        """Blocks that are free, but whose memory is not freed yet."""

    @property
    def used_bytes(self) -> int:
        """Allocated bytes, in whole blocks."""
        return self.used_blocks * BLOCK_SIZE

    def free_blocks(self) -> int:
        """Blocks that can still be taken; never negative, even if the limit was lowered."""
        return max(0, self.limit_blocks - self.used_blocks)

    def take_blocks(self, count: int) -> None:
        """Take blocks, all or (ENOSPC) none."""
        if self.used_blocks + count > self.limit_blocks and count > 0:
            raise self.full()
        self.used_blocks += count
        if self.discarded_blocks:
            self.free_discarded()

    def discard(self, chunks: Iterable[bytearray | bytes], blocks: int) -> None:
        """Free the memory of `chunks`, whose blocks were given back, in parts: one with each later
        call."""
        self._discarded += chunks
        self.discarded_blocks += blocks

    def free_discarded(self) -> None:
        """Free some discarded chunks, and as many as the limit requires."""
        discarded, room = self._discarded, self.limit_blocks - self.used_blocks
        count = 0
        while discarded and (count < FREED_PER_CALL or self.discarded_blocks > room):
            self.discarded_blocks -= blocks_of(len(discarded.pop()))
            count += 1

    def give_blocks(self, count: int) -> None:
        """Return blocks."""
        self.used_blocks -= count

    def take_inode(self) -> None:
        """Take one inode, or one further name of an inode."""
        if self.used_inodes >= self.max_inodes:
            raise KernelError(
                Errno.ENOSPC, f"too many files ({self.max_inodes} inodes); raise max_inodes"
            )
        self.used_inodes += 1

    def give_inode(self) -> None:
        """Give back one inode or name."""
        self.used_inodes -= 1

    def full(self) -> KernelError:
        """The error for a write that does not fit."""
        return KernelError(
            Errno.ENOSPC, f"file system full ({self.limit_bytes} bytes); raise fs_limit_bytes"
        )
