"""Exact accounting of what one sandbox stores.

Owns `Space`: bytes (in blocks) and inodes in use against their limits. Rules: take
before acting; what is taken is given back by whoever frees it; the shared image costs
nothing. A name beyond a file's first counts as an inode, because it costs as much. Memory of
a large file is given back to the host step by step (`discard`): until that is done the limit
counts it, although the blocks are free.
"""

from __future__ import annotations

from collections.abc import Iterable

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import FREED_PER_CALL
from wasmsand.kernel.vfs.model import BLOCK_SIZE


def blocks_of(size: int) -> int:
    """Blocks that hold `size` bytes."""
    return (size + BLOCK_SIZE - 1) // BLOCK_SIZE


class Space:
    """Blocks and inodes that a tree has used and may use."""

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
        """Blocks that are free, but whose memory the host does not have back yet."""

    @property
    def used_bytes(self) -> int:
        """Bytes allocated, whole blocks."""
        return self.used_blocks * BLOCK_SIZE

    def free_blocks(self) -> int:
        """Blocks that can still be taken; never negative, even under a lowered limit."""
        return max(0, self.limit_blocks - self.used_blocks)

    def take_blocks(self, count: int) -> None:
        """Take blocks, all or (ENOSPC) none."""
        if self.used_blocks + count > self.limit_blocks and count > 0:
            raise self.full()
        self.used_blocks += count
        if self.discarded_blocks:
            self.free_discarded()

    def discard(self, chunks: Iterable[bytearray | bytes], blocks: int) -> None:
        """Free the memory of `chunks`, whose blocks were given back, a part of it with each
        later call."""
        self._discarded += chunks
        self.discarded_blocks += blocks

    def free_discarded(self) -> None:
        """Free some of what was discarded, and as much as the limit needs."""
        discarded, room = self._discarded, self.limit_blocks - self.used_blocks
        count = 0
        while discarded and (count < FREED_PER_CALL or self.discarded_blocks > room):
            self.discarded_blocks -= blocks_of(len(discarded.pop()))
            count += 1

    def give_blocks(self, count: int) -> None:
        """Return blocks."""
        self.used_blocks -= count

    def take_inode(self) -> None:
        """Take one inode, or one more name of an inode."""
        if self.used_inodes >= self.max_inodes:
            raise KernelError(
                Errno.ENOSPC, f"too many files ({self.max_inodes} inodes); raise max_inodes"
            )
        self.used_inodes += 1

    def give_inode(self) -> None:
        """Return one inode or name."""
        self.used_inodes -= 1

    def full(self) -> KernelError:
        """The error of a write that does not fit."""
        return KernelError(
            Errno.ENOSPC, f"file system full ({self.limit_bytes} bytes); raise fs_limit_bytes"
        )
