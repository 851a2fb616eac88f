"""Inodes of objects outside any file system: pipes, sockets, captured output, timers.

Owns their inode numbers. Rules: each object gets its own number, so that programs can tell objects
apart by st_dev and st_ino. Numbers are counted per sandbox, so that a guest learns nothing about
other sandboxes.
"""

from __future__ import annotations

from itertools import count
from typing import Final

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.vfs import Stat

ANONYMOUS_DEVICE: Final = 0xD
_FIRST_NUMBER: Final = 1000
_BLOCK_SIZE: Final = 4096


class AnonymousInodes:
    """The anonymous inodes of one sandbox."""

    __slots__ = ("_clock", "_numbers")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = count(_FIRST_NUMBER)

    def new(self, mode: int, uid: int = 0, gid: int = 0) -> Stat:
        """A new inode with these attributes."""
        now = self._clock.realtime()
        return Stat(
            dev=ANONYMOUS_DEVICE,
            ino=next(self._numbers),
            mode=mode,
            nlink=1,
            uid=uid,
            gid=gid,
            rdev=0,
            size=0,
            blksize=_BLOCK_SIZE,
            blocks=0,
            atime_ns=now,
            mtime_ns=now,
            ctime_ns=now,
            btime_ns=now,
        )
