"""Pipes and FIFOs.

Owns `Pipe` (the buffer and the counts of its open ends) and `PipeEnd`. Rules: the buffer holds
64 KiB (4 KiB if the sandbox has very many pipes). A write of at most 4096 bytes is atomic. A read
returns end of file when the buffer is empty and the last writer is gone. A write without readers is
EPIPE (the caller sends SIGPIPE). The other side is woken at once when the buffer is half full, or
half empty again. Before that it may be woken a little later: most programs write again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.byte_queue import ByteQueue
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import (
    O_ACCMODE,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRNORM,
)
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import (
    FULL_PIPES_MAX,
    PIPE_ATOMIC_WRITE,
    PIPE_CAPACITY,
    PIPE_END_COST,
)
from wasmsand.kernel.vfs import Namespace, Node, Stat
from wasmsand.kernel.wait import WaitQueue


class PipeAccount:
    """The number of pipes in use in a sandbox, and the ledger for their content. As on Linux,
    pipes beyond FULL_PIPES_MAX hold only one page."""

    __slots__ = ("in_use", "ledger")

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.in_use = 0
        self.ledger = ledger or Ledger()


class Pipe(ByteQueue):
    """A bounded byte queue between writers and readers."""

    __slots__ = (
        "_account",
        "capacity",
        "changed",
        "opened",
        "readers",
        "total_readers",
        "total_writers",
        "writers",
    )

    refusal: ClassVar[Errno] = Errno.ENOMEM

    def __init__(self, account: PipeAccount) -> None:
        super().__init__(account.ledger)
        self._account = account
        self.capacity = PIPE_CAPACITY
        self.readers = 0
        self.writers = 0
        # These only grow: an open of a FIFO returns once the other side was opened, even if it
        # has been closed again.
        self.total_readers = 0
        self.total_writers = 0
        self.changed = WaitQueue()
        self.opened = WaitQueue()

    def attach(self, mode: int) -> None:
        """An end was opened."""
        if not self.readers and not self.writers:
            self._account.in_use += 1
            if self._account.in_use > FULL_PIPES_MAX:
                self.capacity = PIPE_ATOMIC_WRITE
        if mode != O_WRONLY:
            self.readers += 1
            self.total_readers += 1
        if mode != O_RDONLY:
            self.writers += 1
            self.total_writers += 1
        self.opened.wake()
        self.changed.wake()

    def detach(self, mode: int) -> None:
        """An end was closed."""
        if mode != O_WRONLY:
            self.readers -= 1
        if mode != O_RDONLY:
            self.writers -= 1
        if not self.readers and not self.writers:
            self._account.in_use -= 1
            self.clear()  # as on Linux, even for a FIFO
        self.changed.wake()

    def resize(self, size: int) -> None:
        """F_SETPIPE_SZ: set the capacity to `size`, rounded up to a power of two."""
        wanted = max(PIPE_ATOMIC_WRITE, 1 << max(size - 1, 0).bit_length())
        crowded = self._account.in_use > FULL_PIPES_MAX
        if wanted > (self.capacity if crowded else PIPE_CAPACITY):
            raise KernelError(Errno.EPERM, f"a pipe holds at most {PIPE_CAPACITY} bytes")
        if wanted < self.size:
            raise KernelError(Errno.EBUSY)
        self.capacity = wanted
        self.changed.wake()

    def room(self) -> int:
        """Bytes that can be written now."""
        return self.capacity - self.size

    def push(self, data: bytes) -> None:
        """Append `data`, which must fit."""
        super().push(data)
        if self.size * 2 >= self.capacity:
            self.changed.wake()
        else:
            self.changed.wake_later()

    def pull(self, count: int) -> bytes:
        """Take up to `count` buffered bytes."""
        data = super().pull(count)
        if self.size * 2 <= self.capacity:
            self.changed.wake()
        else:
            self.changed.wake_later()
        return data


class PipeEnd(OpenFile):
    """An end of a pipe or FIFO, open for reading, writing or (FIFO only) both."""

    __slots__ = ("_namespace", "_node", "_stat", "on_release", "pipe")

    kind: ClassVar[str] = "pipe"
    cost: ClassVar[int] = PIPE_END_COST
    writes_all: ClassVar[bool] = True

    def __init__(
        self,
        pipe: Pipe,
        flags: int,
        *,
        namespace: Namespace | None = None,
        node: Node | None = None,
        stat: Stat | None = None,
    ) -> None:
        mode = flags & O_ACCMODE
        if mode not in (O_RDONLY, O_WRONLY, O_RDWR):
            raise KernelError(Errno.EINVAL)
        super().__init__(flags)
        self.pipe = pipe
        self._namespace = namespace
        self._node = node
        self._stat = stat
        self.on_release: Callable[[], None] | None = None
        if namespace is not None and node is not None:
            namespace.retain(node)
        pipe.attach(mode)

    @property
    def node(self) -> Node | None:
        return self._node

    def read(self, count: int) -> bytes:
        pipe = self.pipe
        if pipe.size:
            return pipe.pull(count)
        if pipe.writers == 0 or count == 0:
            return b""
        raise self.wait_or_fail(pipe.changed)

    def read_until(self, count: int, delimiter: int) -> bytes:
        if not count:
            return b""
        pipe = self.pipe
        return self.read(pipe.length_until(count, delimiter) if pipe.size else count)

    def write(self, data: bytes) -> int:
        if not data:
            return 0
        pipe = self.pipe
        if pipe.readers == 0:
            raise KernelError(Errno.EPIPE)
        room = pipe.room()
        wanted = len(data)
        if room >= wanted:
            pipe.push(data)
            return wanted
        if room == 0 or wanted <= PIPE_ATOMIC_WRITE:
            raise self.wait_or_fail(pipe.changed)
        pipe.push(data[:room])
        return room

    def poll(self) -> int:
        pipe = self.pipe
        mode = self.flags & O_ACCMODE
        bits = 0
        if mode != O_WRONLY:
            if pipe.size:
                bits |= POLLIN | POLLRDNORM
            if pipe.writers == 0 and pipe.total_writers:
                bits |= POLLHUP
        if mode != O_RDONLY:
            if pipe.readers == 0:
                bits |= POLLERR
            if pipe.room() >= PIPE_ATOMIC_WRITE:
                bits |= POLLOUT | POLLWRNORM
        return bits

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.pipe.changed,)

    def stat(self) -> Stat:
        if self._namespace is not None and self._node is not None:
            return self._namespace.stat(self._node)
        assert self._stat is not None
        return self._stat

    def release(self) -> None:
        self.pipe.detach(self.flags & O_ACCMODE)
        if self._namespace is not None and self._node is not None:
            self._namespace.release(self._node)
        if self.on_release is not None:
            self.on_release()


def make_pipe(account: PipeAccount, flags: int, stat: Stat) -> tuple[PipeEnd, PipeEnd]:
    """Create an unnamed pipe: (read end, write end)."""
    pipe = Pipe(account)
    return PipeEnd(pipe, flags | O_RDONLY, stat=stat), PipeEnd(pipe, flags | O_WRONLY, stat=stat)
