"""pidfd: a process as a file.

Owns `ProcessFile`. Rules: it becomes readable when its process ends. It always refers to that
process, even if its pid has been reused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDWR, POLLIN, POLLRDNORM
from wasmsand.kernel.limits import PROCESS_FILE_COST
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.process.process import Process


class ProcessFile(OpenFile):
    """A pidfd, created by pidfd_open."""

    __slots__ = ("_stat", "process")

    kind: ClassVar[str] = "anon_inode:[pidfd]"
    cost: ClassVar[int] = PROCESS_FILE_COST

    def __init__(self, process: Process, flags: int, stat: Stat) -> None:
        super().__init__(O_RDWR | flags)
        self.process = process
        self._stat = stat

    def poll(self) -> int:
        return POLLIN | POLLRDNORM if self.process.dead else 0

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.process.signal_queue,)

    def stat(self) -> Stat:
        return self._stat
