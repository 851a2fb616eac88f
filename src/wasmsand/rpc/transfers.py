"""Archives and long files, transferred in pieces.

Owns `Transfer`, which clients call a stream. Rules: an outgoing piece is produced when the
client asks for it; incoming pieces are consumed on a separate thread, and only a few may wait.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

_PIECES_WAITING: Final = 4


class Transfer(Protocol):
    """A stream in either direction."""

    def close(self) -> None:
        """Abort the transfer; idempotent."""


class Outgoing:
    """Pieces that the client reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._lock = threading.Lock()

    def next(self) -> bytes | None:
        """The next piece; None after the last one."""
        with self._lock:
            return next(self._pieces, None)

    def close(self) -> None:
        """See `Transfer`."""
        with self._lock:
            self._pieces = iter(())


class Incoming:
    """Pieces that the client writes."""

    def __init__(self, consume: Callable[[Iterable[bytes]], None]) -> None:
        """`consume` gets the pieces, on a separate thread."""
        self._changed = threading.Condition()
        # Guarded by the condition:
        self._waiting: deque[bytes] = deque()
        self._complete = False
        self._abandoned = False
        self._done = False
        self._failure: Exception | None = None
        threading.Thread(
            target=self._work, args=(consume,), name="wasmsand-unpack", daemon=True
        ).start()

    def _work(self, consume: Callable[[Iterable[bytes]], None]) -> None:
        failure: Exception | None = None
        try:
            consume(self._pieces())
        except Exception as error:
            failure = error
        with self._changed:
            self._done, self._failure = True, failure
            self._changed.notify_all()

    def _pieces(self) -> Iterator[bytes]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._complete)
                if self._abandoned:
                    raise _Abandoned
                if not self._waiting:
                    return
                piece = self._waiting.popleft()
                self._changed.notify_all()
            yield piece

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises the exception of `consume` if it has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._done or len(self._waiting) < _PIECES_WAITING)
            if self._failure is not None:
                raise self._failure
            if piece and not self._done:
                self._waiting.append(piece)
                self._changed.notify_all()

    def finish(self) -> None:
        """After the last piece: wait for `consume`. Raises its exception if it has failed."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done)
            if self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """See `Transfer`."""
        with self._changed:
            self._complete = self._abandoned = True
            self._changed.notify_all()


class PieceStream:
    """Pieces as a binary stream that can be read once."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes; none at the end."""
        if size < 0:
            whole = b"".join((bytes(self._rest), *self._pieces))
            self._rest = memoryview(b"")
            return whole
        while size and not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = memoryview(piece)
        taken, self._rest = bytes(self._rest[:size]), self._rest[size:]
        return taken


class _Abandoned(Exception):
    """The client has aborted the transfer."""
