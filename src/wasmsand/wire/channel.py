"""Reserves standard input and output of this process for a protocol.

Owns `LineChannel` and `claim_stdio`. Rules: after `claim_stdio`, only `LineChannel.send` writes to
the peer: file descriptor 1 then refers to standard error, so that a stray print, ours or a
library's, cannot break the protocol, and descriptor 0 is at end of file; lines of several threads
never mix; a peer that disconnects is noticed even while nothing is written.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import BinaryIO, Final, NoReturn

from wasmsand.wire import strict_json
from wasmsand.wire.lines import MAX_LINE_BYTES, LineReader

_BUFFER_BYTES: Final = 65536
"""The size of a pipe's buffer."""


class PeerGone(Exception):
    """The peer has closed its end of the output."""


class Terminated(BaseException):
    """A signal asked the process to end. Not an `Exception`, so that no handler mistakes it for a
    failed request."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


class LineChannel:
    """Sends and receives one JSON value per line.

    `gone`: `watched` has found that the peer has disconnected.
    """

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._reader = LineReader(source, max_line_bytes)
        self._sink = sink
        self._lock = threading.Lock()
        self._watched = False
        self.gone = False

    def next_line(self) -> bytes | None:
        """The peer's next line; None after the last one (see `LineReader`)."""
        return self._reader.next()

    def send(self, value: object) -> None:
        """Write one line. Raises `PeerGone` if the peer has disconnected."""
        line = memoryview(strict_json.encode(value))
        with self._lock:
            try:
                while line:
                    line = line[self._sink.write(line) :]
            except (BrokenPipeError, ConnectionResetError):
                raise PeerGone("the client has closed its end of the output") from None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Send this process a SIGTERM when the peer closes its end of the output, until the block
        ends: no work continues without a reader. Where the system cannot report this, only `send`
        notices."""
        if not hasattr(select, "poll"):
            yield
            return
        self._watched = True
        threading.Thread(target=self._await_hangup, name="wasmsand-peer", daemon=True).start()
        try:
            yield
        finally:
            self.unwatch()

    def unwatch(self) -> None:
        """From now on the peer may disconnect: only the last answer follows."""
        with self._lock:
            self._watched = False

    def _await_hangup(self) -> None:
        poll = select.poll()
        poll.register(self._sink.fileno(), 0)  # errors and hang-ups are always reported
        poll.poll()
        with self._lock:
            if self._watched:
                self.gone = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def claim_stdio(max_line_bytes: int = MAX_LINE_BYTES) -> LineChannel:
    """Reserve standard input and output of this process. Call it once, early."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return LineChannel(
        open(source, "rb", buffering=_BUFFER_BYTES), open(sink, "wb", buffering=0), max_line_bytes
    )


def leave(status: int) -> NoReturn:
    """End the process at once. Nothing needs clean-up, and a normal exit would wait for running
    threads or fail because of them."""
    sys.stderr.flush()
    os._exit(status)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT raise `Terminated` in the main thread until the block ends."""

    def terminate(number: int, _: FrameType | None) -> None:
        raise Terminated(number)

    before = {
        number: signal.signal(number, terminate) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
