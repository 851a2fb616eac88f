"""The seam between guests and the code that runs them.

Owns `Driver`, what a guest asks of its driver, and `Blocked`, which tells a driver that a call has
to wait. Rules: the kernel, the call handlers, `Guest` and `Dispatcher` never wait, lock or start
threads; only a driver does. A driver holds the sandbox's lock, or is the only thread, whenever it
calls a guest or a dispatcher.

How a driver runs a guest:

1. It sets `Guest.driver`, creates a `Dispatcher`, binds the instance to its `HostCalls`
   (`Instance.bind`), calls `Guest.begin_account`, and runs the instance. A further thread of a
   program first waits for its turn; then the driver calls `Guest.see_changes` and
   `Dispatcher.begin`.
2. For each call of the guest it calls `Dispatcher.dispatch` (Linux) or `Dispatcher.invoke`
   (WASI). An int is the call's result, with which the guest resumes.
3. `Blocked` means that the call cannot finish yet. The driver waits as `Blocked` says and calls
   `Dispatcher.retry`, until that returns an int. When the guest may run again, the driver passes
   the int to `Dispatcher.go_on`, which answers like `dispatch`.
4. The exception `ProcessEnded` ends the guest: the driver stops running it and calls
   `Guest.leave_memory`, `Guest.close` and `Guest.forget`. `Execute` replaces its program: the
   driver calls `Guest.close` and `Dispatcher.load`. Both are raised through the engine, because the
   guest's stack is discarded.
5. For a fork, the engine calls `Guest.fork_allowed` and `Guest.fork_child`. New guests (forks,
   programs that a vfork child executes, threads) are passed to `Driver.start` and
   `Driver.start_thread`.
6. While a guest computes, the driver calls `Dispatcher.tick` every few milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    from wasmsand.abi.context import ProcessContext
    from wasmsand.kernel.process.thread import Thread
    from wasmsand.kernel.wait import WaitQueue
    from wasmsand.machine.guest import Guest


class Driver(Protocol):
    """What a guest asks of its driver. Only `yield_turn` may wait."""

    def cpu_time_ns(self) -> int:
        """The CPU time that this guest's thread has used, counted from an arbitrary point."""

    def start(self, guest: Guest) -> None:
        """Run another guest concurrently."""

    def start_thread(self, guest: Guest) -> None:
        """Run another thread of this guest's program. Only one thread of a program runs at a time.

        Raises `RuntimeError` if no thread is available.
        """

    def yield_turn(self) -> None:
        """Let other threads of this guest's program run first, if any are waiting."""


@final
class Blocked:
    """A call that cannot finish yet, and how long to wait before `Dispatcher.retry`: until one of
    `queues` is woken or `deadline` (monotonic, in nanoseconds) has passed. If `gives_way` is set,
    wait only until others have had the sandbox's lock."""

    __slots__ = (
        "arguments",
        "context",
        "deadline",
        "gives_way",
        "handler",
        "nr",
        "queues",
        "thread",
    )

    queues: tuple[WaitQueue, ...]
    deadline: int | None
    gives_way: bool

    def __init__(
        self,
        thread: Thread,
        nr: int,
        handler: Callable[..., int],
        context: ProcessContext,
        arguments: tuple[Any, ...],
    ) -> None:
        """These fields describe the call. Only the dispatcher uses them."""
        self.thread = thread
        self.nr = nr
        self.handler = handler
        self.context = context
        self.arguments = arguments

    def until(self, queues: tuple[WaitQueue, ...], deadline: int | None = None) -> Blocked:
        """Wait until one of these queues is woken or the deadline has passed."""
        self.queues, self.deadline, self.gives_way = queues, deadline, False
        return self

    def giving_way(self) -> Blocked:
        """Wait only until others have had the lock."""
        self.queues, self.deadline, self.gives_way = (), None, True
        return self
