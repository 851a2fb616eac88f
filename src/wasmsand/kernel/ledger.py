"""The account of a sandbox's host memory.

Owns `Ledger`, which charges all memory of one sandbox, by kind: linear memory of guests, the
engine's own memory for them, kernel objects, queued data. Rules: memory is charged before it is
used and the charge is removed when it is freed. All kinds together stay within
`memory_limit_bytes`; the error message of a refusal names that option. The content of files has its
own account (`vfs/space.py`, `fs_limit_bytes`). Captured output is bounded by `max_output_bytes`
instead.

The first `KERNEL_UNCHARGED_MAX` bytes of kernel objects and queued data are counted but not charged
to the limit. So a guest may use all of its memory and can still open a file and print an error
message.

Guests' memory cannot be charged in advance: a guest grows it by itself, and one instruction can
fill everything it got. So a computing guest has a share of the free memory, by which the engine
lets it grow until the host measures it again (`share`). Up to three computing guests each get all
the free memory; with more, each gets less, but never less than a smallest share. Used and shared
memory together are at most four times the limit and the smallest shares, for the duration of a tick
or of that one instruction. Then the growth is charged, and if
the limit is exceeded, the largest process is ended.

The memory of an ended process stays charged until its thread frees it, which happens soon.
Meanwhile other processes may use as much again, but no more (`dying`).
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
    """A waiting program that was not measured after it computed."""

    def measure(self) -> None:
        """Charge what it uses."""


class Sharing(Protocol):
    """A program that shares memory with others, and is charged for what it may have written."""

    def look_at_pages(self) -> None:
        """Charge what it has written."""


class Freed(Protocol):
    """Memory that was freed but is still charged."""

    def take_out(self) -> None:
        """Remove the charge."""


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
        "sharing",
        "unseen",
    )

    def __init__(self, limit: int = UNBOUNDED) -> None:
        self.limit = limit
        self._share_min = max(GROWTH_BYTES_MIN, limit // GROWTH_PARTS)
        self.guest = 0
        """Linear memory of all programs, without the untouched parts of their C stacks."""
        self.engine = 0
        """The engine's own memory: tables, call stacks, exceptions, instances."""
        self.objects = 0
        """Kernel objects: processes, open files, sockets, watches, timers, locks."""
        self.queued = 0
        """Data waiting to be read: in pipes, sockets, output channels. For speed, a queue may
        change this field directly, after a comparison with `kernel_max`."""
        self.kernel_max = limit + KERNEL_UNCHARGED_MAX
        """The limit for `objects` plus `queued`; it changes with `guest` and `engine`."""
        self.dying = 0
        """The part of `guest` and `engine` that belongs to ended processes."""
        self.shared = 0
        """The sum of the shares of all computing guests."""
        self.freed: deque[Freed] = deque()
        """Memory that threads have freed but that is still charged. Only this field may be changed
        without the sandbox's lock, so that the thread of an ended process need not wait for the
        lock."""
        self.unseen: set[Unseen] = set()
        """Waiting programs that were not measured after they computed."""
        self.sharing: set[Sharing] = set()
        """Programs that share memory with others."""
        self.peak = 0
        """The peak of `used`. Queued data is included whenever another charge changes, not at each
        push."""

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
        """Bytes left; negative when guests have grown past the limit. Memory about to be freed
        counts as left."""
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
        """Raise `errno` if there is no room for `wanted` more bytes of objects or queued data."""
        if self.freed:
            self.settle()
        if self.objects + self.queued + wanted > self.kernel_max:
            raise self._refusal(errno)

    def require_program(self, wanted: int, replaced: int = 0, errno: Errno = Errno.ENOMEM) -> None:
        """Raise `errno` if there is no room for a program of `wanted` bytes that replaces one of
        `replaced` bytes."""
        if self.freed:
            self.settle()
        if wanted - replaced > self.room:
            self.look_at_pages()
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
        """The new share of a computing guest, whose old share is `held`."""
        if self.freed:
            self.settle()
        # Called at every wait: comparisons take a third of the time of `min` and `max`.
        limit, others = self.limit, self.shared - held
        used = self.guest + self.engine
        kernel = self.objects + self.queued - KERNEL_UNCHARGED_MAX
        if kernel > 0:
            used += kernel
        left = SHARED_LIMITS * limit - used - others
        share = left >> 1
        if share < self._share_min:
            share = self._share_min
        room = limit - used + (self.dying if self.dying < limit else limit)
        if share > room:
            share = room
        if share < 0:
            share = 0
        self.shared = others + share
        return share

    def settle(self) -> None:
        """Remove the charges of freed memory."""
        while self.freed:
            self.freed.popleft().take_out()

    def see(self) -> bool:
        """Measure the programs in `unseen`. True if the limit holds."""
        self.settle()
        while self.unseen:
            self.unseen.pop().measure()
        return self.holds

    def look_at_pages(self) -> None:
        """There is no room: find out what programs have really written of the memory that they
        share, instead of what they may have."""
        for program in self.sharing:
            program.look_at_pages()

    def add_object(self, cost: int, errno: Errno = Errno.ENOMEM) -> None:
        """Charge a kernel object before it is created."""
        if self.objects + self.queued + cost > self.kernel_max:
            self.require(cost, errno)
        self.objects += cost

    def drop_object(self, cost: int) -> None:
        """Remove the charge of a kernel object."""
        self.objects -= cost

    def add_queued(self, size: int, errno: Errno = Errno.ENOBUFS) -> None:
        """Charge data before it is queued."""
        if self.objects + self.queued + size > self.kernel_max:
            self.require(size, errno)
        self.queued += size

    def drop_queued(self, size: int) -> None:
        """Remove the charge of data that was taken or dropped."""
        self.queued -= size

    def change_programs(self, guest: int, engine: int, dying: int) -> None:
        """Programs use `guest` more bytes of linear memory and `engine` more bytes of engine
        memory; `dying` more bytes belong to ended processes. Each may be negative."""
        self.guest += guest
        self.engine += engine
        self.dying += dying
        programs = self.guest + self.engine
        left = self.limit - programs + self.dying
        # The kernel may use what guests do not.
        self.kernel_max = KERNEL_UNCHARGED_MAX + (left if left > 0 else 0)
        used = programs + self.objects + self.queued
        if used > self.peak:
            self.peak = used

    def note_peak(self) -> None:
        """Update `peak` with the current use."""
        used = self.guest + self.engine + self.objects + self.queued
        if used > self.peak:
            self.peak = used
