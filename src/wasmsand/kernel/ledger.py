"""What one sandbox takes of the host's memory.

Owns `Ledger`, the one account of a sandbox's memory, by kind: linear memory of guests, what
the engine needs besides it, kernel objects, queued data. Rules: an entry is made before the
memory is used and taken back when it is freed; all kinds together stay within
`memory_limit_bytes`; a refusal is an errno that names that option. Content of files is not
here: it has an account of its own (`vfs/space.py`, `fs_limit_bytes`). Captured output is not
here either: `max_output_bytes` bounds it.

The first `KERNEL_UNCHARGED_MAX` bytes of kernel objects and queued data are entered but not
charged to the limit. So a guest may use all of its memory, and a program that has done so can
still open a file and print why it ends.

Guests' memory is the exception to "before": a guest grows it by itself. The engine bounds that
growth by `room`, and what it grew by is entered at once (`set_guest`), which can exceed the
limit when several processes grow at the same moment; then the largest process is ended.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import KERNEL_UNCHARGED_MAX

UNBOUNDED: Final = 1 << 62


class Ledger:
    """Bytes in use, by kind."""

    __slots__ = ("engine", "guest", "kernel_max", "limit", "objects", "peak", "queued")

    def __init__(self, limit: int = UNBOUNDED) -> None:
        self.limit = limit
        self.guest = 0
        """Linear memory of all processes, without what is never touched of their C stacks."""
        self.engine = 0
        """What the engine holds besides: tables, stacks of calls, exceptions, instances."""
        self.objects = 0
        """Kernel objects: processes, open files, sockets, watches, timers, locks."""
        self.queued = 0
        """Data that waits to be read: in pipes, sockets, host channels. A queue whose pushes
        are many may write this field itself, after it has compared with `kernel_max`."""
        self.kernel_max = limit + KERNEL_UNCHARGED_MAX
        """What `objects` and `queued` together may be; changes with `guest` and `engine`."""
        self.peak = 0
        """The most that was in use at once. Queued data is looked at when another entry is
        made, not at each push."""

    @property
    def used(self) -> int:
        """Bytes in use of all kinds."""
        return self.guest + self.engine + self.objects + self.queued

    @property
    def charged(self) -> int:
        """Bytes in use that count against the limit."""
        kernel = self.objects + self.queued - KERNEL_UNCHARGED_MAX
        return self.guest + self.engine + (kernel if kernel > 0 else 0)

    @property
    def room(self) -> int:
        """Bytes left; negative when guests have grown past the limit."""
        return self.limit - self.charged

    def require(self, wanted: int, errno: Errno = Errno.ENOMEM) -> None:
        """Raise `errno` unless there is room for `wanted` more bytes of objects or data."""
        if self.objects + self.queued + wanted > self.kernel_max:
            raise KernelError(errno, f"{self.limit} bytes in use; raise memory_limit_bytes")

    def add_object(self, cost: int, errno: Errno = Errno.ENOMEM) -> None:
        """Enter a kernel object, before it is made."""
        if self.objects + self.queued + cost > self.kernel_max:
            self.require(cost, errno)
        self.objects += cost

    def drop_object(self, cost: int) -> None:
        """A kernel object is gone."""
        self.objects -= cost

    def add_queued(self, size: int, errno: Errno = Errno.ENOBUFS) -> None:
        """Enter data, before it is queued."""
        if self.objects + self.queued + size > self.kernel_max:
            self.require(size, errno)
        self.queued += size

    def drop_queued(self, size: int) -> None:
        """Queued data was taken or dropped."""
        self.queued -= size

    def set_guest(self, before: int, now: int) -> bool:
        """A process's linear memory is `now` bytes, and was `before`; whether the limit holds."""
        self.guest += now - before
        return self._settle()

    def set_engine(self, before: int, now: int) -> bool:
        """What the engine needs for a process is `now` bytes, and was `before`; whether the
        limit holds."""
        self.engine += now - before
        return self._settle()

    def _settle(self) -> bool:
        left = self.limit - self.guest - self.engine
        self.kernel_max = KERNEL_UNCHARGED_MAX + (left if left > 0 else 0)
        self.note_peak()
        return self.charged <= self.limit

    def note_peak(self) -> None:
        """Look at what is in use now."""
        used = self.used
        if used > self.peak:
            self.peak = used
