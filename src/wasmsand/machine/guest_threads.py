"""Threads of a process, as the machine runs them.

Owns `ThreadRunner`, the part of a guest that shares its program with others: making a thread,
taking and passing the turn, ending. Rules: all of it happens under the sandbox's lock, which
is free while a thread waits for its turn; a guest that never had threads has no turn, and
pays nothing; a thread that goes on sees the program as the others left it: its memory as large
as it is, its thread-local variables its own, the signal flag its own.
"""

from __future__ import annotations

from _thread import LockType

from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.linux.context import CallContext
from wasmsand.engine.protocol import Instance, ModuleRejected
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process import futex
from wasmsand.kernel.process.life import require_room_for_child
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import Thread, end_thread, first_thread, new_thread
from wasmsand.machine.charging import Charge
from wasmsand.machine.loading import ModuleLoader
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.turns import Turn


class ThreadRunner(CallContext):
    """A guest that may be one of several threads of its process."""

    _lock: SandboxLock
    _loader: ModuleLoader
    _instance: Instance
    _charge: Charge
    _embryo_parent: Process | None
    _told_by_call: bool

    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._has_turn = False
        self._place: LockType | None = None
        self.thread_locals: list[bytes] | None = None

    # What a guest does itself.

    def start(self) -> None:
        """Run on a thread of the engine's pool."""
        raise NotImplementedError

    def _sibling(self, thread: Process, instance: Instance, turn: Turn) -> ThreadRunner:
        """The guest of another thread of this process."""
        raise NotImplementedError

    def _account(self) -> None:
        """Charge CPU time until now."""
        raise NotImplementedError

    def _is_over(self) -> bool:
        """Whether no living process is left for this thread to run."""
        raise NotImplementedError

    def _stop_if_over(self) -> None:
        """Leave the guest in that case."""
        raise NotImplementedError

    def _before_return(self) -> bool:
        """Stop, die, or set the flag before the guest goes on; whether it was set."""
        raise NotImplementedError

    def _set_flag(self, value: int) -> None:
        """Tell the guest whether a signal waits to be handled."""
        raise NotImplementedError

    def _look(self) -> None:
        """Enter in the ledger what the program has grown by."""
        raise NotImplementedError

    def _go_on(self) -> None:
        """Let the program grow while it computes."""
        raise NotImplementedError

    def _discard(self) -> None:
        """Free this thread of the program, which never began."""
        raise NotImplementedError

    # CallContext.

    def start_thread(self, stack: int) -> Process:
        """clone of a thread, which begins with this stack pointer."""
        if self._embryo_parent is not None:
            raise KernelError(Errno.EAGAIN, "a thread inside a vfork child")
        require_room_for_child(self.kernel, self.process)
        turn = self._turn or Turn(self._lock, self.kernel.interrupt, self, self._instance)
        self._charge.require_thread(turn.kept_bytes)
        threads = self._loader.engine.abilities.program_threads
        try:
            instance = threads.new_thread(self._instance, stack, stack)
        except ModuleRejected as error:
            raise KernelError(Errno.ENOSYS, str(error)) from error
        except MemoryError as error:
            raise KernelError(Errno.EAGAIN, str(error)) from error
        if not isinstance(self.process, Thread):
            self.process = self.kernel.current = first_thread(self.kernel, self.process)
            self._turn, self._has_turn = turn, True
        thread = new_thread(self.kernel, self.process)
        guest = self._sibling(thread, instance, turn)
        try:
            guest.start()
        except RuntimeError as error:  # the host has no threads left
            end_thread(self.kernel, thread, 0)
            guest._discard()
            raise KernelError(Errno.EAGAIN, str(error)) from error
        guest._place = turn.ask()
        return thread

    def end_thread(self, status: int) -> int:
        """exit of one thread; with one thread, of the process."""
        thread = self.process
        if self._turn is None or self._embryo_parent is not None:
            return self.end(status)
        self._account()
        if thread.clear_tid:
            try:
                self.memory.write_u32(thread.clear_tid, 0)
                futex.wake(thread, thread.clear_tid, 1, -1)
            except KernelError:
                pass  # as Linux: nobody is there to be told
        end_thread(self.kernel, thread, status)
        raise ProcessEnded

    def yield_turn(self) -> None:
        """Let other threads run first."""
        if self._turn is not None and self._turn.wanted and self._embryo_parent is None:
            told = self._told_by_call
            self._charge.look_again()  # nobody would while it waits for its next turn
            self._pass_turn()
            self._take_turn()
            self._stop_if_over()
            self._told_by_call = self._before_return() if told else False

    # The turn.

    def _begin_thread(self) -> None:
        """Before the first step of a new thread."""
        assert self._turn is not None
        with self._lock:
            self._turn.take(self, self._place)
            self._has_turn = True
            self._stop_if_over()
            self._see_changes()

    def _pass_turn(self) -> None:
        if self._turn is not None and self._has_turn:
            self._has_turn = False
            self._turn.give()

    def _take_turn(self) -> None:
        """Wait until this thread may run, unless it is to end."""
        if self._turn is not None and not self._has_turn and not self._is_over():
            self._turn.take(self)
            self._has_turn = True
            self._see_changes()

    def _see_changes(self) -> None:
        self._loader.engine.abilities.program_threads.catch_up(self._instance)
        self._charge.catch_up()
        self._go_on()
        # The flag is the program's, the signals are the thread's: it is set again on return.
        self._told_by_call = False
        self._set_flag(0)

    def _leave_threads(self) -> None:
        """At the end of this thread, or when it executes another program."""
        if self._turn is not None:
            with self._lock:
                self._pass_turn()
                self._turn = None
                self.thread_locals = None
