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

Guests' memory is the exception to "before": a guest grows it by itself, and one instruction can
fill all that it got. So a guest that computes has a share of the room, which the engine lets it
grow by until the host looks at it again (`share`). Up to three guests that compute get all the
room each; with more of them, each gets less. All that is used and shared is at most four times the
limit, for the time of a tick or of that one instruction. What was grown is then entered, and if it
is more than the limit, the largest process is ended.

The memory of a process that has ended stays in the account until it is freed, which its thread
does soon; meanwhile others may have as much again, and no more (`dying`).
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import (
    DYING_LIMITS,
    GROWTH_BYTES_MIN,
    GROWTH_PARTS,
    KERNEL_UNCHARGED_MAX,
    SHARED_LIMITS,
)

UNBOUNDED: Final = 1 << 62


class Unseen(Protocol):
    """A program that waits, and was not looked at after it computed."""

    def measure(self) -> None:
        """Enter what it takes."""


class Freed(Protocol):
    """Memory that is freed, and still in the account."""

    def take_out(self) -> None:
        """Take it out."""


class Ledger:
    """Bytes in use, by kind."""

    __slots__ = (
        "_share_min",
        "dying",
        "engine",
        "freed",
        "guest",
        "kernel_max",
        "limit",
        "objects",
        "peak",
        "queued",
        "shared",
        "unseen",
    )

    def __init__(self, limit: int = UNBOUNDED) -> None:
        self.limit = limit
        self._share_min = max(GROWTH_BYTES_MIN, limit // GROWTH_PARTS)
        self.guest = 0
        """Linear memory of all programs, without what was never touched of their C stacks."""
        self.engine = 0
        """What the engine holds besides: tables, stacks of calls, exceptions, instances."""
        self.objects = 0
        """Kernel objects: processes, open files, sockets, watches, timers, locks."""
        self.queued = 0
        """Data that waits to be read: in pipes, sockets, host channels. A queue whose pushes
        are many may write this field itself, after it has compared with `kernel_max`."""
        self.kernel_max = limit + KERNEL_UNCHARGED_MAX
        """What `objects` and `queued` together may be; changes with `guest` and `engine`."""
        self.dying = 0
        """How much of `guest` and `engine` belongs to processes that have ended."""
        self.shared = 0
        """By how much guests that compute may grow, all together, until they are looked at."""
        self.freed: deque[Freed] = deque()
        """Memory that threads have freed and that is still in the account. Only this field may
        be changed without the sandbox's lock, so that the thread of an ended process need not
        wait for the lock."""
        self.unseen: set[Unseen] = set()
        """Programs that wait, and were not looked at after they computed."""
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
        """Bytes left; negative when guests have grown past the limit. Memory that is about to
        be freed counts as left."""
        kernel = self.objects + self.queued - KERNEL_UNCHARGED_MAX
        used = self.guest + self.engine + (kernel if kernel > 0 else 0)
        return self.limit - used + self.dying

    @property
    def holds(self) -> bool:
        """Whether the limit holds: `room` is not negative."""
        return (
            self.objects + self.queued <= self.kernel_max
            and self.guest + self.engine - self.dying <= self.limit
        )

    def require(self, wanted: int, errno: Errno = Errno.ENOMEM) -> None:
        """Raise `errno` unless there is room for `wanted` more bytes of objects or data."""
        if self.freed:
            self.settle()
        if self.objects + self.queued + wanted > self.kernel_max:
            raise self._refusal(errno)

    def require_program(self, wanted: int, replaced: int = 0, errno: Errno = Errno.ENOMEM) -> None:
        """Raise `errno` unless there is room for a program of `wanted` bytes, in the place of one
        that takes `replaced`."""
        if self.freed:
            self.settle()
        if wanted - replaced > self.room:
            raise self._refusal(errno)
        if wanted > DYING_LIMITS * self.limit - self.charged:
            raise KernelError(
                errno,
                f"{self.dying} bytes of ended processes are not yet freed; "
                "raise memory_limit_bytes",
            )

    def _refusal(self, errno: Errno) -> KernelError:
        return KernelError(errno, f"{self.limit} bytes in use; raise memory_limit_bytes")

    def share(self, held: int) -> int:
        """How many bytes a guest may grow by from now on; until now it could grow by `held`."""
        if self.freed:
            self.settle()
        # At every wait: comparisons cost a third of `min` and `max`.
        limit, others = self.limit, self.shared - held
        used = self.guest + self.engine
        kernel = self.objects + self.queued - KERNEL_UNCHARGED_MAX
        if kernel > 0:
            used += kernel
        left = SHARED_LIMITS * limit - used - others
        share = left >> 1
        if share < self._share_min:
            share = self._share_min
        if share > left:
            share = left
        room = limit - used + (self.dying if self.dying < limit else limit)
        if share > room:
            share = room
        if share < 0:
            share = 0
        self.shared = others + share
        return share

    def settle(self) -> None:
        """Take memory that was freed out of the account."""
        while self.freed:
            self.freed.popleft().take_out()

    def see(self) -> bool:
        """Measure the programs in `unseen`; whether the limit holds."""
        self.settle()
        while self.unseen:
            self.unseen.pop().measure()
        return self.holds

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

    def change_programs(self, guest: int, engine: int, dying: int) -> None:
        """Programs take `guest` more bytes of linear memory and `engine` more bytes of the engine;
        `dying` more bytes belong to ended processes. Each may be negative."""
        self.guest += guest
        self.engine += engine
        self.dying += dying
        programs = self.guest + self.engine
        left = self.limit - programs + self.dying
        # What guests do not have is the kernel's to use.
        self.kernel_max = KERNEL_UNCHARGED_MAX + (left if left > 0 else 0)
        used = programs + self.objects + self.queued
        if used > self.peak:
            self.peak = used

    def note_peak(self) -> None:
        """Update `peak` with what is in use now."""
        used = self.guest + self.engine + self.objects + self.queued
        if used > self.peak:
            self.peak = used
