"""Waiting without blocking.

Owns `WaitQueue`, `WouldBlock` and `Yield`. Rules: the kernel never waits. A call that cannot
finish raises `WouldBlock` with the queues whose waking may let it finish; whoever
drives the kernel (a thread, a browser worker) waits and makes the same call again.
"""

from __future__ import annotations

from collections.abc import Callable


class WaitQueue:
    """Those who want to know that something changed, in the order they came.

    A waker is on a queue once, however often it was added, and is off it when it was removed
    once: a thread that waits for one file twice (poll) adds and removes its waker together.
    Adding and removing take the same time on a queue of thousands.
    """

    __slots__ = ("_wakers",)

    def __init__(self) -> None:
        self._wakers: dict[Callable[[], None], None] = {}

    def add(self, waker: Callable[[], None]) -> None:
        """Have `waker` called at every `wake` until it is removed."""
        self._wakers[waker] = None

    def remove(self, waker: Callable[[], None]) -> None:
        """Forget `waker`, if it is here."""
        self._wakers.pop(waker, None)

    def wake(self) -> None:
        """Call every waker; they must not call back into the kernel."""
        if self._wakers:
            for waker in tuple(self._wakers):
                waker()


class WouldBlock(Exception):
    """The call cannot finish yet: wait for one of `queues`, or until `deadline`
    (nanoseconds of the monotonic clock), then make the same call again. A signal that has a
    handler ends the wait if it is `interruptible`; the death of the process always does."""

    def __init__(
        self,
        queues: tuple[WaitQueue, ...],
        deadline: int | None = None,
        *,
        interruptible: bool = True,
    ) -> None:
        super().__init__("would block")
        self.queues = queues
        self.deadline = deadline
        self.interruptible = interruptible


class Yield(WouldBlock):
    """The call has done as much as one hold of the sandbox's lock allows, and is not finished:
    let others have the lock, then make the same call again. Only death ends it early."""

    def __init__(self) -> None:
        super().__init__((), interruptible=False)
