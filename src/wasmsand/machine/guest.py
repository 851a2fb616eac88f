"""A guest: one thread of a process, and the program that it runs.

Owns `Guest`, on which the calls of both ABIs act: the process and its memory, and the operations
that need more than the kernel: exec, exit, fork, vfork, threads, the signal flag. Rules: the caller
holds the sandbox's lock, and every method returns at once. The `Driver` runs new guests and
measures CPU time. The guest's memory is charged to the ledger: it is measured when the guest ticks,
waits or executes a program, and its limit is renewed whenever it resumes.

An embryo is a vfork child: a process without a program of its own. Until it calls exec or exit,
the calls of its parent's program act on the embryo, and `embryo_parent` is the parent's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.linux.context import CallContext
from wasmsand.abi.linux.signal_words import SignalWords, signal_words
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
    """execve succeeded: continue with another program."""

    def __init__(self, instance: Instance, memory: MemoryAccount) -> None:
        super().__init__()
        self.instance = instance
        self.memory = memory


def _signal_flag(instance: Instance) -> int | None:
    """The address of the flag that tells a program of a pending signal with a handler. None if the
    program lacks the exports for it: then its signals take their default actions."""
    address = instance.exported_address("__signal_flag")
    if address is None or address + 4 > instance.memory_size():
        return None
    return address if instance.exports_procedure("__signal_run") else None


class Guest(CallContext):
    """One thread of a process and its program."""

    __deletable__ = ("driver",)  # for mypyc

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
        """`memory` is the account of the program. With `thread_locals`, the guest is a further
        thread of that program."""
        self.kernel = kernel
        self.thread = thread
        self.process = thread.process
        self.modules = modules
        self.embryo_parent: Thread | None = None
        self.on_fork: Callable[[Instance, int], None] | None = None
        """Called once, when the program forks, with the copy before it runs, and its pid."""
        self._copy: MemoryAccount | None = None
        """The account of a child that fork is about to create."""
        self._cpu_accounted = 0
        self.load(instance, memory, thread_locals)

    def load(
        self, instance: Instance, memory: MemoryAccount, thread_locals: ThreadLocals | None = None
    ) -> None:
        """Run this program from now on."""
        self.instance = instance
        self.thread_locals = thread_locals
        """Set for a program that has, or had, several threads."""
        self.kept_locals: list[bytes] | None = None
        """The thread's own variables while another thread runs."""
        kept = None if thread_locals is None else thread_locals.size
        self.charge = Charge(self.kernel, self.modules.engine, instance, memory, thread_locals=kept)
        self.told_by_call = False
        """Whether a call set the signal flag, so that the guest runs its handlers when it
        returns."""
        self.memory = GuestMemory.of(instance, self.look)
        self.flag_address = _signal_flag(instance)
        self._signal_words = None if thread_locals is not None else self._share_signals()
        self.show_memory()
        if thread_locals is None:  # a further thread waits for its turn
            self.charge.go_on(self.process.rlimits.address_space)

    # Memory.

    def look(self) -> None:
        """Charge the program's growth."""
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
        """Other threads of the program have run: update what this thread knows of the memory."""
        assert self.thread_locals is not None
        self.thread_locals.switch_to(self)
        self.modules.engine.abilities.program_threads.catch_up(self.instance)
        self.charge.catch_up()
        self.go_on()
        # The flag belongs to the program, signals to the thread: the next return sets it again.
        self.lower_signal_flag()

    def show_memory(self) -> None:
        """Update the memory figures that ps shows."""
        parent = self.embryo_parent
        process = self.process if parent is None or parent.dead else parent.process
        if not process.dead:
            self.charge.show(process)

    def out_of_memory(self) -> None:
        """The memory limit is exceeded: end processes until it holds."""
        self.kernel.free_memory()
        self.stop_if_over()

    def leave_memory(self) -> None:
        """The program will not run again."""
        self.fork_failed()
        self.charge.leave()
        for thread in (self.thread, self.embryo_parent):
            if thread is not None:
                thread.signals.leave(self._signal_words)
        if self._signal_words is not None:
            self._signal_words.release()
            self._signal_words = None

    def close(self) -> None:
        """Free the program, after `leave_memory`. Needs no lock."""
        self.instance.close()
        self.charge.end()

    def forget(self) -> None:
        """The guest has ended: break reference cycles."""
        del self.driver, self.memory

    # Life and time.

    def is_over(self) -> bool:
        """Whether neither this process nor the parent of this embryo is alive."""
        parent = self.embryo_parent
        return self.thread.dead and (parent is None or parent.dead)

    def stop_if_over(self) -> None:
        """Leave the program if `is_over`."""
        if self.is_over():
            raise ProcessEnded

    def begin_account(self) -> None:
        """Start counting CPU time."""
        self._cpu_accounted = self.driver.cpu_time_ns()

    def account(self) -> None:
        """Charge the process for the CPU time used so far."""
        now = self.driver.cpu_time_ns()
        self.process.usage.user_ns += now - self._cpu_accounted
        self._cpu_accounted = now

    def cpu_time_ns(self) -> int:
        return self.process.usage.user_ns + self.driver.cpu_time_ns() - self._cpu_accounted

    def end(self, status: int) -> int:
        """exit: if the guest acts for an embryo, only the embryo ends, and its parent continues."""
        self.account()
        if self.embryo_parent is None:
            self.leave_memory()
        self.kernel.exit(self.process, status)
        if self.embryo_parent is not None:
            return self.end_embryo()
        raise ProcessEnded

    def returned(self) -> None:
        """The program returned without calling exit. This ends a thread, or the process."""
        if self.thread_locals is None:
            self.finish(0)
        else:
            self.end_thread(0)

    def finish(self, status: int) -> None:
        """The program has ended without a call: end the process."""
        self.account()
        self.leave_memory()
        if self.embryo_parent is not None:  # the parent's program ended during vfork
            self.kernel.exit(self.process, status)
            self.end_embryo()
        self.kernel.exit(self.process, status)

    # Signals.

    def _share_signals(self) -> SignalWords | None:
        """Let the program keep its signal mask and actions itself, if it has words for them."""
        words = signal_words(self.instance, self.memory) if self.flag_address is not None else None
        signals = self.thread.signals
        if words is None:
            signals.keep_alone()
        else:
            signals.share(words, self.process.pid)
        return words

    def set_signal_flag(self) -> None:
        """Tell the program that a signal with a handler is pending."""
        assert self.flag_address is not None
        self.memory.write_u32(self.flag_address, 1)

    def lower_signal_flag(self) -> None:
        self.told_by_call = False
        if self.flag_address is not None:
            self.memory.write_u32(self.flag_address, 0)

    def tell_of_fault(self, signo: int) -> bool:
        """Send the process the signal for its fault. True if a handler can run."""
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
        """Whether there is room for another process and its memory: 0, or a negative errno."""
        if self.thread.dead:
            return self.fail_dead_embryo()
        try:
            require_room_for_child(self.kernel, self.process)
            self.look()
            self.fork_failed()  # an earlier fork that the guest did not complete
            self._copy = with_room(self.kernel, self.process, self.charge.account_of_copy)
        except KernelError as error:
            return -error.errno
        return 0

    def fork_failed(self) -> None:
        """The copy of this program was not made, and will not be."""
        if self._copy is not None:
            self._copy.user_left()
            self._copy = None

    def fork_child(self, child: Instance) -> int:
        """Create a process for the copy that the engine made. Its pid, or a negative errno."""
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
        assert process.memory is not None  # fork_allowed has set it
        on_fork, self.on_fork = self.on_fork, None
        if on_fork is not None:
            on_fork(child, process.pid)
        guest = Guest(self.kernel, self.modules, process.first_thread, child, process.memory)
        guest.lower_signal_flag()  # pending signals are not inherited
        self.driver.start(guest)
        return process.pid

    # vfork.

    def begin_embryo(self) -> None:
        """vfork: act for a new child until it calls exec or exit."""
        if self.embryo_parent is not None:
            raise KernelError(Errno.EAGAIN, "vfork inside a vfork child")
        self.account()
        child = fork(self.kernel, self.thread)
        child.memory = self.charge.account
        child.memory.owner_came()
        self.embryo_parent = self.thread
        self.process, self.thread = child, child.first_thread
        words, kept = self._signal_words, self.embryo_parent.signals
        if words is not None and kept.shared is words:
            # The memory is the child's for now; the kernel keeps the parent's words.
            kept.share(words.copy(), self.embryo_parent.process.pid)
            child.signals.share(words, child.pid)

    def end_embryo(self) -> int:
        """Act for the parent again. Return the child's pid: the result of vfork in the parent."""
        assert self.embryo_parent is not None
        pid = self.process.pid
        words, kept = self._signal_words, self.embryo_parent.signals
        self.thread.signals.leave(words)
        self.thread, self.embryo_parent = self.embryo_parent, None
        self.process = self.thread.process
        if words is not None and kept.shared is not None:
            kept.share(words, self.process.pid)
        return pid

    def fail_dead_embryo(self) -> int:
        """The result of a call by a killed process. If the guest has no living process left, it
        stops. If it acts for a killed embryo, calls fail until its parent leaves the embryo."""
        self.stop_if_over()
        return -int(Errno.EINTR)

    # exec.

    def execute(self, program: Program) -> int:
        """execve, after all checks except those of the module."""
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
        """checkpoint: later starts of the program begin with this memory."""
        reached = self.kernel.checkpoint_reached
        if reached is None:
            raise KernelError(Errno.ENOSYS)
        self.thread.signals.keep_alone()  # the memory is stored as a new program finds it
        reached(self.process, self.instance)
        return self.end(0)

    # Threads.

    def start_thread(self, stack: int) -> Thread:
        """clone a thread, which starts with this stack pointer."""
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
        self.thread.signals.keep_alone()  # each thread has its own mask
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
        """exit of one thread. If the program has only one thread, the process exits."""
        thread = self.thread
        if self.thread_locals is None or self.embryo_parent is not None:
            return self.end(status)
        self.account()
        if thread.clear_tid:
            try:
                self.memory.write_u32(thread.clear_tid, 0)
                futex.wake(self.process, thread.clear_tid, 1, -1)
            except KernelError:
                pass  # as on Linux, a bad address is ignored
        self.charge.enter_growth()  # nobody else can tell what this thread has written
        end_thread(self.kernel, thread, status)
        raise ProcessEnded

    def leave_threads(self) -> None:
        """The thread has ended, or executes another program."""
        self.thread_locals = self.kept_locals = None

    def yield_turn(self) -> None:
        """Let other threads of the program run first."""
        if self.thread_locals is not None and self.embryo_parent is None:
            self.driver.yield_turn()
