"""Open file descriptions: what an fd refers to.

Owns `OpenFile`, the base of everything that can be read, written or polled. Rules: an fd, a
description and an inode are three things; dup and fork share a description and so its offset and
status flags; `release` runs once, when the last fd is gone; a description is on the sandbox's
ledger from its first fd, or before it (a connection that waits to be accepted), to its last. A
method raises `KernelError` or `WouldBlock`, never waits.
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
"""O_WRONLY is a bit that O_RDONLY and O_RDWR do not have, and the invalid mode 3 has."""
_WRITING: Final = O_ACCMODE | O_PATH
_FOR_WRITING: Final = (O_WRONLY, O_RDWR)


class Watcher(Protocol):
    """Something that watches a description until it is closed: a watch of an epoll file."""

    def file_closed(self) -> None:
        """The description is about to be released."""


class OpenFile:
    """One open file description."""

    __slots__ = ("charged", "flags", "ledger", "on_last_close", "references", "watchers")

    cost: ClassVar[int] = OPEN_FILE_COST
    """Bytes on the ledger."""

    kind: ClassVar[str] = "anon_inode"
    """How /proc/PID/fd names an object that has no path."""

    writes_all: ClassVar[bool] = False
    """A blocking write goes on until everything is written (streams)."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.references = 0
        self.on_last_close: Callable[[], None] | None = None
        """Called when the description is closed, to end what belongs to it (a flock)."""
        self.watchers: dict[Watcher, None] | None = None
        self.ledger: Ledger | None = None
        """The ledger in which this description is entered; None: not yet."""
        self.charged = 0
        """Bytes entered there."""

    def enter(self, ledger: Ledger, errno: Errno = Errno.ENOMEM) -> None:
        """Enter the description in `ledger`; `errno` if there is no room. `FdTable` does this
        with the first fd; code that keeps a description without an fd does it itself."""
        cost = self.cost  # as `Ledger.add_object`, without the price of a call
        if ledger.objects + ledger.queued + cost > ledger.kernel_max:
            ledger.require(cost, errno)
        ledger.objects += cost
        self.ledger = ledger
        self.charged = cost

    def charge(self, cost: int, errno: Errno = Errno.ENOMEM) -> None:
        """The description has grown by `cost` bytes; `errno` if there is no room."""
        if self.ledger is not None:
            self.ledger.add_object(cost, errno)
            self.charged += cost

    def forget(self) -> None:
        """Drop one reference; dropping the last one releases the description."""
        self.references -= 1
        if self.references == 0:
            self.dispose()

    def dispose(self) -> None:
        """Release a description to which no fd refers (any more)."""
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
        """What to raise when nothing can be moved now."""
        if self.flags & O_NONBLOCK:
            return KernelError(Errno.EAGAIN)
        return WouldBlock(queues)

    def read(self, count: int) -> bytes:
        """Up to `count` bytes from the current position; empty at the end."""
        raise KernelError(Errno.EINVAL)

    def write(self, data: bytes) -> int:
        """Write some of `data` at the current position; the count written."""
        raise KernelError(Errno.EINVAL)

    def read_at(self, count: int, offset: int) -> bytes:
        """Read without moving the position."""
        raise KernelError(Errno.ESPIPE)

    def write_at(self, data: bytes, offset: int) -> int:
        """Write without moving the position."""
        raise KernelError(Errno.ESPIPE)

    def seek(self, offset: int, whence: int) -> int:
        """Move the position; the new one."""
        raise KernelError(Errno.ESPIPE)

    def truncate(self, length: int) -> None:
        """Set the size."""
        raise KernelError(Errno.EINVAL)

    def sync(self) -> None:
        """fsync: nothing is cached, so a file with an inode is always in sync."""
        raise KernelError(Errno.EINVAL)

    def stat(self) -> Stat:
        """Metadata, as fstat gives it."""
        raise NotImplementedError

    def poll(self) -> int:
        """The poll bits that hold now."""
        raise NotImplementedError

    def kept_open(self) -> Iterable[OpenFile]:
        """Descriptions without an fd that are open while this one is: of a socket, the
        connections that wait to be accepted."""
        return ()

    def queues(self) -> tuple[WaitQueue, ...]:
        """Queues that wake when `poll` may have changed; empty if it never does."""
        return ()

    def release(self) -> None:
        """The last reference is gone. Called by `dispose`, by nobody else."""
