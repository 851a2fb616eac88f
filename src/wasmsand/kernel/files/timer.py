"""timerfd: a timer as a file.

Owns `TimerFile`. Rules: a read returns the number of expirations since the last read. Times are
kept on the monotonic clock; a setting on another clock is converted at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDWR, POLLIN, POLLRDNORM
from wasmsand.kernel.limits import EVENT_FILE_COST
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue


class TimerFile(OpenFile):
    """One timer."""

    __slots__ = ("_disarmed", "_expirations", "_stat", "changed", "clock", "deadline", "interval")

    kind: ClassVar[str] = "anon_inode:[timerfd]"
    cost: ClassVar[int] = EVENT_FILE_COST

    def __init__(
        self, clock: int, flags: int, stat: Stat, disarmed: Callable[[TimerFile], None]
    ) -> None:
        super().__init__(O_RDWR | flags)
        self.clock = clock
        self.deadline = 0
        """The next expiration, in monotonic nanoseconds; 0: not armed."""
        self.interval = 0
        self.changed = WaitQueue()
        self._expirations = 0
        self._disarmed = disarmed
        self._stat = stat

    def arm(self, deadline: int, interval: int) -> None:
        """Set the timer; a deadline of 0 disarms it."""
        self.deadline = deadline
        self.interval = interval
        self._expirations = 0
        if not deadline:
            self._disarmed(self)

    def fire(self, now: int) -> int | None:
        """Count the expirations that are due. Returns the next one, or None."""
        if self.deadline and self.deadline <= now:
            if self.interval:
                times = (now - self.deadline) // self.interval + 1
                self.deadline += times * self.interval
            else:
                times = 1
                self.deadline = 0
            self._expirations += times
            self.changed.wake()
        return self.deadline or None

    def read(self, count: int) -> bytes:
        if count < 8:
            raise KernelError(Errno.EINVAL)
        if not self._expirations:
            raise self.wait_or_fail(self.changed)
        times, self._expirations = self._expirations, 0
        return times.to_bytes(8, "little")

    def poll(self) -> int:
        return POLLIN | POLLRDNORM if self._expirations else 0

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed,)

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        self._disarmed(self)
