"""A guest: one thread of a process, and the program that it runs.

Owns `Guest`, what system calls of either ABI act on: the process and its memory, and what needs
more than the kernel: exec, exit, fork, vfork, threads, the signal flag. Rules: every method is
called under the sandbox's lock and returns at once; whatever has to run, or CPU time, is asked of
the `Driver`. What the guest takes of memory is in the ledger: it is looked at when the guest
ticks, waits or executes a program, and its limit is renewed whenever it goes on.

An embryo is a child of vfork: it has a process, but no program yet. Until it executes one or
ends, the calls of its parent's program act on it, and `embryo_parent` is its parent's thread.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import GuestUnwind, Instance, ModuleRejected
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process import futex
from wasmsand.kernel.process.life import fork, require_room_for_child
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.program import Program, become
from wasmsand.kernel.process.room import with_room
from wasmsand.kernel.process.signals import SIG_DFL, SIG_IGN, SignalInfo
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.process.thread_life import end_thread, new_thread, only_thread
from wasmsand.machine.charging import Charge
from wasmsand.machine.driver import Driver
from wasmsand.machine.module_source import ModuleSource, ProgramRejected
from wasmsand.machine.program_start import explain, start_program
from wasmsand.machine.thread_locals import ThreadLocals

_FAULT_CODE: Final = 1
"""si_code: SEGV_MAPERR, FPE_INTDIV, ILL_ILLOPC."""


class Execute(GuestUnwind):
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


class Guest(CallContext):
    """One thread of a process and its program."""

    driver: Driver
    """Set by the driver before it runs the guest."""

    def __init__(
        self,
        kernel: Kernel,
        modules: ModuleSource,
        thread: Thread,
        instance: Instance,
        memory: MemoryAccount,
        thread_locals: ThreadLocals | None = None,
    ) -> None:
        """`memory` is the account of the program that `instance` is, or, with `thread_locals`,
        that it is a further thread of."""
        self.kernel = kernel
        self.thread = thread
        self.process = thread.process
        self.modules = modules
        self.embryo_parent: Thread | None = None
        self._copy: MemoryAccount | None = None
        """Of the child that is about to be made."""
        self._cpu_accounted = 0
        self.load(instance, memory, thread_locals)

    def load(
        self, instance: Instance, memory: MemoryAccount, thread_locals: ThreadLocals | None = None
    ) -> None:
        """Run this program from now on."""
        self.instance = instance
        self.thread_locals = thread_locals
        """Of a program that has, or had, several threads."""
        self.kept_locals: list[bytes] | None = None
        """The thread's own variables while another thread runs."""
        kept = None if thread_locals is None else thread_locals.size
        self.charge = Charge(self.kernel, self.modules.engine, instance, memory, thread_locals=kept)
        self.told_by_call = False
        """Whether the flag was raised by a call, after which the guest runs its handlers."""
        self.memory = GuestMemory.of(instance, self.look)
        self.flag_address = _signal_flag(instance)
        self.show_memory()
        if thread_locals is None:  # a further thread has to wait for its turn
            self.charge.go_on(self.process.rlimits.address_space)

    # Memory.

    def look(self) -> None:
        """Enter what the program has grown by."""
        if not self.charge.enter_growth():
            self.out_of_memory()

    def rest(self) -> None:
        """The program is about to wait."""
        if not self.charge.wait():
            self.out_of_memory()
        if self.charge.account.total != self.process.memory_bytes:
            self.show_memory()

    def go_on(self) -> None:
        """The program is about to compute."""
        if not self.thread.dead or not self.is_over():
            self.charge.go_on(self.process.rlimits.address_space)

    def see_changes(self) -> None:
        """Other threads of the program have run: see the memory as they left it."""
        assert self.thread_locals is not None
        self.thread_locals.switch_to(self)
        self.modules.engine.abilities.program_threads.catch_up(self.instance)
        self.charge.catch_up()
        self.go_on()
        # The flag is the program's, the signals are the thread's: it is set again on return.
        self.lower_signal_flag()

    def show_memory(self) -> None:
        """Let ps tell what the program takes."""
        parent = self.embryo_parent
        process = self.process if parent is None or parent.dead else parent.process
        if not process.dead:
            self.charge.show(process)

    def out_of_memory(self) -> None:
        """The limit of memory does not hold: end processes until it does."""
        self.kernel.free_memory()
        self.stop_if_over()

    def leave_memory(self) -> None:
        """The program will not run again."""
        self.fork_failed()
        self.charge.leave()

    def close(self) -> None:
        """Free the program, which has left its memory. Needs no lock."""
        self.instance.close()
        self.charge.end()

    def forget(self) -> None:
        """The guest has ended: leave no circles of references."""
        del self.driver, self.memory

    # Life and time.

    def is_over(self) -> bool:
        """Whether no living process is left for this guest to act for."""
        parent = self.embryo_parent
        return self.thread.dead and (parent is None or parent.dead)

    def stop_if_over(self) -> None:
        """Leave the program in that case."""
        if self.is_over():
            raise ProcessEnded

    def begin_account(self) -> None:
        """CPU time counts from now on."""
        self._cpu_accounted = self.driver.cpu_time_ns()

    def account(self) -> None:
        """Charge the process for the CPU time until now."""
        now = self.driver.cpu_time_ns()
        self.process.usage.user_ns += now - self._cpu_accounted
        self._cpu_accounted = now

    def cpu_time_ns(self) -> int:
        return self.process.usage.user_ns + self.driver.cpu_time_ns() - self._cpu_accounted

    def end(self, status: int) -> int:
        """exit: for an embryo only the child ends, and its parent goes on."""
        self.account()
        if self.embryo_parent is None:
            self.leave_memory()
        self.kernel.exit(self.process, status)
        if self.embryo_parent is not None:
            return self.end_embryo()
        raise ProcessEnded

    def returned(self) -> None:
        """The program came back without a call of exit: a thread's end is only its own."""
        if self.thread_locals is None:
            self.finish(0)
        else:
            self.end_thread(0)

    def finish(self, status: int) -> None:
        """The program has ended by itself: so does the process."""
        self.account()
        self.leave_memory()
        if self.embryo_parent is not None:  # a vfork child took its parent down with it
            self.kernel.exit(self.process, status)
            self.end_embryo()
        self.kernel.exit(self.process, status)

    # Signals.

    def set_signal_flag(self) -> None:
        """Tell the program that a signal waits for its handler."""
        assert self.flag_address is not None
        self.memory.write_u32(self.flag_address, 1)

    def lower_signal_flag(self) -> None:
        self.told_by_call = False
        if self.flag_address is not None:
            self.memory.write_u32(self.flag_address, 0)

    def tell_of_fault(self, signo: int) -> bool:
        """Send the process the signal of its fault; whether it has a handler that can run."""
        signals = self.thread.signals
        blocked = bool(signals.mask >> (signo - 1) & 1)
        if self.flag_address is None or self.embryo_parent is not None or blocked:
            return False
        if signals.action(signo).handler in (SIG_DFL, SIG_IGN):
            return False
        signals.add(SignalInfo(signo, _FAULT_CODE))
        self.set_signal_flag()
        return True

    # Fork.

    def fork_allowed(self) -> int:
        """Whether there is room for another process and its memory: 0 or minus errno."""
        if self.thread.dead:
            return self.fail_dead_embryo()
        try:
            require_room_for_child(self.kernel, self.process)
            self.look()
            self.fork_failed()  # an earlier one, which the guest never went through with
            self._copy = with_room(self.kernel, self.process, self.charge.account_of_copy)
        except KernelError as error:
            return -error.errno
        return 0

    def fork_failed(self) -> None:
        """There is no copy of this program, nor will there be."""
        if self._copy is not None:
            self._copy.user_left()
            self._copy = None

    def fork_child(self, child: Instance) -> int:
        """Adopt the copy that the engine made of this program; its pid, or minus errno."""
        if self.thread.dead:
            child.close()
            return self.fail_dead_embryo()
        try:
            process = fork(self.kernel, self.thread)
        except KernelError as error:
            child.close()
            self.fork_failed()
            return -error.errno
        process.memory, self._copy = self._copy, None
        assert process.memory is not None  # since it was allowed
        guest = Guest(self.kernel, self.modules, process.first_thread, child, process.memory)
        guest.lower_signal_flag()  # what was pending is the parent's
        self.driver.start(guest)
        return process.pid

    # vfork.

    def begin_embryo(self) -> None:
        """vfork: act for a new child until exec or exit."""
        if self.embryo_parent is not None:
            raise KernelError(Errno.EAGAIN, "vfork inside a vfork child")
        self.account()
        child = fork(self.kernel, self.thread)
        child.memory = self.charge.account
        child.memory.owner_came()
        self.embryo_parent = self.thread
        self.process, self.thread = child, child.first_thread

    def end_embryo(self) -> int:
        """Act for the parent again; the child's pid, which is what vfork returns to it."""
        assert self.embryo_parent is not None
        pid = self.process.pid
        self.thread, self.embryo_parent = self.embryo_parent, None
        self.process = self.thread.process
        return pid

    def fail_dead_embryo(self) -> int:
        """The answer to a call of a killed process. One that has no living parent stops; a killed
        embryo only fails, until its parent gets out of it by exec or exit."""
        self.stop_if_over()
        return -int(Errno.EINTR)

    # exec.

    def execute(self, program: Program) -> int:
        """execve past all checks but those of the module itself."""
        instance, memory = self._instantiate(program)
        if self.thread_locals is not None and self.embryo_parent is None:
            only_thread(self.kernel, self.thread)
        become(self.kernel, self.process, program)
        self.process.leave_memory(memory)
        if self.embryo_parent is None:
            self.leave_memory()
            raise Execute(instance, memory)
        child = Guest(self.kernel, self.modules, self.thread, instance, memory)
        pid = self.end_embryo()
        self.driver.start(child)
        return pid

    def _instantiate(self, program: Program) -> tuple[Instance, MemoryAccount]:
        kernel, modules, process = self.kernel, self.modules, self.process
        replaced = self.charge.account if self.embryo_parent is None else None
        try:
            module = modules.module(self.thread, program)
            self.look()
            return start_program(kernel, modules, process, program, module, replaced=replaced)
        except ProgramRejected as rejected:
            explain(process, rejected)
            raise

    def store(self) -> int:
        """checkpoint: the memory is the program's from its next start on."""
        reached = self.kernel.checkpoint_reached
        if reached is None:
            raise KernelError(Errno.ENOSYS)
        reached(self.process, self.instance)
        return self.end(0)

    # Threads.

    def start_thread(self, stack: int) -> Thread:
        """clone of a thread, which begins with this stack pointer."""
        if self.embryo_parent is not None:
            raise KernelError(Errno.EAGAIN, "a thread inside a vfork child")
        require_room_for_child(self.kernel, self.process)
        thread_locals = self.thread_locals or ThreadLocals(self.instance, self)
        self.charge.require_thread(thread_locals.size)
        threads = self.modules.engine.abilities.program_threads
        try:
            instance = threads.new_thread(self.instance, stack, stack)
        except ModuleRejected as error:
            raise KernelError(Errno.ENOSYS, str(error)) from error
        except MemoryError as error:
            raise KernelError(Errno.EAGAIN, str(error)) from error
        thread = new_thread(self.kernel, self.thread)
        self.thread_locals = thread_locals
        account = self.charge.account
        guest = Guest(self.kernel, self.modules, thread, instance, account, thread_locals)
        try:
            self.driver.start_thread(guest)
        except RuntimeError as error:
            end_thread(self.kernel, thread, 0)
            guest.leave_memory()
            guest.close()
            raise KernelError(Errno.EAGAIN, str(error)) from error
        return thread

    def end_thread(self, status: int) -> int:
        """exit of one thread; with one thread, of the process."""
        thread = self.thread
        if self.thread_locals is None or self.embryo_parent is not None:
            return self.end(status)
        self.account()
        if thread.clear_tid:
            try:
                self.memory.write_u32(thread.clear_tid, 0)
                futex.wake(self.process, thread.clear_tid, 1, -1)
            except KernelError:
                pass  # as Linux: nobody is there to be told
        end_thread(self.kernel, thread, status)
        raise ProcessEnded

    def leave_threads(self) -> None:
        """The thread has ended, or executes another program."""
        self.thread_locals = self.kept_locals = None

    def yield_turn(self) -> None:
        """Let other threads run first."""
        if self.thread_locals is not None and self.embryo_parent is None:
            self.driver.yield_turn()
