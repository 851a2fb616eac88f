"""Standard input and output of this process, taken for a protocol.

Owns `LineChannel` and `claim_stdio`. Rules: once standard output is claimed, only
`LineChannel.send` can write to the peer: file descriptor 1 leads to standard error from then on, so
that a stray print, here or in a library, cannot break the protocol, and 0 reads nothing; a line is
written whole, whichever threads send at once; a peer that is gone is noticed even while nothing is
written.
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
"""What a pipe holds."""


class PeerGone(Exception):
    """Nobody reads what is sent any more."""


class Terminated(BaseException):
    """A signal asked the process to end. Not an `Exception`: nothing may take it for a failed
    request."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_status = 128 + number


class LineChannel:
    """A peer that sends and gets one JSON value per line.

    `gone` is whether `watch` found that nobody reads any more.
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
        """The next line of the peer; None after the last one (see `LineReader`)."""
        return self._reader.next()

    def send(self, value: object) -> None:
        """Write one line. Raises `PeerGone` if nobody is there to read it."""
        line = memoryview(strict_json.encode(value))
        with self._lock:
            try:
                while line:
                    line = line[self._sink.write(line) :]
            except (BrokenPipeError, ConnectionResetError):
                raise PeerGone("nobody reads the answers") from None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Within this, the main thread gets a SIGTERM when the peer has closed its end of what
        is sent, so that nothing goes on for nobody. Where the system cannot tell, only `send`
        will find out."""
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
        """From now on the peer may go: the last answer follows."""
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
    """Take standard input and output of this process. To be called once, early."""
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return LineChannel(
        open(source, "rb", buffering=_BUFFER_BYTES), open(sink, "wb", buffering=0), max_line_bytes
    )


def leave(status: int) -> NoReturn:
    """End the process at once. Nothing is left to be cleaned up, and Python would wait for, or
    trip over, threads that are in the middle of something."""
    sys.stderr.flush()
    os._exit(status)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT are `Terminated`, raised in the main thread, within this."""

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
