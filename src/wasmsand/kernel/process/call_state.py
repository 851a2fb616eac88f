"""What a system call remembers between its tries.

Owns `CallState`, of which every thread has one. A call that cannot finish raises `WouldBlock` and
is made again later, with the same arguments; what it must not do twice, and what it must not
forget, is here. Rules: a handler stores something only when it is about to raise `WouldBlock`, so
that a call that never waits leaves no trace; `clear` is the only place where all of it is
forgotten; whoever runs the call clears it when the call ends, and the kernel when the process
does.
"""

from __future__ import annotations


class HeldByCall:
    """Something in the kernel that belongs to a waiting call, as a place in a queue."""

    __slots__ = ()

    def abandon(self) -> None:
        """The call ends before it has got what it waits for: give it back."""
        raise NotImplementedError


class CallState:
    """The progress of one call."""

    __slots__ = ("deadline", "done", "progress", "started")

    def __init__(self) -> None:
        self.done = 0
        """Bytes already moved. A call that is interrupted returns this, if it is not 0."""
        self.deadline: int | None = None
        """When the call gives up: the deadline of the `WouldBlock` that it raised, set by whoever
        runs the call. None at the first try."""
        self.started: int | None = None
        """The time of the first try, for a call that waits for several times at once."""
        self.progress: object | None = None
        """What the call has made so far, if it is more than a number."""

    def clear(self) -> None:
        """The call has ended."""
        self.done = 0
        self.deadline = self.started = None
        progress = self.progress
        if progress is not None:
            self.progress = None
            if isinstance(progress, HeldByCall):
                progress.abandon()
