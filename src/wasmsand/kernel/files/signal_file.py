"""signalfd: reading signals from a file.

Owns `SignalFile`. Rules: a read takes signals pending for the thread that created the file, as
sigtimedwait does, whether or not they are blocked. A child that inherits the file therefore reads
its parent's signals; on Linux it would read its own.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDWR, POLLIN, POLLRDNORM
from wasmsand.kernel.limits import EVENT_FILE_COST
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.process.thread import Thread

_RECORD: Final = Struct("<IiiII20xi84x")
"""struct signalfd_siginfo: signo, errno, code, pid, uid, five unused fields, status."""


class SignalFile(OpenFile):
    """A signalfd."""

    __slots__ = ("_stat", "_watched", "wanted")

    kind: ClassVar[str] = "anon_inode:[signalfd]"
    cost: ClassVar[int] = EVENT_FILE_COST

    def __init__(self, thread: Thread, wanted: int, flags: int, stat: Stat) -> None:
        super().__init__(O_RDWR | flags)
        self._watched = thread
        self.wanted = wanted
        """The mask of signals that a read takes."""
        self._stat = stat

    def read(self, count: int) -> bytes:
        most = count // _RECORD.size
        if not most:
            raise KernelError(Errno.EINVAL)
        signals = self._watched.signals
        records: list[bytes] = []
        while len(records) < most and (signo := signals.next_deliverable(self.wanted)):
            info = signals.take(signo)
            records.append(_RECORD.pack(signo, 0, info.code, info.pid, info.uid, info.status))
        if not records:
            raise self.wait_or_fail(self._watched.signal_queue)
        return b"".join(records)

    def poll(self) -> int:
        return POLLIN | POLLRDNORM if self._watched.signals.pending & self.wanted else 0

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self._watched.signal_queue,)

    def stat(self) -> Stat:
        return self._stat
