"""The seam between guests and whoever runs them.

Owns `Driver`, what a guest asks of its driver, and `Blocked`, what a driver is told when a call
has to wait. Rules: the kernel, the handlers of calls, `Guest` and `Dispatcher` never wait, lock
or start threads; a driver does all of that, and nothing else. A driver holds the sandbox's lock,
or is the only thread, whenever it calls a guest or a dispatcher.

How a driver runs a guest:

1. It sets `Guest.driver`, makes a `Dispatcher`, calls `Guest.begin_account` and runs the
   instance. A further thread of a program waits for its turn first; then the driver calls
   `Guest.see_changes` and `Dispatcher.begin`.
2. For each call of the guest it calls `Dispatcher.dispatch` (Linux) or `Dispatcher.invoke`
   (WASI). An int is the result: the guest goes on with it.
3. `Blocked` means that the call cannot finish yet. The driver waits as `Blocked` says, calls
   `Dispatcher.retry`, and so on until that returns an int. When the guest may run again, the
   driver calls `Dispatcher.go_on` with that int, whose answer is as that of `dispatch`.
4. `ProcessEnded` ends the guest: the driver stops running it and calls `Guest.leave_memory`,
   `Guest.close` and `Guest.forget`. `Execute` replaces its program: the driver calls
   `Guest.close` and `Dispatcher.load`. Both are raised, through the engine, because the guest's
   stack goes with them.
5. A fork of the engine is `Guest.fork_allowed` and `Guest.fork_child`. New guests (forks,
   programs that a vfork child executes, threads) are handed to `Driver.start` and
   `Driver.start_thread`.
6. While a guest computes, `Dispatcher.tick` is called every few milliseconds.
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
    """What a guest asks of whoever runs it. Nothing here waits, but for `yield_turn`."""

    def cpu_time_ns(self) -> int:
        """The CPU time that the thread of this guest has used, from any beginning on."""

    def start(self, guest: Guest) -> None:
        """Run another guest, beside this one."""

    def start_thread(self, guest: Guest) -> None:
        """Run another thread of this guest's program. Only one of them may run at a time.

        Raises `RuntimeError` if there is no room for it.
        """

    def yield_turn(self) -> None:
        """Let the other threads of this guest's program run first, if they want to."""


@final
class Blocked:
    """A call that cannot finish yet, and how long to wait before `Dispatcher.retry`: until one
    of `queues` is woken or `deadline` (monotonic, in nanoseconds) has passed; or, if it
    `gives_way`, only until others have had the sandbox's lock."""

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
        """The call: it is the dispatcher's, and none of the driver's business."""
        self.thread = thread
        self.nr = nr
        self.handler = handler
        self.context = context
        self.arguments = arguments

    def until(self, queues: tuple[WaitQueue, ...], deadline: int | None = None) -> Blocked:
        """Wait for one of these."""
        self.queues, self.deadline, self.gives_way = queues, deadline, False
        return self

    def giving_way(self) -> Blocked:
        """Wait only for others to have the lock."""
        self.queues, self.deadline, self.gives_way = (), None, True
        return self
