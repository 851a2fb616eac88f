"""Guests on threads of this process.

Owns `ThreadDriver`, which runs one guest on one thread of the engine's pool. A process with several
threads has one driver per thread, and these take turns (see `turns`). Rules: the sandbox's lock is
held for one system call, never while the guest computes or waits. An unexpected exception is
logged and ends the process; it never reaches the guest. The thread of a dead process stops at its
next call or tick. A guest without further threads has no `Turn` and pays nothing for it.
"""

from __future__ import annotations

import time
from _thread import LockType
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from wasmsand.engine.placement import place_of_this_thread
from wasmsand.engine.protocol import Arguments, GuestTrap, GuestUnwind, Instance, TrapKind
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import Signal
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.dispatcher import Dispatcher
from wasmsand.machine.driver import Blocked
from wasmsand.machine.guest import Execute, Guest
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.parking import Parker
from wasmsand.machine.turns import Turn

_TRAP_SIGNALS: Final = {
    TrapKind.ARITHMETIC: Signal.SIGFPE,
    TrapKind.UNREACHABLE: Signal.SIGILL,
    TrapKind.UNCAUGHT_EXCEPTION: Signal.SIGABRT,
}
_SHARE_TRIES: Final = 4
_SHARE_WAIT_NS: Final = 500_000


class ThreadDriver:
    """Runs one guest on a thread; implements `HostCalls` for the engine and `Driver` for the
    guest."""

    def __init__(self, lock: SandboxLock, guest: Guest, turn: Turn | None = None) -> None:
        """With `turn`, the guest is a further thread of a program."""
        self.guest = guest
        self._lock = lock
        # Cached, because every call uses them.
        self._acquire = lock.acquire
        self._release = lock.release
        self._waiting = lock.waiting
        self._dispatcher = Dispatcher(guest)
        self._parker = Parker(lock, guest.kernel.clock)
        self._turn = turn
        self._has_turn = False
        self._place: LockType | None = None
        """Its place in the queue for its first turn."""
        guest.driver = self
        guest.instance.bind(self)

    @property
    def realm(self) -> object:
        """What all guests of the sandbox have in common: its lock."""
        return self._lock

    @property
    def process(self) -> Process:
        """The process on which the guest's calls act now."""
        return self.guest.process

    # The thread.

    def run_on_pool(self) -> None:
        """Run the guest on a thread of the engine's pool."""
        self.guest.modules.engine.start_thread(self.run)

    def run(self) -> None:
        """Run the guest to its end on this thread, which belongs to the pool."""
        guest = self.guest
        guest.begin_account()
        self._parker.place = place_of_this_thread()
        try:
            while True:
                try:
                    guest.charge.begin()
                    if self._turn is not None:
                        self._begin_thread(self._turn)
                    elif guest.charge.is_poor():
                        self._wait_for_share()
                    self._run_program()
                except Execute as change:
                    self._leave_threads()
                    self._drop()
                    with self._lock.of_guest:
                        self.load(change)
                    continue
                except GuestUnwind:  # the guest has ended, or the host is exiting
                    pass
                except Exception:
                    log_bug("host bug in a system call of %r; ending the process", guest.process)
                    with self._lock.of_guest:
                        guest.finish(Signal.SIGKILL)
                break
        finally:
            self._leave_threads()
            self._drop()
            self._dispatcher.forget()
            guest.forget()
            self._lock.wake_postponed()

    def load(self, change: Execute) -> None:
        """Continue with another program. Needs the lock."""
        self._dispatcher.load(change)
        change.instance.bind(self)

    def _run_program(self) -> None:
        guest = self.guest
        try:
            guest.instance.run()
        except GuestTrap as trap:
            signo = _TRAP_SIGNALS.get(trap.kind, Signal.SIGSEGV)
            with self._lock.of_guest:
                handled = guest.tell_of_fault(signo)
            if handled:
                # The guest's stack is gone. If the handler neither ends the process nor faults
                # itself, the signal ends it below.
                with suppress(GuestTrap):
                    guest.instance.call_after_trap("__signal_run")
            with self._lock.of_guest:
                guest.finish(signo)
        else:
            with self._lock.of_guest:
                guest.returned()

    def _wait_for_share(self) -> None:
        """A program takes most of its memory at its start. If computing programs hold all free
        memory as their shares, wait a moment until these have been measured."""
        guest = self.guest
        kernel = guest.kernel
        # This waits for the host's processors, so it uses the host's time, not the sandbox's.
        host_time = Clock()
        parker = Parker(self._lock, host_time)
        with self._lock.of_guest:
            for _ in range(_SHARE_TRIES):
                if not guest.charge.is_poor() or guest.thread.dead:
                    return
                kernel.interrupt()
                until = host_time.monotonic() + _SHARE_WAIT_NS
                parker.park((guest.thread.signal_queue,), until)
                guest.go_on()

    def _drop(self) -> None:
        """Free the program and remove its charge from the ledger."""
        guest = self.guest
        if not guest.charge.left:
            with self._lock.of_guest:
                guest.leave_memory()
        guest.close()

    # HostCalls.

    def syscall(self, nr: int, arguments: Arguments) -> int:
        """One system call of the guest."""
        if self._waiting:
            self._lock.let_host_pass()
        self._acquire()  # half the cost of `with`, on every call
        try:
            outcome = self._dispatcher.dispatch(nr, arguments)
            return self._settle(outcome) if type(outcome) is Blocked else outcome
        finally:
            self._release()

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        """One WASI call."""
        if self._waiting:
            self._lock.let_host_pass()
        self._acquire()
        try:
            outcome = self._dispatcher.invoke(handler, arguments)
            return self._settle(outcome) if type(outcome) is Blocked else outcome
        finally:
            self._release()

    def fork_allowed(self) -> int:
        """Whether there is room for another process and its memory."""
        with self._lock.of_guest:
            return self.guest.fork_allowed()

    def fork_failed(self) -> None:
        """The copy of this program was not made, and will not be."""
        with self._lock.of_guest:
            self.guest.fork_failed()

    def fork_child(self, child: Instance) -> int:
        """Create a process for the copy that the engine made."""
        with self._lock.of_guest:
            return self.guest.fork_child(child)

    def tick(self) -> None:
        """Called periodically while the guest computes: account for it, stop it, tell it of
        signals."""
        self._lock.wake_postponed()
        with self._lock.of_guest:
            outcome = self._dispatcher.tick()
            run_handlers = self._settle(outcome)
            if self._turn is not None and not run_handlers:
                self.yield_turn()
        if run_handlers:
            self.guest.instance.call("__signal_run")

    def _settle(self, outcome: int | Blocked) -> int:
        """Wait and retry until the guest may resume; return the result with which it resumes. Needs
        the lock, and releases it while waiting."""
        dispatcher = self._dispatcher
        while isinstance(outcome, Blocked):
            self._pass_turn()
            try:
                while isinstance(outcome, Blocked):
                    if outcome.gives_way:
                        self._lock.give_way()
                    else:
                        self._parker.park(outcome.queues, outcome.deadline)
                    outcome = dispatcher.retry()
            finally:
                self._take_turn()
            outcome = dispatcher.go_on(outcome)
        return outcome

    # Driver.

    def cpu_time_ns(self) -> int:
        """CPU time of this thread."""
        return time.thread_time_ns()

    def start(self, guest: Guest) -> None:
        """Run another guest concurrently."""
        ThreadDriver(self._lock, guest).run_on_pool()

    def start_thread(self, guest: Guest) -> None:
        """Run another thread of the guest's program; it waits for its turn."""
        turn = self._turn
        if turn is None:
            turn = self._turn = Turn(self._lock, guest.kernel.interrupt)
            self._has_turn = True
        thread = ThreadDriver(self._lock, guest, turn)
        thread.run_on_pool()
        thread._place = turn.ask()

    def yield_turn(self) -> None:
        """Let other threads of the program run first."""
        guest = self.guest
        if self._turn is not None and self._turn.wanted and guest.embryo_parent is None:
            told = guest.told_by_call
            guest.charge.look_again()  # it is not measured while it waits for its turn
            self._pass_turn()
            self._take_turn()
            guest.stop_if_over()
            if told:
                self._settle(self._dispatcher.tell_again())

    # The turn.

    def _begin_thread(self, turn: Turn) -> None:
        """Called before the first instruction of a new thread."""
        with self._lock.of_guest:
            turn.take(self._place)
            self._has_turn = True
            self.guest.stop_if_over()
            self.guest.see_changes()
            self._settle(self._dispatcher.begin())

    def _pass_turn(self) -> None:
        if self._turn is not None and self._has_turn:
            self._has_turn = False
            self._turn.give()

    def _take_turn(self) -> None:
        """Wait for this thread's turn, unless the thread is to end."""
        if self._turn is not None and not self._has_turn and not self.guest.is_over():
            self._turn.take()
            self._has_turn = True
            self.guest.see_changes()

    def _leave_threads(self) -> None:
        """Called when this thread ends or executes another program."""
        if self._turn is not None:
            with self._lock.of_guest:
                self._pass_turn()
                self._turn = None
                self.guest.leave_threads()
