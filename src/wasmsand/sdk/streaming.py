"""Output that is handed to the caller's functions while a command runs.

Rules: a callback runs on the thread that called `commands.run` and while no lock is
held, so it may use the sandbox; what it raises leaves `run` at once; characters are
never cut, however the command writes its bytes.
"""

from __future__ import annotations

import codecs
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.machine import Completed

TextSink = Callable[[str], None]
BytesSink = Callable[[bytes], None]
Start = Callable[[BytesSink | None, BytesSink | None], "Completed"]


class _Stream:
    """One of the two outputs: bytes in on the guest's thread, text out on the caller's."""

    def __init__(self, sink: TextSink) -> None:
        self._sink = sink
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def deliver(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if text:
            self._sink(text)


def run_with_callbacks(
    start: Start, on_stdout: TextSink | None, on_stderr: TextSink | None
) -> Completed:
    """Call `start` on a thread of its own and deliver its output on this one."""
    waiting: SimpleQueue[tuple[_Stream, bytes] | Completed | BaseException] = SimpleQueue()
    streams = [None if sink is None else _Stream(sink) for sink in (on_stdout, on_stderr)]

    def queueing(stream: _Stream | None) -> BytesSink | None:
        return None if stream is None else lambda data: waiting.put((stream, data))

    def work() -> None:
        try:
            waiting.put(start(queueing(streams[0]), queueing(streams[1])))
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=work, name="wasmsand-command", daemon=True).start()
    while isinstance(item := waiting.get(), tuple):
        stream, data = item
        stream.deliver(data)
    if isinstance(item, BaseException):
        raise item
    for stream_or_none in streams:
        if stream_or_none is not None:
            stream_or_none.deliver(b"", final=True)
    return item
