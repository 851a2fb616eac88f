"""pidfd: a process that is a file.

Owns `ProcessFile`. Rules: it is ready for reading when its process has ended, and stands for
that process for ever, even if another one has its number by then.
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
    """What pidfd_open makes."""

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
