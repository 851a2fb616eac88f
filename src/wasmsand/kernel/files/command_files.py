"""Files whose other side is the host program: given input, captured output.

Owns `CommandInput` and `CommandOutput`. Rules: to the guest they look like pipes; output
past its limit is dropped and `on_overflow` is called once; a sink may be closed by
the host, after which writes are accepted and dropped, so that a background process
does not die because nobody listens any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import O_RDONLY, O_WRONLY, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM
from wasmsand.kernel.vfs import Stat


class CommandInput(OpenFile):
    """Bytes given by the host before the process started."""

    __slots__ = ("_data", "_position", "_stat")

    kind: ClassVar[str] = "pipe"

    def __init__(self, data: bytes, stat: Stat) -> None:
        super().__init__(O_RDONLY)
        self._data = data
        self._position = 0
        self._stat = stat

    def read(self, count: int) -> bytes:
        taken = self._data[self._position : self._position + count]
        self._position += len(taken)
        return taken

    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def poll(self) -> int:
        return POLLIN | POLLRDNORM

    def stat(self) -> Stat:
        return self._stat


class CommandOutput(OpenFile):
    """Output captured by the host, up to a limit."""

    __slots__ = (
        "_on_close",
        "_on_data",
        "_on_overflow",
        "_stat",
        "captured",
        "closed",
        "limit",
        "truncated",
    )

    kind: ClassVar[str] = "pipe"

    def __init__(
        self,
        limit: int,
        stat: Stat,
        *,
        on_data: Callable[[bytes], None] | None = None,
        on_overflow: Callable[[], None] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(O_WRONLY)
        self.limit = limit
        self.captured = bytearray()
        self.truncated = False
        self.closed = False
        self._stat = stat
        self._on_data = on_data
        self._on_overflow = on_overflow
        self._on_close = on_close

    def write(self, data: bytes) -> int:
        if self.closed or self.truncated:
            return len(data)
        kept = data[: self.limit - len(self.captured)]
        self.captured += kept
        if self._on_data is not None and kept:
            self._on_data(kept)
        if len(kept) < len(data):
            self.truncated = True
            if self._on_overflow is not None:
                self._on_overflow()
        return len(data)

    def poll(self) -> int:
        return POLLOUT | POLLWRNORM

    def stat(self) -> Stat:
        return self._stat

    def release(self) -> None:
        self.closed = True
        if self._on_close is not None:
            self._on_close()
