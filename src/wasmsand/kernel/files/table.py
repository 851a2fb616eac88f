"""File descriptor tables.

Owns the mapping fd → open file description of one process, with close-on-exec.
Rules: the lowest free number is taken; the limit is the process's RLIMIT_NOFILE;
a description is released when its last fd, in any process, is closed; fds are on the
sandbox's ledger, and ENOMEM is raised before anything changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import FD_COST

_NEW_FD_COST = FD_COST + OpenFile.cost


class FdTable:
    """The fds of one process."""

    __slots__ = ("_close_on_exec", "_files", "_ledger", "_lowest_free", "limit", "on_close")

    def __init__(self, limit: int, ledger: Ledger | None = None) -> None:
        self._ledger = ledger or Ledger()
        self._files: dict[int, OpenFile] = {}
        self._close_on_exec: set[int] = set()
        self._lowest_free = 0
        self.limit = limit
        self.on_close: Callable[[OpenFile], None] | None = None
        """Set while the process holds record locks, which end with any close."""

    def get(self, fd: int) -> OpenFile:
        """The description behind `fd`, or EBADF."""
        try:
            return self._files[fd]
        except KeyError:
            raise KernelError(Errno.EBADF) from None

    def find(self, fd: int) -> OpenFile | None:
        """The description behind `fd`, if it is open."""
        return self._files.get(fd)

    def install(self, file: OpenFile, *, close_on_exec: bool = False, minimum: int = 0) -> int:
        """Give `file` the lowest free fd from `minimum` on.

        On EMFILE and ENOMEM the file is released if nothing else refers to it, so that a
        failed open leaves nothing behind.
        """
        try:
            fd = self._lowest(minimum)
            self._charge(file)
        except KernelError:
            if file.references == 0:
                file.dispose()
            raise
        if minimum <= self._lowest_free:
            self._lowest_free = fd + 1
        self._put(fd, file, close_on_exec)
        return fd

    def require_room(self) -> None:
        """EMFILE or ENOMEM unless a further fd can be given out."""
        self._lowest_free = self._lowest(0)  # `install` need not look again
        ledger = self._ledger
        if ledger.objects + ledger.queued + _NEW_FD_COST > ledger.kernel_max:
            ledger.require(_NEW_FD_COST)

    def _charge(self, file: OpenFile) -> None:
        """Enter a further fd in the ledger, and the file if this is its first."""
        ledger = self._ledger
        if file.ledger is None:
            file.enter(ledger)
        if ledger.objects + ledger.queued + FD_COST > ledger.kernel_max:
            ledger.require(FD_COST)
        ledger.objects += FD_COST

    def _lowest(self, minimum: int) -> int:
        files = self._files
        fd = self._lowest_free
        if fd < minimum:
            fd = minimum
        while fd in files:
            fd += 1
        if fd >= self.limit:
            raise KernelError(Errno.EMFILE, f"{self.limit} files are open; raise max_open_files")
        return fd

    def replace(self, fd: int, file: OpenFile, *, close_on_exec: bool = False) -> None:
        """Make `fd` refer to `file`, closing what it was (dup2)."""
        if not 0 <= fd < self.limit:
            raise KernelError(Errno.EBADF)
        self._charge(file)
        before = self._files.get(fd)
        self._close_on_exec.discard(fd)
        self._put(fd, file, close_on_exec)
        if before is not None:  # last: it may hang up a terminal, which ends this process
            self._closed(before)

    def _put(self, fd: int, file: OpenFile, close_on_exec: bool) -> None:
        self._files[fd] = file
        file.references += 1
        if close_on_exec:
            self._close_on_exec.add(fd)

    def close(self, fd: int) -> None:
        """Close `fd`, or EBADF."""
        try:
            file = self._files.pop(fd)
        except KeyError:
            raise KernelError(Errno.EBADF) from None
        self._close_on_exec.discard(fd)
        if fd < self._lowest_free:
            self._lowest_free = fd
        self._closed(file)

    def _closed(self, file: OpenFile) -> None:
        self._ledger.objects -= FD_COST
        if self.on_close is not None:
            self.on_close(file)
        file.forget()

    def close_all(self) -> None:
        """Close every fd (exit)."""
        for fd in list(self._files):
            self.close(fd)
        self._files, self._close_on_exec = {}, set()  # a large one would keep its memory

    def close_for_exec(self) -> None:
        """Close what is marked close-on-exec."""
        for fd in sorted(self._close_on_exec):
            if fd in self._files:  # a terminal that hangs up may have ended the process
                self.close(fd)

    def close_on_exec(self, fd: int) -> bool:
        """The FD_CLOEXEC flag of `fd`."""
        self.get(fd)
        return fd in self._close_on_exec

    def set_close_on_exec(self, fd: int, value: bool) -> None:
        """Set or clear the FD_CLOEXEC flag of `fd`."""
        self.get(fd)
        if value:
            self._close_on_exec.add(fd)
        else:
            self._close_on_exec.discard(fd)

    def copy(self) -> FdTable:
        """The table a forked child gets: same descriptions, own numbers."""
        self._ledger.add_object(FD_COST * len(self._files))
        child = FdTable(self.limit, self._ledger)
        child._files = dict(self._files)
        child._close_on_exec = set(self._close_on_exec)
        child._lowest_free = self._lowest_free
        for file in child._files.values():
            file.references += 1
        return child

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)
