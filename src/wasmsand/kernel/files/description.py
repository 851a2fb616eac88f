"""Open file descriptions: what an fd refers to.

Owns `OpenFile`, the base class of everything that can be read, written or polled. Rules: an fd, a
description and an inode are three different things. dup and fork share a description, and with it
the offset and status flags. `release` runs once, when the last fd is closed. A description is
charged to the sandbox's ledger from its first fd (or earlier, as for a connection waiting to be
accepted) until its last fd is closed. Methods raise `KernelError` or `WouldBlock` and never wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import O_ACCMODE, O_NONBLOCK, O_PATH, O_RDWR, O_WRONLY
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import OPEN_FILE_COST
from wasmsand.kernel.vfs import Node, Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock

_NOT_FOR_READING: Final = O_WRONLY | O_PATH
"""The bit O_WRONLY is clear in O_RDONLY and O_RDWR, and set in the invalid access mode 3."""
_WRITING: Final = O_ACCMODE | O_PATH
_FOR_WRITING: Final = (O_WRONLY, O_RDWR)


class Watcher(Protocol):
    """Watches a description until it is closed: an epoll watch."""

    def file_closed(self) -> None:
        """The description is about to be released."""


class OpenFile:
    """One open file description."""

    __slots__ = ("charged", "flags", "ledger", "on_last_close", "references", "watchers")

    cost: ClassVar[int] = OPEN_FILE_COST
    """Bytes charged to the ledger."""

    kind: ClassVar[str] = "anon_inode"
    """The name in /proc/PID/fd if the object has no path."""

    writes_all: ClassVar[bool] = False
    """Whether a blocking write continues until everything is written (streams)."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.references = 0
        self.on_last_close: Callable[[], None] | None = None
        """Called when the description is closed, to release what depends on it (a flock)."""
        self.watchers: dict[Watcher, None] | None = None
        self.ledger: Ledger | None = None
        """The ledger to which the description is charged; None if not charged yet."""
        self.charged = 0
        """Bytes charged so far."""

    def enter(self, ledger: Ledger, errno: Errno = Errno.ENOMEM) -> None:
        """Charge the description to `ledger`; `errno` if there is no room. `FdTable` does this for
        the first fd; code that keeps a description without an fd calls it directly."""
        cost = self.cost  # `Ledger.add_object`, inlined for speed
        if ledger.objects + ledger.queued + cost > ledger.kernel_max:
            ledger.require(cost, errno)
        ledger.objects += cost
        self.ledger = ledger
        self.charged = cost

    def charge(self, cost: int, errno: Errno = Errno.ENOMEM) -> None:
        """Charge `cost` more bytes for this description; `errno` if there is no room."""
        if self.ledger is not None:
            self.ledger.add_object(cost, errno)
            self.charged += cost

    def forget(self) -> None:
        """Drop one reference; dropping the last one releases the description."""
        self.references -= 1
        if self.references == 0:
            self.dispose()

    def dispose(self) -> None:
        """Release a description that has no fd (any longer)."""
        if self.on_last_close is not None:
            self.on_last_close()
        if self.watchers:
            for watcher in tuple(self.watchers):
                watcher.file_closed()
        self.release()
        ledger = self.ledger
        if ledger is not None:
            ledger.objects -= self.charged
            self.ledger = None

    @property
    def node(self) -> Node | None:
        """The inode behind this description, if it has one in the file system."""
        return None

    @property
    def nonblocking(self) -> bool:
        """Whether O_NONBLOCK is set."""
        return bool(self.flags & O_NONBLOCK)

    def require_readable(self) -> None:
        """EBADF unless opened for reading."""
        if self.flags & _NOT_FOR_READING:
            raise KernelError(Errno.EBADF, "not open for reading")

    def require_writable(self) -> None:
        """EBADF unless opened for writing."""
        if self.flags & _WRITING not in _FOR_WRITING:
            raise KernelError(Errno.EBADF, "not open for writing")

    def wait_or_fail(self, *queues: WaitQueue) -> Exception:
        """The exception to raise when no data can be transferred now."""
        if self.flags & O_NONBLOCK:
            return KernelError(Errno.EAGAIN)
        return WouldBlock(queues)

    def read(self, count: int) -> bytes:
        """Read up to `count` bytes at the current position; empty at end of file."""
        raise KernelError(Errno.EINVAL)

    def read_until(self, count: int, delimiter: int) -> bytes:
        """Like `read`, but no further than the first `delimiter`. EINVAL if this file cannot do
        that, also with a count of 0."""
        raise KernelError(Errno.EINVAL)

    def write(self, data: bytes) -> int:
        """Write some of `data` at the current position. Returns the number of bytes written."""
        raise KernelError(Errno.EINVAL)

    def read_at(self, count: int, offset: int) -> bytes:
        """Read without moving the position."""
        raise KernelError(Errno.ESPIPE)

    def write_at(self, data: bytes, offset: int) -> int:
        """Write without moving the position."""
        raise KernelError(Errno.ESPIPE)

    def seek(self, offset: int, whence: int) -> int:
        """Set the position. Returns the new one."""
        raise KernelError(Errno.ESPIPE)

    def truncate(self, length: int) -> None:
        """Set the size."""
        raise KernelError(Errno.EINVAL)

    def sync(self) -> None:
        """fsync: nothing is cached, so a file with an inode is always in sync."""
        raise KernelError(Errno.EINVAL)

    def stat(self) -> Stat:
        """Metadata, as returned by fstat."""
        raise NotImplementedError

    def poll(self) -> int:
        """The poll events that are ready now."""
        raise NotImplementedError

    def kept_open(self) -> Iterable[OpenFile]:
        """Descriptions without an fd that stay open as long as this one: for a listening socket,
        the connections waiting to be accepted."""
        return ()

    def queues(self) -> tuple[WaitQueue, ...]:
        """Queues that are woken when the result of `poll` may have changed; empty if it never
        does."""
        return ()

    def release(self) -> None:
        """The last reference is gone. Only `dispose` calls this."""
