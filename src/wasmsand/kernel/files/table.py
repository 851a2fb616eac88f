"""File descriptor tables.

Owns the mapping from fd to open file description for one process, with close-on-exec flags. Rules:
a new fd is the lowest free number. The limit is the process's RLIMIT_NOFILE. A description is
released when its last fd, in any process, is closed. fds are charged to the sandbox's ledger, and
ENOMEM is raised before anything changes.
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
        """Set while the process holds record locks: closing any fd of a file releases them."""

    def get(self, fd: int) -> OpenFile:
        """The description behind `fd`; EBADF if it is not open."""
        try:
            return self._files[fd]
        except KeyError:
            raise KernelError(Errno.EBADF) from None

    def find(self, fd: int) -> OpenFile | None:
        """The description behind `fd`, or None."""
        return self._files.get(fd)

    def install(self, file: OpenFile, *, close_on_exec: bool = False, minimum: int = 0) -> int:
        """Assign the lowest free fd that is at least `minimum` to `file`.

        On EMFILE and ENOMEM, `file` is released if nothing else refers to it, so that a failed open
        leaves nothing behind.
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
        """EMFILE or ENOMEM if no further fd can be assigned."""
        self._lowest_free = self._lowest(0)  # saves `install` the search
        ledger = self._ledger
        if ledger.objects + ledger.queued + _NEW_FD_COST > ledger.kernel_max:
            ledger.require(_NEW_FD_COST)

    def _charge(self, file: OpenFile) -> None:
        """Charge a further fd, and the file if this is its first fd."""
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
        """Make `fd` refer to `file`, closing what it referred to before (dup2)."""
        if not 0 <= fd < self.limit:
            raise KernelError(Errno.EBADF)
        self._charge(file)
        before = self._files.get(fd)
        self._close_on_exec.discard(fd)
        self._put(fd, file, close_on_exec)
        if before is not None:  # last: closing may hang up a terminal and end this process
            self._closed(before)

    def _put(self, fd: int, file: OpenFile, close_on_exec: bool) -> None:
        self._files[fd] = file
        file.references += 1
        if close_on_exec:
            self._close_on_exec.add(fd)

    def close(self, fd: int) -> None:
        """Close `fd`; EBADF if it is not open."""
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
        self._files, self._close_on_exec = {}, set()  # an emptied large dict would keep its memory

    def close_for_exec(self) -> None:
        """Close the fds marked close-on-exec."""
        for fd in sorted(self._close_on_exec):
            if fd in self._files:  # a hang-up may have ended the process
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
        """The table of a forked child: its own fds for the same descriptions."""
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
