"""A process on a thread: the meeting of kernel, ABI and engine.

Owns `Guest`, which serves the calls of one process, of either ABI, and runs its program on
a thread; a process with several threads has one for each of them, and they take turns
(see `guest_threads`). Rules: the sandbox's lock is held for one system call and never while the
guest computes or waits; an exception that is none of ours ends the process and is
logged, it never reaches the guest; the thread of a dead process stops at its next
call or tick.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from wasmsand.abi.context import ProcessContext, ProcessEnded
from wasmsand.abi.linux.calls_signal import restore_mask_after_waiting
from wasmsand.abi.linux.context import RESTART
from wasmsand.abi.linux.table import HANDLERS, RESTARTABLE
from wasmsand.abi.memory import GuestMemory
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.errno import error_number
from wasmsand.engine.protocol import (
    Arguments,
    GuestTrap,
    GuestUnwind,
    Instance,
    ModuleRejected,
    TrapKind,
)
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.opening import abandon_fifo_open
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process import futex
from wasmsand.kernel.process.delivery import (
    deliverable_handler,
    give_up_handlers,
    interrupts,
    restarts,
)
from wasmsand.kernel.process.life import fork, require_room_for_child
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.process import Process, ProcessState
from wasmsand.kernel.process.program import Program, become
from wasmsand.kernel.process.room import with_room
from wasmsand.kernel.process.signals import SIG_DFL, SIG_IGN, Signal, SignalInfo
from wasmsand.kernel.process.thread import only_thread
from wasmsand.kernel.process.timers import enforce_cpu_limit
from wasmsand.kernel.wait import WouldBlock, Yield
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.charging import Charge, make_program
from wasmsand.machine.guest_threads import ThreadRunner
from wasmsand.machine.loading import ModuleLoader, ProgramRejected
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.parking import Parker
from wasmsand.machine.turns import Turn

log = logging.getLogger("wasmsand.machine")

_TRAP_SIGNALS: Final = {
    TrapKind.ARITHMETIC: Signal.SIGFPE,
    TrapKind.UNREACHABLE: Signal.SIGILL,
    TrapKind.UNCAUGHT_EXCEPTION: Signal.SIGABRT,
}
_FAULT_CODE: Final = 1
"""si_code: SEGV_MAPERR, FPE_INTDIV, ILL_ILLOPC."""
_EMBRYO_ENDS: Final = frozenset({93, 94, 221, 281})
"""exit, exit_group, execve, execveat."""
_KILLS: Final = frozenset({129, 130, 131})
_ENOSYS: Final = -int(Errno.ENOSYS)
_SHARE_TRIES: Final = 4
_SHARE_WAIT_NS: Final = 2_000_000
_NO_NUMBER: Final = -1
"""Of a call of WASI, whose programs have no handlers that could interrupt it."""


class _Execute(GuestUnwind):
    """execve succeeded: go on with another program."""

    def __init__(self, instance: Instance, memory: MemoryAccount) -> None:
        super().__init__()
        self.instance = instance
        self.memory = memory


def _signal_flag(instance: Instance) -> int | None:
    """Where to tell a program that a signal waits for its handler. A program whose exports for
    that are missing or wrong cannot be told: its signals have their default actions."""
    address = instance.exported_address("__signal_flag")
    if address is None or address + 4 > instance.memory_size():
        return None
    return address if instance.exports_procedure("__signal_run") else None


class Guest(ThreadRunner):
    """One process and the program it runs; its `HostCalls`."""

    def __init__(
        self,
        kernel: Kernel,
        lock: SandboxLock,
        loader: ModuleLoader,
        process: Process,
        instance: Instance,
        memory: MemoryAccount,
        turn: Turn | None = None,
    ) -> None:
        """`memory` is the account of the program that `instance` is, or, with a `turn`, that it
        is a further thread of."""
        super().__init__()
        self._turn = turn
        self.kernel = kernel
        self.process = process
        self._lock = lock
        self._loader = loader
        self._parker = Parker(lock, kernel.clock)
        self._embryo_parent: Process | None = None
        self._copy: MemoryAccount | None = None
        """Of the child that is about to be made."""
        self._cpu_base = self._cpu_accounted = 0
        self._load(instance, memory)

    def _load(self, instance: Instance, memory: MemoryAccount) -> None:
        turn = self._turn
        self._instance = instance
        self._charge = Charge(
            self.kernel,
            self._loader.engine,
            instance,
            memory,
            thread_locals=None if turn is None else turn.kept_bytes,
        )
        self._told_by_call = False
        self._wasi: WasiContext | None = None
        self.memory = GuestMemory.of(instance, self._look)
        self._flag_address = _signal_flag(instance)
        instance.bind(self)
        self._show_memory()
        if turn is None:  # else it waits for its turn
            self._charge.go_on(self.process.rlimits.address_space)

    # Its memory.

    def _wait_for_share(self) -> None:
        """A program takes most of its memory when it begins. If those that compute hold all
        there is to share, wait a moment until they have looked at what they need."""
        with self._lock:
            for _ in range(_SHARE_TRIES):
                if not self._charge.is_poor() or self.process.dead:
                    return
                self.kernel.interrupt()
                until = self.kernel.clock.monotonic() + _SHARE_WAIT_NS
                self._parker.park((self.process.signal_queue,), until)
                self._go_on()

    def _look(self) -> None:
        """Enter what the program has grown by."""
        if not self._charge.enter_growth():
            self._out_of_memory()

    def _rest(self) -> None:
        """The program is about to wait."""
        if not self._charge.wait():
            self._out_of_memory()
        if self._charge.account.total != self.process.memory_bytes:
            self._show_memory()

    def _go_on(self) -> None:
        """The program is about to compute."""
        process = self.process
        if not process.dead or not self._is_over():
            self._charge.go_on(process.rlimits.address_space)

    def _show_memory(self) -> None:
        parent = self._embryo_parent
        process = self.process if parent is None or parent.dead else parent
        if not process.dead:
            self._charge.show(process)

    def _drop(self) -> None:
        """Free the program, and take it out of the ledger."""
        if not self._charge.left:
            with self._lock:
                self._leave_memory()
        self._instance.close()
        self._charge.end()

    def _leave_memory(self) -> None:
        """The program will not run again."""
        self.fork_failed()
        self._charge.leave()

    def _discard(self) -> None:
        self._leave_memory()
        self._instance.close()
        self._charge.end()

    # The thread.

    def start(self) -> None:
        """Run the process on a thread of the engine's pool."""
        self._loader.engine.start_thread(self._run)

    def run_here(self) -> None:
        """Run the process on this thread, which is one of the pool."""
        self._run()

    def _sibling(self, thread: Process, instance: Instance, turn: Turn) -> Guest:
        memory = self._charge.account
        return Guest(self.kernel, self._lock, self._loader, thread, instance, memory, turn)

    def _run(self) -> None:
        self._cpu_base = self._cpu_accounted = time.thread_time_ns()
        try:
            while True:
                try:
                    if self._turn is not None:
                        self._begin_thread()
                    elif self._charge.is_poor():
                        self._wait_for_share()
                    self._run_program()
                except _Execute as change:
                    self._leave_threads()
                    self._drop()
                    with self._lock:
                        self._load(change.instance, change.memory)
                    continue
                except GuestUnwind:  # it has ended, or the host is exiting
                    pass
                except Exception:
                    log_bug("host bug in a system call of %r; the process is ended", self.process)
                    self._finish(Signal.SIGKILL)
                break
        finally:
            self._wasi = None  # no circles of references
            self._leave_threads()
            self._drop()

    def _run_program(self) -> None:
        try:
            self._instance.run()
        except GuestTrap as trap:
            signo = _TRAP_SIGNALS.get(trap.kind, Signal.SIGSEGV)
            if self._tell_of_fault(signo):
                # There is nothing left to return to: if the handler does not end the process,
                # or is itself at fault, the signal does.
                with suppress(GuestTrap):
                    self._instance.call_after_trap("__signal_run")
            self._finish(signo)
        else:
            self._returned()

    def _tell_of_fault(self, signo: int) -> bool:
        """Send the process the signal of its fault; whether it has a handler that can run."""
        with self._lock:
            signals = self.process.signals
            blocked = bool(signals.mask >> (signo - 1) & 1)
            if self._flag_address is None or self._embryo_parent is not None or blocked:
                return False
            if signals.action(signo).handler in (SIG_DFL, SIG_IGN):
                return False
            signals.add(SignalInfo(signo, _FAULT_CODE))
            self._set_flag(1)
            return True

    def _returned(self) -> None:
        """The program came back without a call of exit: a thread's end is only its own."""
        if self._turn is None:
            self._finish(0)
        else:
            with self._lock:
                self.end_thread(0)

    def _finish(self, status: int) -> None:
        with self._lock:
            self._account()
            self._leave_memory()
            if self._embryo_parent is not None:  # a vfork child took its parent down with it
                self.kernel.exit(self.process, status)
                self.process = self._embryo_parent
            self.kernel.exit(self.process, status)

    def _account(self) -> None:
        now = time.thread_time_ns()
        self.process.usage.user_ns += now - self._cpu_accounted
        self._cpu_accounted = now

    def cpu_time_ns(self) -> int:
        return self.process.usage.user_ns + time.thread_time_ns() - self._cpu_accounted

    # HostCalls.

    def syscall(self, nr: int, arguments: Arguments) -> int:
        """One system call of the guest."""
        handler = HANDLERS.get(nr)
        if handler is None:
            log.debug("pid %d: no system call %d", self.process.pid, nr)
            return _ENOSYS
        self._lock.acquire()  # half the price of a `with`, at every call
        try:
            process = self.process
            if process.dead:
                return self._call_of_the_dead(nr)
            self.kernel.current = process
            try:
                result = handler(self, arguments)
            except KernelError as error:
                result = -error.errno
                process.call_deadline = None  # it may have failed after it set these
                if process.signals.saved_mask is not None:
                    restore_mask_after_waiting(self)
            except WouldBlock as block:
                try:
                    result = self._wait(block, nr, handler, self, (arguments,))
                except KernelError as error:
                    result = -error.errno
            if process.dead and self._embryo_parent is not None and nr in _KILLS:
                return self._end_embryo()  # an embryo that killed itself
            process = self.process
            if process.signals.pending or process.dead or process.state is ProcessState.STOPPED:
                self._told_by_call = self._before_return()
            return result
        finally:
            self._lock.release()

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        """One call of a function of WASI."""
        self._lock.acquire()
        try:
            process = self.process
            if process.dead:
                raise ProcessEnded
            self.kernel.current = process
            context = self._wasi or self._begin_wasi()
            try:
                try:
                    result: int = handler(context, *arguments)
                except WouldBlock as block:
                    result = self._wait(block, _NO_NUMBER, handler, context, arguments)
            except KernelError as error:
                result = error_number(error)
                process.call_deadline = process.call_started = None
            if process.signals.pending or process.dead or process.state is ProcessState.STOPPED:
                self._before_return()
            return result
        finally:
            self._lock.release()

    def _begin_wasi(self) -> WasiContext:
        self._wasi = WasiContext(self)
        return self._wasi

    def _call_of_the_dead(self, nr: int) -> int:
        """A killed process stops. A killed embryo only fails until its parent, whose thread
        this is, gets out of it by exec or exit."""
        self._stop_if_over()
        if nr in _EMBRYO_ENDS:
            return self._end_embryo()
        return -int(Errno.EINTR)

    def _stop_if_over(self) -> None:
        """Leave the guest if no living process is left for this thread to run."""
        if self._is_over():
            raise ProcessEnded

    def _is_over(self) -> bool:
        parent = self._embryo_parent
        return self.process.dead and (parent is None or parent.dead)

    def _wait(
        self,
        block: WouldBlock,
        nr: int,
        handler: Callable[..., int],
        context: ProcessContext,
        arguments: tuple[Any, ...],
    ) -> int:
        """Park and retry until the call finishes or fails, or a signal ends it."""
        process = self.process
        try:
            self._rest()
            if self._turn is not None:
                self._pass_turn()
            while True:
                if process.stopped:
                    self._parker.park((process.signal_queue,), None)
                elif block.interruptible and interrupts(process):
                    return self._interrupted(nr)
                elif type(block) is Yield:
                    self._lock.give_way()
                else:
                    process.state = ProcessState.SLEEPING
                    self._parker.park((*block.queues, process.signal_queue), block.deadline)
                if process.dead:
                    return self._call_of_the_dead(0)
                if process.stopped:
                    continue
                self.kernel.current = process
                try:
                    return handler(context, *arguments)
                except WouldBlock as again:
                    block = again
        finally:
            process.call_done = 0
            process.call_deadline = process.call_started = process.call_progress = None
            if process.futex_wait is not None:
                futex.abandon(process)
            if process.dead:
                self._loader.abandon(process)
            if process.state is ProcessState.SLEEPING:
                process.state = ProcessState.RUNNING
            if self._turn is not None:
                self._take_turn()
            else:
                self._go_on()

    def _interrupted(self, nr: int) -> int:
        process = self.process
        abandon_fifo_open(self.kernel, process)
        if process.call_done:
            return process.call_done
        if nr in RESTARTABLE and restarts(process):
            return RESTART
        return -int(Errno.EINTR)

    def _before_return(self) -> bool:
        """What must happen before the guest goes on: stop, die, or be told of a signal.

        Returns whether it was told of one.
        """
        process = self.process
        if process.stopped and not process.dead:
            self._rest()
            while process.stopped and not process.dead:
                self._parker.park((process.signal_queue,), None)
            self._go_on()
        if process.dead:
            self._stop_if_over()
            return False
        if process.signals.saved_mask is not None:
            restore_mask_after_waiting(self)
        if not deliverable_handler(process):
            return False
        if self._flag_address is None:
            give_up_handlers(self.kernel, process)
            if process.dead:
                self._stop_if_over()
            return False
        self._set_flag(1)
        return True

    def _set_flag(self, value: int) -> None:
        if self._flag_address is not None:
            self.memory.write_u32(self._flag_address, value)

    def lower_signal_flag(self) -> None:
        self._told_by_call = False
        self._set_flag(0)

    def tick(self) -> None:
        """While the guest computes: account for it, stop it, bring it its signals."""
        with self._lock:
            process = self.process
            if process.dead:
                self._stop_if_over()
                return
            self._account()
            if not self._charge.look():
                self._out_of_memory()
            self._show_memory()
            self._go_on()
            enforce_cpu_limit(self.kernel, process)
            run_handlers = False
            if process.signals.pending or process.dead or process.stopped:
                # A guest that a call has told of the signal is just back from that call and
                # about to run the handler itself, where the handler may jump out of it.
                run_handlers = self._before_return() and not self._told_by_call
            if self._turn is not None and self._turn.wanted and not run_handlers:
                self.yield_turn()
        if run_handlers and self._flag_address is not None:
            self._instance.call("__signal_run")

    def _out_of_memory(self) -> None:
        self.kernel.free_memory()
        self._stop_if_over()

    def fork_allowed(self) -> int:
        """Whether there is room for another process and its memory."""
        with self._lock:
            if self.process.dead:
                return self._call_of_the_dead(0)
            try:
                require_room_for_child(self.kernel, self.process)
                self._look()
                self.fork_failed()  # an earlier one, which the guest never went through with
                self._copy = with_room(self.kernel, self.process, self._charge.account_of_copy)
            except KernelError as error:
                return -error.errno
            return 0

    def fork_failed(self) -> None:
        """There is no copy of this program, nor will there be."""
        if self._copy is not None:
            self._copy.user_left()
            self._copy = None

    def fork_child(self, child: Instance) -> int:
        """Adopt the copy that the engine made of this program."""
        with self._lock:
            if self.process.dead:
                child.close()
                return self._call_of_the_dead(0)
            try:
                process = fork(self.kernel, self.process)
            except KernelError as error:
                child.close()
                self.fork_failed()
                return -error.errno
            process.memory, self._copy = self._copy, None
            assert process.memory is not None  # since it was allowed
            guest = Guest(self.kernel, self._lock, self._loader, process, child, process.memory)
            guest.lower_signal_flag()  # what was pending is the parent's
        guest.start()
        return process.pid

    # CallContext: what calls need beyond the kernel.

    def execute(self, program: Program) -> int:
        """execve past all checks but those of the module itself."""
        instance, memory = self._instantiate(program)
        if self._turn is not None and self._embryo_parent is None:
            self.process = only_thread(self.kernel, self.process)
        become(self.kernel, self.process, program)
        self.process.leave_memory(memory)
        if self._embryo_parent is None:
            self._leave_memory()
            raise _Execute(instance, memory)
        child = Guest(self.kernel, self._lock, self._loader, self.process, instance, memory)
        pid = self._end_embryo()
        child.start()
        return pid

    def _instantiate(self, program: Program) -> tuple[Instance, MemoryAccount]:
        try:
            module = self._loader.module(self.process, program)
        except ProgramRejected as rejected:
            self._explain(rejected)
            raise
        self._look()
        limit = self.process.rlimits.address_space
        replaced = self._charge.account if self._embryo_parent is None else None
        make = partial(make_program, self.kernel, self._loader, module, limit, replaced)
        try:
            return with_room(self.kernel, self.process, make)
        except ModuleRejected as error:
            refusal = ProgramRejected(program, str(error))
            self._explain(refusal)
            raise refusal from error

    def _explain(self, rejected: ProgramRejected) -> None:
        """Say on standard error what an errno cannot, as a dynamic linker does."""
        stderr = self.process.fds.find(2)
        if stderr is not None:
            try:
                stderr.require_writable()
                stderr.write(f"wasmsand: {rejected.detail}\n".encode())
            except (KernelError, WouldBlock):
                pass

    def end(self, status: int) -> int:
        """exit: for an embryo only the child ends, and its parent goes on."""
        self._account()
        if self._embryo_parent is None:
            self._leave_memory()
        self.kernel.exit(self.process, status)
        if self._embryo_parent is not None:
            return self._end_embryo()
        raise ProcessEnded

    def store(self) -> int:
        """checkpoint: the memory is the program's from its next start on."""
        reached = self.kernel.checkpoint_reached
        if reached is None:
            raise KernelError(Errno.ENOSYS)
        reached(self.process, self._instance)
        return self.end(0)

    def begin_embryo(self) -> None:
        """vfork: act for a new child until exec or exit."""
        if self._embryo_parent is not None:
            raise KernelError(Errno.EAGAIN, "vfork inside a vfork child")
        self._account()
        child = fork(self.kernel, self.process)
        child.memory = self._charge.account
        child.memory.owner_came()
        self._embryo_parent, self.process = self.process, child

    def _end_embryo(self) -> int:
        assert self._embryo_parent is not None
        pid = self.process.pid
        self.process, self._embryo_parent = self._embryo_parent, None
        return pid
