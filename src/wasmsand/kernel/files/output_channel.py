"""Output that the host reads while the command runs.

Owns `OutputChannel`, an ordered, bounded queue for all output descriptors of one command, and
`ChannelOutput`, the description for one of them. Rules: to the guest it looks like a pipe: a write
waits while the queue is full. The host receives data in the order of the writes, across all
descriptors. After the host has left, writes succeed and are dropped, so that a background process
does not die of SIGPIPE. A host that waits for one descriptor is not woken for the others, unless
much has been written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_WRONLY, POLLOUT, POLLWRNORM
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import OUTPUT_CHANNEL_CAPACITY, OUTPUT_PIECE_COST, PIPE_ATOMIC_WRITE
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue

_MUCH: Final = OUTPUT_CHANNEL_CAPACITY // 4
"""Of so many bytes the host is told, whatever it waits for."""


class OutputChannel:
    """Data for the host, with the descriptor to which it was written."""

    __slots__ = (
        "_chunks",
        "_ledger",
        "abandoned",
        "awaited",
        "changed",
        "on_awaited",
        "size",
        "writers",
    )

    def __init__(self, ledger: Ledger | None = None) -> None:
        self._ledger = ledger or Ledger()
        self._chunks: deque[tuple[int, bytearray]] = deque()
        self.size = 0
        """Bytes queued, plus a fixed cost per piece."""
        self.writers = 0
        self.abandoned = False
        """The host no longer reads."""
        self.awaited: int | None = None
        """The descriptor that the host waits for; None if it waits for any."""
        self.on_awaited: Callable[[], None] | None = None
        """Called when something was written to that descriptor, in place of `changed`."""
        self.changed = WaitQueue()

    def is_due(self) -> bool:
        """Whether the host should take what is queued."""
        awaited = self.awaited
        if awaited is None or self.size >= _MUCH:
            return self.size > 0
        for fd, _ in self._chunks:  # noqa: SIM110  # `any` takes twice as long, for each request
            if fd == awaited:
                return True
        return False

    def room(self) -> int:
        """Bytes that can be written now."""
        return OUTPUT_CHANNEL_CAPACITY - self.size

    def push(self, fd: int, data: bytes) -> None:
        """Append `data`, which must fit; join it to the last piece if that has the same `fd`."""
        chunks = self._chunks
        joins = bool(chunks) and chunks[-1][0] == fd
        cost = len(data) if joins else len(data) + OUTPUT_PIECE_COST
        self._ledger.add_queued(cost, Errno.ENOMEM)
        if joins:
            chunks[-1][1].extend(data)
        else:
            chunks.append((fd, bytearray(data)))
        self.size += cost
        awaited = self.awaited
        if fd == awaited and self.on_awaited is not None:
            self.on_awaited()
        elif awaited is None or self.size >= _MUCH:
            self.changed.wake()

    def take(self) -> tuple[tuple[int, bytes], ...]:
        """Take all queued data."""
        taken = tuple([(fd, bytes(data)) for fd, data in self._chunks])
        self._clear()
        return taken

    def abandon(self) -> None:
        """The host has left: drop queued data and all further writes."""
        self.abandoned = True
        self._clear()

    def _clear(self) -> None:
        self._ledger.drop_queued(self.size)
        self._chunks.clear()
        self.size = 0
        self.changed.wake()


class ChannelOutput(OpenFile):
    """The description of one output descriptor."""

    __slots__ = ("_channel", "_stat", "host_fd")

    kind: ClassVar[str] = "pipe"
    writes_all: ClassVar[bool] = True

    def __init__(self, channel: OutputChannel, fd: int, stat: Stat) -> None:
        super().__init__(O_WRONLY)
        self._channel = channel
        self.host_fd = fd
        """The descriptor by which the host knows it."""
        self._stat = stat
        channel.writers += 1

    def write(self, data: bytes) -> int:
        channel = self._channel
        if channel.abandoned or not data:
            return len(data)
        room = channel.room()
        if len(data) > room:
            if room <= 0 or len(data) <= PIPE_ATOMIC_WRITE:
                raise self.wait_or_fail(channel.changed)
            data = data[:room]
        channel.push(self.host_fd, data)
        return len(data)

    def poll(self) -> int:
        if self._channel.abandoned or self._channel.room() >= PIPE_ATOMIC_WRITE:
            return POLLOUT | POLLWRNORM
        return 0

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self._channel.changed,)

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        self._channel.writers -= 1
        self._channel.changed.wake()
