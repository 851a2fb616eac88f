"""epoll: watching many files at once.

Owns `EpollFile`. Rules: a watched file that may have become ready is put on a ready list, and a
wait checks only the files on that list. Level-triggered files stay on the list while they are
ready. A file is no longer watched after its last descriptor is closed.

Epoll files can watch each other. As on Linux, they must not form loops or chains longer than
`EPOLL_NESTS_MAX` (ELOOP), and the number of paths from a file up to the outermost epoll files is
bounded (EINVAL). This bounds the wake-ups that one change of a file can cause. Checking a ready
list removes the files that are not ready, so an epoll file that is reached by several paths in one
call costs nothing after the first check. The total number of watches in a sandbox is bounded
(ENOSPC).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import DirectoryFile, RegularFile
from wasmsand.kernel.flags import O_RDWR, POLLERR, POLLHUP, POLLIN, POLLRDNORM
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import (
    EPOLL_FILE_COST,
    EPOLL_NESTS_MAX,
    EPOLL_PATHS_MAX,
    EPOLL_WATCHES_MAX,
    WATCH_COST,
)
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock

EPOLLET: Final = 1 << 31
EPOLLONESHOT: Final = 1 << 30
_ALWAYS: Final = POLLERR | POLLHUP

_Paths = tuple[int, ...]
"""How many paths lead to the outermost epoll files, by path length."""
_TOP: Final[_Paths] = (1, *[0 for _ in EPOLL_PATHS_MAX[1:]])


class WatchAccount:
    """The watches of all epoll files of a sandbox."""

    __slots__ = ("count", "ledger")

    def __init__(self, ledger: Ledger) -> None:
        self.count = 0
        self.ledger = ledger

    def add(self) -> None:
        """Count one more watch. ENOSPC or ENOMEM if there is no room."""
        if self.count >= EPOLL_WATCHES_MAX:
            raise KernelError(Errno.ENOSPC, f"limit of {EPOLL_WATCHES_MAX} watches reached")
        self.ledger.add_object(WATCH_COST)
        self.count += 1

    def remove(self) -> None:
        """Count one watch less."""
        self.count -= 1
        self.ledger.drop_object(WATCH_COST)


class Watch:
    """One file that an epoll file watches."""

    __slots__ = ("data", "epoll", "events", "fd", "file")

    def __init__(self, epoll: EpollFile, fd: int, file: OpenFile, events: int, data: int) -> None:
        self.epoll = epoll
        self.fd = fd
        self.file = file
        self.events = events
        self.data = data

    def wake(self) -> None:
        """The file's readiness may have changed."""
        epoll = self.epoll
        epoll.maybe_ready[self] = None
        epoll.changed.wake()

    def start(self) -> None:
        """Start watching the file."""
        for queue in self.file.queues():
            queue.add(self.wake)

    def look(self) -> None:
        """Put the file on the ready list if it is already ready. If it is not, nothing is woken:
        there may be very many outer epoll files."""
        if self.bits():
            self.wake()

    def stop(self) -> None:
        """Stop watching the file."""
        for queue in self.file.queues():
            queue.remove(self.wake)
        self.epoll.maybe_ready.pop(self, None)

    def file_closed(self) -> None:
        """See `Watcher`."""
        self.epoll.drop(self)

    def bits(self) -> int:
        """The wanted events that are ready."""
        wanted = self.events
        if not wanted & ~(EPOLLET | EPOLLONESHOT):
            return 0  # EPOLLONESHOT has fired
        return self.file.poll() & (wanted & 0xFFFF | _ALWAYS)


class EpollFile(OpenFile):
    """An epoll instance, created by epoll_create."""

    __slots__ = ("_account", "_inner", "_stat", "_watches", "changed", "maybe_ready")

    kind: ClassVar[str] = "anon_inode:[eventpoll]"
    cost: ClassVar[int] = EPOLL_FILE_COST

    def __init__(self, stat: Stat, account: WatchAccount) -> None:
        super().__init__(O_RDWR)
        self.changed = WaitQueue()
        self.maybe_ready: dict[Watch, None] = {}  # in the order in which they became ready
        self._watches: dict[tuple[int, OpenFile], Watch] = {}
        self._inner: dict[Watch, EpollFile] = {}
        """The watched epoll files, by watch."""
        self._account = account
        self._stat = stat

    def add(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_ADD."""
        if isinstance(file, RegularFile | DirectoryFile):
            raise KernelError(Errno.EPERM, "this type of file is always ready")
        if isinstance(file, EpollFile):
            _require_no_loop(self, file)
        if (fd, file) in self._watches:
            raise KernelError(Errno.EEXIST)
        self._account.add()
        watch = Watch(self, fd, file, events, data)
        self._watches[fd, file] = watch
        if file.watchers is None:
            file.watchers = {}
        file.watchers[watch] = None
        if isinstance(file, EpollFile):
            self._inner[watch] = file
        if (self.watchers or isinstance(file, EpollFile)) and _too_many_paths(file):
            self.drop(watch)
            raise KernelError(Errno.EINVAL, "too many paths through epoll files")
        watch.start()
        watch.look()

    def modify(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_MOD."""
        watch = self._find(fd, file)
        watch.events = events
        watch.data = data
        watch.look()

    def remove(self, fd: int, file: OpenFile) -> None:
        """EPOLL_CTL_DEL."""
        self.drop(self._find(fd, file))

    def _find(self, fd: int, file: OpenFile) -> Watch:
        watch = self._watches.get((fd, file))
        if watch is None:
            raise KernelError(Errno.ENOENT)
        return watch

    def drop(self, watch: Watch) -> None:
        """Remove a watch."""
        watch.stop()
        del self._watches[watch.fd, watch.file]
        self._inner.pop(watch, None)
        watchers = watch.file.watchers
        assert watchers is not None
        del watchers[watch]
        self._account.remove()

    def inner(self) -> Iterable[EpollFile]:
        """The epoll files that this one watches."""
        return self._inner.values()

    def outer(self) -> list[EpollFile]:
        """The epoll files that watch this one, once for each watch."""
        return [watch.epoll for watch in _watches_of(self)]

    def watched(self) -> Iterable[OpenFile]:
        """The files that this one watches."""
        return [file for _, file in self._watches]

    def wait(self, most: int, *, now: int, deadline: int | None) -> list[tuple[int, int]]:
        """Up to `most` ready (events, data); WouldBlock until `deadline`, then an empty list."""
        found: list[tuple[int, int]] = []
        for watch in tuple(self.maybe_ready):
            if len(found) >= most:
                break
            del self.maybe_ready[watch]
            bits = watch.bits()
            if not bits:
                continue
            found.append((bits, watch.data))
            if watch.events & EPOLLONESHOT:
                watch.events &= EPOLLET | EPOLLONESHOT
            elif not watch.events & EPOLLET:
                self.maybe_ready[watch] = None  # checked again, after the others
        if found or (deadline is not None and now >= deadline):
            return found
        raise WouldBlock((self.changed,), deadline)

    def poll(self) -> int:
        idle: list[Watch] = []
        found = 0
        for watch in self.maybe_ready:
            if watch.bits():
                found = POLLIN | POLLRDNORM
                break
            idle.append(watch)
        for watch in idle:
            del self.maybe_ready[watch]  # a change of the file puts it back on the list
        return found

    def queues(self) -> tuple[WaitQueue, ...]:
        return (self.changed,)

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        for watch in tuple(self._watches.values()):
            self.drop(watch)


def _watches_of(file: OpenFile) -> list[Watch]:
    return [watch for watch in file.watchers or () if isinstance(watch, Watch)]


def _require_no_loop(above: EpollFile, below: EpollFile) -> None:
    """ELOOP if `above` must not watch `below`, because that would form a loop or too long a chain.
    Linux's `ep_loop_check`."""
    if above is below:
        raise KernelError(Errno.ELOOP)
    down = _layers(below, EpollFile.inner)
    if any(above in layer for layer in down):
        raise KernelError(Errno.ELOOP)
    up = _layers(above, EpollFile.outer)
    if len(down) + len(up) - 1 > EPOLL_NESTS_MAX:
        raise KernelError(Errno.ELOOP)


def _layers(
    start: EpollFile, step: Callable[[EpollFile], Iterable[EpollFile]]
) -> list[set[EpollFile]]:
    """The epoll files reached in 0, 1, 2 ... steps. There are no loops."""
    layers = [{start}]
    while True:
        following = {epoll for reached in layers[-1] for epoll in step(reached)}
        if not following:
            return layers
        layers.append(following)


def _too_many_paths(file: OpenFile) -> bool:
    """Whether `file`, or a file that it watches directly or indirectly, has too many paths to the
    outermost epoll files. Linux's `reverse_path_check`; visits each epoll file once."""
    known: dict[EpollFile, _Paths] = {}
    sources = {file}
    if isinstance(file, EpollFile):
        layers = _layers(file, EpollFile.inner)
        epolls = {epoll for layer in layers for epoll in layer}
        sources = {watched for epoll in epolls for watched in epoll.watched()} - epolls
    for source in sources:
        paths = _sum([_paths(watch.epoll, known) for watch in _watches_of(source)])
        # Any number of epoll files may watch a file directly.
        if any(count > most for count, most in zip(paths[1:], EPOLL_PATHS_MAX[1:], strict=True)):
            return True
    return False


def _paths(epoll: EpollFile, known: dict[EpollFile, _Paths]) -> _Paths:
    """The paths from an epoll file to the outermost ones. Recursion is bounded by the nesting."""
    found = known.get(epoll)
    if found is None:
        above = epoll.outer()
        found = _TOP
        if above:
            found = (0, *_sum([_paths(outer, known) for outer in above])[:-1])
        known[epoll] = found
    return found


def _sum(paths: Iterable[_Paths]) -> _Paths:
    return tuple(map(sum, zip(*paths, strict=True)))
