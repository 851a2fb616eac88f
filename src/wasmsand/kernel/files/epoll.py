"""epoll: many files watched at once.

Owns `EpollFile`. Rules: a watched file that may have become ready puts itself on a list, so that a
wait looks only at the files on the list; level-triggered files stay on the list while they are
ready; a file whose last descriptor is closed is no longer watched.

Epoll files can watch each other. As on Linux they do so neither in circles nor more than
`EPOLL_NESTS_MAX` above each other, whichever side of a chain is extended (ELOOP), and the ways
from a file up to the epoll files that nobody watches are counted (EINVAL). So the wake-ups that
a change of one file causes are bounded. A look at what is on a list drops what is not ready:
an epoll file that is looked at twice in one call costs nothing the second time, by however many
ways it is reached. All watches of a sandbox together are bounded (ENOSPC).
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
"""How many ways lead to the top, by the number of epoll files on the way."""
_TOP: Final[_Paths] = (1, *(0 for _ in EPOLL_PATHS_MAX[1:]))


class WatchAccount:
    """The watches of all epoll files of a sandbox."""

    __slots__ = ("count", "ledger")

    def __init__(self, ledger: Ledger) -> None:
        self.count = 0
        self.ledger = ledger

    def add(self) -> None:
        """Count one more watch; ENOSPC, ENOMEM."""
        if self.count >= EPOLL_WATCHES_MAX:
            raise KernelError(Errno.ENOSPC, f"{EPOLL_WATCHES_MAX} files are watched")
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
        """The file changed."""
        epoll = self.epoll
        epoll.maybe_ready[self] = None
        epoll.changed.wake()

    def start(self) -> None:
        """Start to watch the file."""
        for queue in self.file.queues():
            queue.add(self.wake)

    def look(self) -> None:
        """See whether the file is ready already. Nobody is woken if it is not: an epoll file
        with nothing below it wakes none of those above, of which there may be very many."""
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
        """Those of the wanted events that the file is ready for."""
        wanted = self.events
        if not wanted & ~(EPOLLET | EPOLLONESHOT):
            return 0  # EPOLLONESHOT, and it has fired
        return self.file.poll() & (wanted & 0xFFFF | _ALWAYS)


class EpollFile(OpenFile):
    """What epoll_create makes."""

    __slots__ = ("_account", "_inner", "_stat", "_watches", "changed", "maybe_ready")

    kind: ClassVar[str] = "anon_inode:[eventpoll]"
    cost: ClassVar[int] = EPOLL_FILE_COST

    def __init__(self, stat: Stat, account: WatchAccount) -> None:
        super().__init__(O_RDWR)
        self.changed = WaitQueue()
        self.maybe_ready: dict[Watch, None] = {}  # in the order of becoming ready
        self._watches: dict[tuple[int, OpenFile], Watch] = {}
        self._inner: dict[Watch, EpollFile] = {}
        """The watched epoll files, by watch."""
        self._account = account
        self._stat = stat

    def add(self, fd: int, file: OpenFile, events: int, data: int) -> None:
        """EPOLL_CTL_ADD."""
        if isinstance(file, RegularFile | DirectoryFile):
            raise KernelError(Errno.EPERM, "a file that is always ready")
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
            raise KernelError(Errno.EINVAL, "too many ways through epoll files")
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
        return (file for _, file in self._watches)

    def wait(self, most: int, *, now: int, deadline: int | None) -> list[tuple[int, int]]:
        """Up to `most` (events, data) that are ready; WouldBlock until `deadline`, then none."""
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
                self.maybe_ready[watch] = None  # looked at again, after the others
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
            del self.maybe_ready[watch]  # a change of the file puts it back
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
    """ELOOP if `above` must not watch `below`: if that reaches it, or too many would be above
    each other. Linux's `ep_loop_check`."""
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
    """The epoll files that are reached in 0, 1, 2 ... steps. There are no circles."""
    layers = [{start}]
    while True:
        following = {epoll for reached in layers[-1] for epoll in step(reached)}
        if not following:
            return layers
        layers.append(following)


def _too_many_paths(file: OpenFile) -> bool:
    """Whether a file that `file` is, or that it watches in several steps, has too many ways to
    the top. Linux's `reverse_path_check`; each epoll file is looked at once."""
    known: dict[EpollFile, _Paths] = {}
    sources = {file}
    if isinstance(file, EpollFile):
        layers = _layers(file, EpollFile.inner)
        epolls = {epoll for layer in layers for epoll in layer}
        sources = {watched for epoll in epolls for watched in epoll.watched()} - epolls
    for source in sources:
        paths = _sum(_paths(watch.epoll, known) for watch in _watches_of(source))
        # Any number of epoll files may watch a file themselves.
        if any(count > most for count, most in zip(paths[1:], EPOLL_PATHS_MAX[1:], strict=True)):
            return True
    return False


def _paths(epoll: EpollFile, known: dict[EpollFile, _Paths]) -> _Paths:
    """The ways from an epoll file to the top. As deep as epoll files are nested."""
    found = known.get(epoll)
    if found is None:
        above = epoll.outer()
        found = _TOP
        if above:
            found = (0, *_sum(_paths(outer, known) for outer in above)[:-1])
        known[epoll] = found
    return found


def _sum(paths: Iterable[_Paths]) -> _Paths:
    return tuple(map(sum, zip(*paths, strict=True)))
