"""Programs that wait for the host with nothing on their stack.

Owns `rest`, by which a program says so, and `is_at_rest`. Rules: whatever a program at rest still
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
_AT_REST: Final = object()


def rest(thread: Thread, file: OpenFile) -> int:
    """Wait until `file` can be read, or is at its end."""
    file.require_readable()
    if file.poll() & _READABLE:
        return 0
    thread.call.progress = _AT_REST
    raise WouldBlock(file.queues())


def is_at_rest(thread: Thread) -> bool:
    """Whether the thread waits in `rest`."""
    return thread.call.progress is _AT_REST
