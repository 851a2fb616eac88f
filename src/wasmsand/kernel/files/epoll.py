"""epoll: many files watched at once.

Owns `EpollFile`. Rules: a watched file that may have become ready puts itself on a list, so
that a wait looks at those and not at all; level-triggered files stay on the list while they
are ready; a file whose last descriptor is closed is no longer watched; epoll files can watch
each other, not in circles and not deeper than Linux lets them.
"""

from __future__ import annotations

from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import DirectoryFile, RegularFile
from wasmsand.kernel.flags import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLRDNORM
from wasmsand.kernel.limits import EPOLL_WATCHES_MAX
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock

EPOLLET: Final = 1 << 31
EPOLLONESHOT: Final = 1 << 30
_ALWAYS: Final = POLLERR | POLLHUP
_DEPTH_MAX: Final = 5


class Watch:
    """One file that an epoll file watches."""

    __slots__ = ("_list", "data", "events", "file")

    def __init__(self, ready: EpollFile, file: OpenFile, events: int, data: int) -> None:
        self._list = ready
        self.file = file
        self.events = events
        self.data = data

    def wake(self) -> None:
        """The file changed."""
        self._list.maybe_ready[self] = None
        self._list.changed.wake()

    def start(self) -> None:
        """Be told of changes from now on, and look once."""
        for queue in self.file.queues():
            queue.add(self.wake)
        self.wake()

    def stop(self) -> None:
        """Be told no more."""
        for queue in self.file.queues():
            queue.remove(self.wake)
        self._list.maybe_ready.pop(self, None)

    def bits(self) -> int:
        """What is ready of what is wanted."""
        wanted = self.events
        if not wanted & ~(EPOLLET | EPOLLONESHOT):
            return 0  # a one-shot that was shot
        return self.file.poll() & (wanted & 0xFFFF | _ALWAYS)


class EpollFile(OpenFile):
    """What epoll_create makes."""

    __slots__ = ("_stat", "_watches", "changed", "maybe_ready")

    kind: ClassVar[str] = "anon_inode:[eventpoll]"

    def __init__(self, stat: Stat) -> None:
        super().__init__(O_RDWR)
        self.changed = WaitQueue()
        self.maybe_ready: dict[Watch, None] = {}  # in the order of becoming ready
        self._watches: dict[tuple[int, OpenFile], Watch] = {}
        self._stat = stat

    def add(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_ADD."""
        if isinstance(file, RegularFile | DirectoryFile):
            raise KernelError(Errno.EPERM, "a file that is always ready")
        if isinstance(file, EpollFile) and (file._reaches(self) or file._depth() >= _DEPTH_MAX):
            raise KernelError(Errno.ELOOP)
        if (fd, file) in self._watches:
            raise KernelError(Errno.EEXIST)
        if len(self._watches) >= EPOLL_WATCHES_MAX:
            self._forget_closed()
            if len(self._watches) >= EPOLL_WATCHES_MAX:
                raise KernelError(Errno.ENOSPC)
        watch = Watch(self, file, events, data)
        self._watches[fd, file] = watch
        watch.start()

    def modify(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_MOD."""
        watch = self._find(fd, file)
        watch.events = events
        watch.data = data
        watch.wake()

    def remove(self, fd: int, file: OpenFile) -> None:
        """EPOLL_CTL_DEL."""
        self._find(fd, file).stop()
        del self._watches[fd, file]

    def _find(self, fd: int, file: OpenFile) -> Watch:
        watch = self._watches.get((fd, file))
        if watch is None:
            raise KernelError(Errno.ENOENT)
        return watch

    def _reaches(self, other: EpollFile) -> bool:
        if self is other:
            return True
        return any(
            isinstance(file, EpollFile) and file._reaches(other) for _, file in self._watches
        )

    def _depth(self) -> int:
        below = [file._depth() for _, file in self._watches if isinstance(file, EpollFile)]
        return 1 + max(below, default=0)

    def _forget_closed(self) -> None:
        for key in [key for key in self._watches if key[1].references == 0]:
            self._watches.pop(key).stop()

    def wait(self, most: int, *, now: int, deadline: int | None) -> list[tuple[int, int]]:
        """Up to `most` (events, data) that are ready; WouldBlock until `deadline`, then none."""
        found: list[tuple[int, int]] = []
        closed = False
        for watch in tuple(self.maybe_ready):
            if len(found) >= most:
                break
            del self.maybe_ready[watch]
            if watch.file.references == 0:
                closed = True
                continue
            bits = watch.bits()
            if not bits:
                continue
            found.append((bits, watch.data))
            if watch.events & EPOLLONESHOT:
                watch.events &= EPOLLET | EPOLLONESHOT
            elif not watch.events & EPOLLET:
                self.maybe_ready[watch] = None  # looked at again, after the others
        if closed:
            self._forget_closed()
        if found or (deadline is not None and now >= deadline):
            return found
        raise WouldBlock((self.changed,), deadline)

    def poll(self) -> int:
        ready = any(w.file.references and w.bits() for w in tuple(self.maybe_ready))
        return POLLIN | POLLRDNORM if ready else 0

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed,)

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        for watch in self._watches.values():
            watch.stop()
        self._watches.clear()
