"""Waiting without blocking.

Owns `WaitQueue`, `WouldBlock`, `OutsideWait` and `Yield`. Rules: the kernel never waits. A call
that cannot finish raises `WouldBlock` with the queues to wait for; the driver (on a thread, or in a
browser worker) waits and makes the same call again.
"""

from __future__ import annotations

from collections.abc import Callable


class WaitQueue:
    """The wakers to call when something changes, in the order they were added.

    A waker is in a queue at most once, however often it was added, and one removal removes it: a
    thread that waits for one file twice (poll) adds and removes its waker together. Adding and
    removing take constant time.
    """

    __slots__ = ("_wakers",)

    def __init__(self) -> None:
        self._wakers: dict[Callable[[], None], Callable[[], None]] = {}
        """Each with what `wake_later` calls in its place."""

    def add(self, waker: Callable[[], None], later: Callable[[], None] | None = None) -> None:
        """Call `waker` at every `wake` until it is removed, and `later` (by default the same) at
        every `wake_later`."""
        self._wakers[waker] = waker if later is None else later

    def remove(self, waker: Callable[[], None]) -> None:
        """Remove `waker`, if present."""
        self._wakers.pop(waker, None)

    def wake(self) -> None:
        """Call every waker; wakers must not call back into the kernel."""
        if self._wakers:
            for waker in tuple(self._wakers):
                waker()

    def wake_later(self) -> None:
        """Like `wake`, but whoever waits may be woken only when the calling thread waits itself,
        or has computed for a moment: more is to come, and one wake-up for all is cheaper."""
        if self._wakers:
            for later in tuple(self._wakers.values()):
                later()


class WouldBlock(Exception):
    """The call cannot finish yet: wait until one of `queues` is woken or until `deadline`
    (monotonic nanoseconds), then make the same call again. A signal with a handler ends the wait if
    it is `interruptible`; the death of the process always does."""

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


class OutsideWait(WouldBlock):
    """The call needs something of the host that is being fetched or done, such as a directory of a
    mounted host file system. Only the death of the process ends the wait. A transfer that has moved
    some bytes goes on after it, as after a `Yield`: the file is not slow in the guest's eyes."""

    def __init__(self, queue: WaitQueue) -> None:
        super().__init__((queue,), interruptible=False)


class Yield(WouldBlock):
    """The call has done as much as one hold of the sandbox's lock allows: let others take the lock,
    then make the same call again. Only the death of the process ends it early."""

    def __init__(self) -> None:
        super().__init__((), interruptible=False)
