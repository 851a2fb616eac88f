"""Reads lines of bounded length from a stream.

Rules: at most the limit and one buffer are in memory; a longer line is skipped to its end, and
the next lines are read as usual; a last line without a newline counts.
"""

from __future__ import annotations

from typing import IO

MAX_LINE_BYTES = 384 * 1024 * 1024
"""The default limit: enough for a file that fills the default file system, in base64."""

_SKIP_BYTES = 1024 * 1024


class LineTooLong(Exception):
    """A line had more bytes than allowed, and was skipped."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a line is longer than {limit} bytes")
        self.limit = limit


class LineReader:
    """Reads one line after another."""

    def __init__(self, stream: IO[bytes], limit: int = MAX_LINE_BYTES) -> None:
        self._stream = stream
        self._limit = limit

    def next(self) -> bytes | None:
        """The next line without its newline; None at the end of the stream.

        If the line is too long, skips it and raises `LineTooLong`.
        """
        line = self._stream.readline(self._limit + 1)
        if not line:
            return None
        if line.endswith(b"\n"):
            return line[:-1]
        if len(line) <= self._limit:
            return line  # the stream ended
        while rest := self._stream.readline(_SKIP_BYTES):
            if rest.endswith(b"\n"):
                break
        raise LineTooLong(self._limit)
