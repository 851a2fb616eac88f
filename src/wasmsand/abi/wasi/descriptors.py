"""The descriptors of a program: numbers, rights, and the open files behind them.

Owns `Descriptor` and `DescriptorTable`. Rules: a program has only the descriptors in its table,
whatever else its process has open. Each is also an fd of the process, with a number of its own, so
that the kernel counts it, shows it in /proc and closes it when the process ends. If a missing right
does not apply to the type of file, the error is that of POSIX; otherwise it is ENOTCAPABLE.
"""

from __future__ import annotations

from wasmsand.abi.wasi import rights as right_sets
from wasmsand.abi.wasi.errno import NotCapable
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.regular import DirectoryFile
from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.vfs import Beneath, Node


class Descriptor:
    """One descriptor."""

    __slots__ = ("base", "fd", "file", "inheriting", "preopen", "start", "sync_flags")

    def __init__(
        self,
        file: OpenFile,
        fd: int,
        base: int,
        inheriting: int,
        *,
        preopen: bytes | None = None,
        start: Node | None = None,
    ) -> None:
        self.file = file
        self.fd = fd
        """The number of the process's fd."""
        self.base = base
        self.inheriting = inheriting
        self.preopen = preopen
        """The name, for a directory that the program starts with; else None."""
        self.sync_flags = 0
        """Stored only: all writes take effect at once."""
        self.start = start or _start_of(file)
        """Where paths relative to this descriptor start; None if it is not a directory."""

    def require(self, right: int, inapplicable: Errno) -> None:
        """Fail if the descriptor lacks any of `right`."""
        if self.base & right == right:
            return
        if right_sets.applicable(self.file) & right != right:
            raise KernelError(inapplicable)
        raise NotCapable

    def restrict(self, base: int, inheriting: int) -> None:
        """Remove all rights except these, which the descriptor must have."""
        if base & ~self.base or inheriting & ~self.inheriting:
            raise NotCapable
        self.base, self.inheriting = base, inheriting


def _start_of(file: OpenFile) -> Node | None:
    node = file.node
    if node is None or not isinstance(file, DirectoryFile):
        return None
    return Beneath(node.fs, node.ino)


class DescriptorTable:
    """The descriptors of one program."""

    __slots__ = ("_descriptors", "_fds", "_lowest_free")

    def __init__(self, fds: FdTable) -> None:
        """A table with the process's standard files, as far as they are open."""
        self._fds = fds
        self._descriptors: dict[int, Descriptor] = {}
        self._lowest_free = 0
        """All numbers below this are in use."""
        for number in range(3):
            file = fds.find(number)
            if file is not None:
                inheriting = right_sets.ALL if isinstance(file, DirectoryFile) else 0
                base = right_sets.granted(file)
                self._descriptors[number] = Descriptor(file, number, base, inheriting)

    def get(self, number: int) -> Descriptor:
        """The descriptor; EBADF if there is none."""
        try:
            return self._descriptors[number]
        except KeyError:
            raise KernelError(Errno.EBADF) from None

    def preopen(
        self, number: int, file: OpenFile, name: bytes, base: int, start: Node | None = None
    ) -> None:
        """Add a directory that the program starts with; EMFILE if there is no room."""
        fd = self._fds.install(file)
        self._descriptors[number] = Descriptor(
            file, fd, base, right_sets.ALL, preopen=name, start=start
        )

    def install(self, file: OpenFile, base: int, inheriting: int) -> int:
        """Assign the lowest free number to a newly opened file; on EMFILE the file is released."""
        fd = self._fds.install(file)
        applicable = right_sets.applicable(file)
        if not isinstance(file, DirectoryFile):
            inheriting = 0
        number = self._lowest_free
        while number in self._descriptors:
            number += 1
        self._lowest_free = number + 1
        self._descriptors[number] = Descriptor(file, fd, base & applicable, inheriting)
        return number

    def close(self, number: int) -> None:
        """Close a descriptor and its fd."""
        descriptor = self.get(number)
        self._forget(number)
        self._fds.close(descriptor.fd)

    def renumber(self, number: int, target: int) -> None:
        """Move the descriptor `number` to `target`, closing what `target` was."""
        descriptor = self.get(number)
        replaced = self.get(target)
        if number != target:
            self._descriptors[target] = descriptor
            self._forget(number)
            self._fds.close(replaced.fd)

    def _forget(self, number: int) -> None:
        del self._descriptors[number]
        self._lowest_free = min(number, self._lowest_free)
