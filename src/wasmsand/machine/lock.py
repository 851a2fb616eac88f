"""The one lock of a sandbox.

Owns `SandboxLock`, which guards all kernel state of one sandbox. Rules: each hold does a bounded
amount of work; nobody holds the lock while a guest computes or anyone waits. The host goes before
guests: before each call, and between the pieces of a long call, a guest lets waiting host
operations, such as a kill, take the lock first. Python's locks are not fair, so without this rule a
guest that releases the lock and takes it again at once could starve everyone else.

A signal handler of the host (Ctrl-C) can raise between any two steps of the main thread, even while
it takes or releases the lock. So the lock knows its holder: if an interrupted operation left it
locked, the same thread's next operation continues with it.
"""

from __future__ import annotations

import time
from _thread import RLock
from collections.abc import Callable
from types import TracebackType
from typing import Final

_PAUSE_SECONDS: Final = 0.0001
_PATIENCE_SECONDS: Final = 1.0
"""A host thread that has waited this long is assumed lost; guests continue."""


class SandboxLock:
    """A lock that the host takes with `with`, and guests with `acquire` and `release`."""

    __slots__ = (
        "acquire",
        "held_by_host",
        "is_mine",
        "of_guest",
        "postponed",
        "postpones",
        "release",
        "waiting",
    )

    def __init__(self) -> None:
        lock = RLock()
        # These are the lock's own methods: a Python wrapper would slow down every system call.
        self.of_guest = lock
        """The lock for `with` on a guest's thread, where no signal handler runs and nobody is let
        pass for it."""
        self.acquire = lock.acquire
        self.release = lock.release
        self.is_mine: Callable[[], bool] = lock._is_owned  # type: ignore[attr-defined]
        self.held_by_host = False
        """Whether the holder, if any, is an operation of the host. Guests never change it."""
        self.postpones = False
        """Whether wake-ups are postponed. The holder of the lock may set it while it holds it."""
        self.postponed: list[Callable[[], None]] = []
        """Wake-ups that are due when this thread, or another one of the sandbox, is about to wait:
        see `wake_postponed`. Append and pop are atomic."""
        self.waiting: list[None] = []
        """One entry per waiting host thread; append and pop are atomic."""

    def __enter__(self) -> None:
        if self.is_mine():  # locks are not nested: an interrupted operation left it
            return
        try:
            if not self.acquire(False):
                try:
                    self.waiting.append(None)
                    self.acquire()
                finally:
                    if self.waiting:
                        self.waiting.pop()
            self.held_by_host = True
        except BaseException:
            self.release_mine()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release_mine()

    def release_mine(self) -> None:
        """Release the lock if this thread holds it."""
        if self.is_mine():
            self.held_by_host = False
            self.release()

    def take_again(self) -> None:
        """Take the lock even if signal handlers raise; raise the last such exception afterwards."""
        interruption: BaseException | None = None
        while not self.is_mine():
            try:
                self.acquire()
            except BaseException as error:
                interruption = error
        if interruption is not None:
            raise interruption

    def give_way(self) -> None:
        """Release the lock, wait while host threads want it, and take it again."""
        self.release()
        self.wake_postponed()
        self.let_host_pass()
        self.acquire()

    def wake_postponed(self) -> None:
        """Wake the threads whose wake-up was postponed. A thread that is woken earlier only waits
        for what the waking one still holds: the lock, and Python's interpreter."""
        while self.postponed:
            try:
                wake = self.postponed.pop()
            except IndexError:  # another thread was faster
                return
            wake()

    def let_host_pass(self) -> None:
        """Wait while host threads want the lock, which this thread does not hold. A guest that
        makes one long call after another would take the lock again before a host thread wakes."""
        if self.waiting:
            until = time.monotonic() + _PATIENCE_SECONDS
            while self.waiting and time.monotonic() < until:
                time.sleep(_PAUSE_SECONDS)
