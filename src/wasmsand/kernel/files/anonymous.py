"""Metadata of objects that are in no file system: pipes, captured output, ptys.

Owns their inode numbers. Rule: each object gets its own number, so that programs
which compare st_dev and st_ino tell them apart.
"""

from __future__ import annotations

from itertools import count

from wasmsand.kernel.vfs import Stat

ANONYMOUS_DEVICE = 0xD
_numbers = count(1000)


def anonymous_stat(mode: int, uid: int, gid: int, now_ns: int, *, rdev: int = 0) -> Stat:
    """A fresh identity with these attributes."""
    return Stat(
        dev=ANONYMOUS_DEVICE,
        ino=next(_numbers),
        mode=mode,
        nlink=1,
        uid=uid,
        gid=gid,
        rdev=rdev,
        size=0,
        blksize=4096,
        blocks=0,
        atime_ns=now_ns,
        mtime_ns=now_ns,
        ctime_ns=now_ns,
        btime_ns=now_ns,
    )
