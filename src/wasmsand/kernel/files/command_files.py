"""Files whose other side is the host: given input, captured output.

Owns `CommandInput`, `CommandOutput` and `OutputSink`. Rules: to the guest they look like pipes. A
write never waits. After the host has detached an output, writes succeed and are dropped, so that a
background process does not die of SIGPIPE. The stat of a file is created on first use, because most
programs never ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDONLY, O_WRONLY, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM
from wasmsand.kernel.vfs import Stat


class OutputSink(Protocol):
    """Receives the output of a command. Called under the sandbox's lock."""

    def printed(self, fd: int, data: bytes) -> None:
        """`data` was written to the descriptor `fd`."""

    def output_closed(self) -> None:
        """The last description of one of the outputs was closed."""


class _CommandFile(OpenFile):
    """The common part of input and output."""

    __slots__ = ("_make_stat", "_stat")

    kind: ClassVar[str] = "pipe"

    def __init__(self, flags: int, make_stat: Callable[[], Stat]) -> None:
        super().__init__(flags)
        self._make_stat = make_stat
        self._stat: Stat | None = None

    def stat(self) -> Stat:
        if self._stat is None:
            self._stat = self._make_stat()
        return self._stat


class CommandInput(_CommandFile):
    """Input that the host gave before the process started."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes, make_stat: Callable[[], Stat]) -> None:
        super().__init__(O_RDONLY, make_stat)
        self._data = data
        self._position = 0

    def read(self, count: int) -> bytes:
        taken = self._data[self._position : self._position + count]
        self._position += len(taken)
        return taken

    def read_until(self, count: int, delimiter: int) -> bytes:
        end = min(len(self._data), self._position + count)
        found = self._data.find(delimiter, self._position, end)
        return self.read((end if found < 0 else found + 1) - self._position)

    @property
    def left(self) -> bytes:
        """What was not read yet."""
        return self._data[self._position :]

    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def poll(self) -> int:
        return POLLIN | POLLRDNORM


class CommandOutput(_CommandFile):
    """One output of a command that the host captures."""

    __slots__ = ("_fd", "_sink")

    def __init__(self, fd: int, sink: OutputSink, make_stat: Callable[[], Stat]) -> None:
        super().__init__(O_WRONLY, make_stat)
        self._fd = fd
        self._sink: OutputSink | None = sink

    def write(self, data: bytes) -> int:
        if self._sink is not None:
            self._sink.printed(self._fd, data)
        return len(data)

    def detach(self) -> None:
        """The host no longer captures this output."""
        self._sink = None

    def poll(self) -> int:
        return POLLOUT | POLLWRNORM

    def release(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.output_closed()
