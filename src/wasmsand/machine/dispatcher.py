"""System calls from the guest to the kernel and back, without threads.

Owns `Dispatcher`, which serves the calls of one guest in either ABI: it decodes a call, calls its
handler, and answers its driver (see `driver`). Rules: the driver holds the sandbox's lock, and
every method returns at once. A call that cannot finish is answered by `Blocked`; `retry` makes it
again with the same arguments until it finishes or fails, or a signal or death ends it. Before the
guest resumes, the dispatcher stops it, ends it or tells it of a signal if necessary.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from wasmsand.abi.context import ProcessContext, ProcessEnded
from wasmsand.abi.linux.calls_signal import restore_mask_after_waiting
from wasmsand.abi.linux.context import RESTART
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.abi.linux.table import HANDLERS, RESTARTABLE
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.errno import error_number
from wasmsand.engine.protocol import Arguments
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.delivery import (
    deliverable_handler,
    give_up_handlers,
    interrupts,
    look_again,
    restarts,
)
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.kernel.process.timers import enforce_cpu_limit
from wasmsand.kernel.wait import WouldBlock, Yield
from wasmsand.machine.driver import Blocked
from wasmsand.machine.guest import Execute, Guest

log = logging.getLogger("wasmsand.machine")

_EMBRYO_ENDS: Final = frozenset(
    {CallNumber.EXIT, CallNumber.EXIT_GROUP, CallNumber.EXECVE, CallNumber.EXECVEAT}
)
_KILLS: Final = frozenset({CallNumber.KILL, CallNumber.TKILL, CallNumber.TGKILL})
_ENOSYS: Final = -int(Errno.ENOSYS)
_WASI_CALL: Final = -1
"""In place of a call number. WASI programs have no signal handlers that could interrupt a call."""
_NO_CALL: Final = -2
"""The guest resumes, but not from a system call."""
_TICK: Final = -3
"""The guest resumes after a tick."""
_STOPPED: Final = ProcessState.STOPPED


def _result(context: ProcessContext, result: int) -> int:
    """Handler for a finished call whose process was stopped before the call returned."""
    return result


class Dispatcher:
    """The system calls of one guest."""

    __slots__ = ("_blocked", "_kernel", "_wasi", "guest")

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self._kernel = guest.kernel
        self._wasi: WasiContext | None = None
        self._blocked: Blocked | None = None
        """The call that is waiting."""

    def load(self, change: Execute) -> None:
        """Serve the program that execve loaded."""
        self.forget()
        self.guest.load(change.instance, change.memory)

    def forget(self) -> None:
        """The guest has ended: break reference cycles."""
        self._wasi = self._blocked = None

    # Calls.

    def dispatch(self, nr: int, arguments: Arguments) -> int | Blocked:
        """One Linux system call: its result, or `Blocked`."""
        handler = HANDLERS.get(nr)
        guest = self.guest
        thread = guest.thread
        if handler is None:
            log.debug("thread %d: no system call %d", thread.tid, nr)
            return _ENOSYS
        if thread.dead:
            return self._call_of_the_dead(nr)
        self._kernel.current = thread
        try:
            result = handler(guest, arguments)
        except KernelError as error:
            result = self._failed(error)
        except WouldBlock as block:
            return self._block(block, nr, handler, guest, (arguments,))
        thread = guest.thread
        if thread.signals.pending or thread.dead or thread.state is _STOPPED:
            return self._leave(nr, result)
        return result

    def invoke(self, handler: Callable[..., int], arguments: tuple[int, ...]) -> int | Blocked:
        """One WASI call: its result, or `Blocked`."""
        thread = self.guest.thread
        if thread.dead:
            raise ProcessEnded
        self._kernel.current = thread
        try:
            context = self._wasi or self._begin_wasi()
        except WouldBlock as block:  # a preopened directory is in a mount
            given = (handler, *arguments)
            return self._block(block, _WASI_CALL, self._first_call, self.guest, given)
        try:
            result = handler(context, *arguments)
        except KernelError as error:
            result = error_number(error)
        except WouldBlock as block:
            return self._block(block, _WASI_CALL, handler, context, arguments)
        if thread.signals.pending or thread.dead or thread.state is _STOPPED:
            return self._leave(_WASI_CALL, result)
        return result

    def _first_call(
        self, guest: ProcessContext, handler: Callable[..., int], *arguments: int
    ) -> int:
        return handler(self._wasi or self._begin_wasi(), *arguments)

    def _begin_wasi(self) -> WasiContext:
        self._wasi = WasiContext(self.guest)
        return self._wasi

    def _call_of_the_dead(self, nr: int) -> int:
        """A killed process stops. A killed embryo's calls fail until its parent leaves it."""
        failure = self.guest.fail_dead_embryo()
        return self.guest.end_embryo() if nr in _EMBRYO_ENDS else failure

    def _failed(self, error: KernelError) -> int:
        if self.guest.thread.signals.saved_mask is not None:
            restore_mask_after_waiting(self.guest)
        return -error.errno

    # Waiting.

    def _block(
        self,
        block: WouldBlock,
        nr: int,
        handler: Callable[..., int],
        context: ProcessContext,
        arguments: tuple[Any, ...],
    ) -> int | Blocked:
        """A call has to wait. If it need not wait after all, return its result."""
        blocked = Blocked(self.guest.thread, nr, handler, context, arguments)
        self._blocked = blocked
        try:
            self.guest.rest()
            outcome = self._wait(blocked, block)
        except BaseException:
            self._end_wait(blocked)
            raise
        if isinstance(outcome, Blocked):
            return outcome
        self._end_wait(blocked)
        return self.go_on(outcome)

    def _wait(self, blocked: Blocked, block: WouldBlock) -> int | Blocked:
        """How to wait; or the result of the call, if a signal interrupts it."""
        thread = blocked.thread
        if block.deadline is not None:
            thread.call.deadline = block.deadline
        if thread.signals.pending:
            look_again(self._kernel, thread)
        if thread.dead:
            return self.guest.fail_dead_embryo()
        if thread.stopped:
            return blocked.until((thread.signal_queue,))
        if block.interruptible and interrupts(thread):
            return self._interrupted(blocked)
        if type(block) is Yield:
            return blocked.giving_way()
        thread.state = ProcessState.SLEEPING
        return blocked.until((*block.queues, thread.signal_queue), block.deadline)

    def _interrupted(self, blocked: Blocked) -> int:
        thread = blocked.thread
        if thread.call.done:
            return thread.call.done
        if blocked.nr in RESTARTABLE and restarts(thread):
            return RESTART
        return -int(Errno.EINTR)

    def retry(self) -> int | Blocked:
        """Make the waiting call again. An int is its result, to be passed to `go_on`."""
        blocked = self._blocked
        assert blocked is not None
        thread = blocked.thread
        try:
            if thread.dead:
                outcome: int | Blocked = self.guest.fail_dead_embryo()
            elif thread.stopped:
                outcome = blocked.until((thread.signal_queue,))
            else:
                outcome = self._try_again(blocked)
        except BaseException:
            self._end_wait(blocked)
            raise
        if outcome is not blocked:
            self._end_wait(blocked)
        return outcome

    def _try_again(self, blocked: Blocked) -> int | Blocked:
        self._kernel.current = blocked.thread
        try:
            return blocked.handler(blocked.context, *blocked.arguments)
        except KernelError as error:
            return error_number(error) if blocked.nr == _WASI_CALL else self._failed(error)
        except WouldBlock as block:
            return self._wait(blocked, block)

    def _end_wait(self, blocked: Blocked) -> None:
        thread = blocked.thread
        thread.call.clear()
        if thread.dead:
            self.guest.modules.abandon(thread)
        if thread.state is ProcessState.SLEEPING:
            thread.state = ProcessState.RUNNING

    # Resuming.

    def go_on(self, result: int) -> int | Blocked:
        """The waiting call has finished with `result`, and the guest may run: let it compute.
        Answers like `dispatch`."""
        blocked, self._blocked = self._blocked, None
        assert blocked is not None
        guest = self.guest
        guest.go_on()
        thread = guest.thread
        if thread.signals.pending or thread.dead or thread.stopped:
            return self._leave(blocked.nr, result)
        return result

    def begin(self) -> int | Blocked:
        """A thread is about to run for the first time. Answers like `dispatch`; the int means
        nothing."""
        return self._leave(_TICK, 0)

    def tell_again(self) -> int | Blocked:
        """The signal flag that a call had set was cleared for another thread: set it again. Answers
        like `begin`."""
        return self._leave(_NO_CALL, 0)

    def _leave(self, nr: int, result: int) -> int | Blocked:
        """Before the guest resumes: stop it, end it, or tell it of a signal. For a tick, the result
        says whether to run its signal handlers."""
        guest = self.guest
        thread = guest.thread
        told = False
        if not thread.dead and not thread.stopped:
            if not thread.signals.ready() and thread.signals.saved_mask is None and nr != _TICK:
                guest.told_by_call = False  # all pending signals are blocked, the usual case
                return result
            look_again(self._kernel, thread)
        if thread.dead:
            if guest.embryo_parent is not None and nr in _KILLS:
                return guest.end_embryo()  # the embryo killed itself
            guest.stop_if_over()
        elif thread.stopped:
            return self._stop(nr, result)
        else:
            if thread.signals.saved_mask is not None:
                restore_mask_after_waiting(guest)
            told = bool(deliverable_handler(thread)) and self._tell()
        if nr == _TICK:
            # If a call has told the guest of the signal, the guest has just returned from that
            # call and is about to run the handler itself. Only there may a handler longjmp out.
            return int(told and not guest.told_by_call)
        guest.told_by_call = told
        return result

    def _stop(self, nr: int, result: int) -> int | Blocked:
        block = WouldBlock((), interruptible=False)
        return self._block(block, nr, _result, self.guest, (result,))

    def _tell(self) -> bool:
        """Tell the guest to run its signal handlers. False if it cannot."""
        guest = self.guest
        if guest.flag_address is not None:
            guest.set_signal_flag()
            return True
        give_up_handlers(self._kernel, guest.thread)
        if guest.thread.dead:
            guest.stop_if_over()
        return False

    def tick(self) -> int | Blocked:
        """Called periodically while the guest computes: account for its time and memory, stop it
        or tell it of signals. The result says whether the driver must call `__signal_run`."""
        guest = self.guest
        thread = guest.thread
        if thread.dead:
            guest.stop_if_over()
            return 0
        guest.account()
        if not guest.charge.look():
            guest.out_of_memory()
        guest.show_memory()
        guest.go_on()
        enforce_cpu_limit(self._kernel, guest.process)
        if thread.signals.pending or thread.dead or thread.stopped:
            return self._leave(_TICK, 0)
        return 0
