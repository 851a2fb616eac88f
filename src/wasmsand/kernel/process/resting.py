"""Programs that wait for the host with nothing on their stack.

Owns `rest`, by which a program says so, and `rest_of`. Rules: whatever a program at rest still
needs is in its memory, so a copy of that memory can go on elsewhere. The wait itself is like one
for a readable descriptor.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import POLLERR, POLLHUP, POLLIN
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.wait import WouldBlock

_READABLE: Final = POLLIN | POLLHUP | POLLERR


class Rest:
    """One wait of a program at rest. Its memory does not change until the wait ends."""

    __slots__ = ("copies",)

    def __init__(self) -> None:
        self.copies = 0
        """How many copies of the program were made in this wait."""


def rest(thread: Thread, file: OpenFile) -> int:
    """Wait until `file` can be read, or is at its end."""
    file.require_readable()
    if file.poll() & _READABLE:
        return 0
    if rest_of(thread) is None:
        thread.call.progress = Rest()
    raise WouldBlock(file.queues())


def rest_of(thread: Thread) -> Rest | None:
    """The wait of a thread in `rest`; None if it does not wait there."""
    progress = thread.call.progress
    return progress if isinstance(progress, Rest) else None
