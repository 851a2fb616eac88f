"""What a system call remembers between its attempts.

Owns `CallState`, one per thread. A call that cannot finish raises `WouldBlock` and is made again
later with the same arguments. This object holds what the call must not repeat or forget. Rules: a
handler stores something only when it is about to raise `WouldBlock`, so that a call that never
waits leaves no trace. `clear` is the only place that resets the state; the dispatcher calls it when
the call ends, and the kernel when the thread or process does.
"""

from __future__ import annotations


class HeldByCall:
    """A kernel object that belongs to a waiting call, such as its place in a queue."""

    __slots__ = ()

    def abandon(self) -> None:
        """The call ends without what it waited for: release the object."""
        raise NotImplementedError


class CallState:
    """The progress of one call."""

    __slots__ = ("deadline", "done", "outside", "progress", "started")

    def __init__(self) -> None:
        self.done = 0
        """Bytes transferred so far. If not 0, an interrupted call returns this number."""
        self.deadline: int | None = None
        """When the wait times out: the deadline of the `WouldBlock` that was raised, set by the
        dispatcher. None at the first attempt."""
        self.started: int | None = None
        """The time of the first attempt, for a call that waits for several times at once."""
        self.progress: object | None = None
        """Intermediate state that is more than a number."""
        self.outside: HeldByCall | None = None
        """What the call has asked of a mounted host file system (see `vfs.outside`)."""

    def clear(self) -> None:
        """The call has ended."""
        self.done = 0
        self.deadline = self.started = None
        progress = self.progress
        if progress is not None:
            self.progress = None
            if isinstance(progress, HeldByCall):
                progress.abandon()
        outside = self.outside
        if outside is not None:
            self.outside = None
            outside.abandon()
