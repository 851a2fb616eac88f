"""eventfd: a counter as a file.

Owns `EventFile`. Rules: a read takes the whole count (1 for a semaphore) and waits while the count
is 0. A write adds to the count and waits while the sum would overflow.
"""

from __future__ import annotations

from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDWR, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM
from wasmsand.kernel.limits import EVENT_FILE_COST
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue

_MOST: Final = 0xFFFF_FFFF_FFFF_FFFE


class EventFile(OpenFile):
    """One counter."""

    __slots__ = ("_count", "_semaphore", "_stat", "changed")

    kind: ClassVar[str] = "anon_inode:[eventfd]"
    cost: ClassVar[int] = EVENT_FILE_COST

    def __init__(self, count: int, flags: int, stat: Stat, *, semaphore: bool) -> None:
        super().__init__(O_RDWR | flags)
        self._count = count
        self._semaphore = semaphore
        self.changed = WaitQueue()
        self._stat = stat

    def read(self, count: int) -> bytes:
        if count < 8:
            raise KernelError(Errno.EINVAL)
        if not self._count:
            raise self.wait_or_fail(self.changed)
        value = 1 if self._semaphore else self._count
        self._count -= value
        self.changed.wake()
        return value.to_bytes(8, "little")

    def write(self, data: bytes) -> int:
        value = int.from_bytes(data[:8], "little")
        if len(data) < 8 or value > _MOST:
            raise KernelError(Errno.EINVAL)
        if self._count + value > _MOST:
            raise self.wait_or_fail(self.changed)
        self._count += value
        self.changed.wake()
        return 8

    def poll(self) -> int:
        bits = POLLIN | POLLRDNORM if self._count else 0
        return bits | (POLLOUT | POLLWRNORM if self._count < _MOST else 0)

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed,)

    def stat(self) -> Stat:
        return self._stat
