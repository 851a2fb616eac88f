"""The life of a process: fork, exit, wait.

Owns these three operations; exec is in `program`. Rules: each either leaves the process table
consistent or changes nothing. The process limit is checked before anything is created. A dead
process keeps only what its parent may ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import WCONTINUED, WEXITED, WNOHANG, WNOWAIT, WUNTRACED
from wasmsand.kernel.limits import FD_COST, PROCESS_COST
from wasmsand.kernel.process.delivery import (
    CLD_CONTINUED,
    CLD_DUMPED,
    CLD_EXITED,
    CLD_KILLED,
    CLD_STOPPED,
    CONTINUED_STATUS,
    SI_KERNEL,
    post,
)
from wasmsand.kernel.process.groups import leave_terminal
from wasmsand.kernel.process.process import Process, ResourceUsage
from wasmsand.kernel.process.room import require_room
from wasmsand.kernel.process.signals import SA_NOCLDWAIT, SIG_IGN, Signal, SignalInfo
from wasmsand.kernel.process.thread import ProcessState, Thread
from wasmsand.kernel.wait import WouldBlock

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel


def require_room_for_child(kernel: Kernel, parent: Process) -> None:
    """EAGAIN if the sandbox, or the user (RLIMIT_NPROC), has too many processes; ENOMEM if there is
    no memory for another process's kernel objects."""
    table = kernel.processes
    require_room(kernel, parent)
    kernel.ledger.require(PROCESS_COST + parent.argument_cost + len(parent.fds) * FD_COST)
    limit, uid = parent.rlimits.processes, parent.identity.uid
    if limit < table.maximum and uid != 0 and table.count_of_user(uid) >= limit:
        raise KernelError(Errno.EAGAIN, f"RLIMIT_NPROC is {limit}")


def fork(kernel: Kernel, maker: Thread) -> Process:
    """Create a child that copies the process of `maker` except for pid, timers and pending signals.
    It has one thread, a copy of `maker`."""
    parent = maker.process
    require_room_for_child(kernel, parent)
    table = kernel.processes
    child = Process(
        table.allocate_pid(),
        parent,
        fds=parent.fds.copy(),
        cwd=parent.cwd,
        identity=parent.identity,
        rlimits=parent.rlimits.copy(),
        start_ns=kernel.clock.monotonic(),
        signals=maker.signals.copy_for_fork(),
    )
    kernel.namespace.retain(child.cwd)
    child.group = parent.group
    child.session = parent.session
    child.terminal = parent.terminal
    child.job = parent.job
    child.umask = parent.umask
    child.nice = parent.nice
    child.dumpable = parent.dumpable
    thread = child.first_thread
    thread.processors = maker.processors
    child.name = thread.name = maker.name
    child.argv, child.environ = parent.argv, parent.environ
    child.argument_cost = parent.argument_cost
    child.executable = parent.executable
    child.memory_bytes = 0
    parent.children[child.pid] = child
    table.add(child)
    return child


def exit_process(kernel: Kernel, process: Process, status: int) -> None:
    """End `process` with a wait status; it is a zombie until its parent waits for it."""
    if process.dead:
        return
    process.dead = True
    process.stopped = False
    for thread in process.threads:
        thread.dead = True
        kernel.interrupt_if_computing(thread)
        thread.call.clear()
        kernel.processes.remove_thread(thread)
        thread.signal_queue.wake()
    process.threads = ()
    process.exit_status = status
    process.fds.close_all()
    if kernel.network.rights.in_flight:
        kernel.network.rights.collect()
    kernel.namespace.release(process.cwd)
    process.real_timer_deadline = 0
    process.leave_memory()
    held_together = _groups_with_a_parent(kernel, process)
    _give_children_to_init(kernel, process)
    leave_terminal(kernel, process)
    process.end_state = ProcessState.ZOMBIE
    _hang_up_orphans(kernel, held_together)
    parent = process.parent
    if parent is None or parent.pid == 1:
        reap(kernel, process)
    else:
        _report_death(kernel, process, parent)
    process.signal_queue.wake()
    kernel.process_ended(process)


def _report_death(kernel: Kernel, process: Process, parent: Process) -> None:
    action = parent.signals.action(Signal.SIGCHLD)
    code, value = exit_code_and_value(process.exit_status)
    if action.handler != SIG_IGN:
        post(
            kernel,
            parent,
            SignalInfo(Signal.SIGCHLD, code, process.pid, process.identity.uid, value),
        )
    if action.handler == SIG_IGN or action.flags & SA_NOCLDWAIT:
        reap(kernel, process)
    parent.child_queue.wake()


def _give_children_to_init(kernel: Kernel, process: Process) -> None:
    init = kernel.init
    for child in list(process.children.values()):
        child.parent = init
        init.children[child.pid] = child
        if child.dead:
            reap(kernel, child)
    process.children.clear()


def _groups_with_a_parent(kernel: Kernel, process: Process) -> set[int]:
    """The groups with a stopped member that may become orphaned when `process` dies: its own, if
    its parent is in another group of the session, and likewise those of its children."""
    groups = {
        child.group
        for child in process.children.values()
        if child.group != process.group and child.session == process.session
    }
    parent = process.parent
    if parent is not None and parent.group != process.group and parent.session == process.session:
        groups.add(process.group)
    return {group for group in groups if any(p.stopped for p in kernel.processes.group(group))}


def _hang_up_orphans(kernel: Kernel, groups: set[int]) -> None:
    """Send SIGHUP and SIGCONT to newly orphaned groups with stopped members, as POSIX requires."""
    for group in groups:
        if kernel.processes.is_orphaned(group):
            for member in kernel.processes.group(group):
                post(kernel, member, SignalInfo(Signal.SIGHUP, SI_KERNEL))
                post(kernel, member, SignalInfo(Signal.SIGCONT, SI_KERNEL))


def reap(kernel: Kernel, process: Process) -> None:
    """Remove a dead process; its parent is charged for its resource usage."""
    parent = process.parent
    if parent is not None:
        parent.children.pop(process.pid, None)
        parent.children_usage.add(process.usage)
        parent.children_usage.add(process.children_usage)
    kernel.usage_of_ended.add(process.usage)
    process.end_state = ProcessState.GONE
    kernel.processes.remove(process)
    # A pidfd may keep this object alive, but must not keep what it refers to.
    process.parent = None
    process.argv = process.environ = ()
    process.argument_cost = 0


def exit_code_and_value(status: int) -> tuple[int, int]:
    """siginfo's si_code and si_status for a wait status."""
    if status & 0xFF == 0x7F:
        return CLD_STOPPED, status >> 8
    if status == CONTINUED_STATUS:
        return CLD_CONTINUED, int(Signal.SIGCONT)
    if status & 0x7F == 0:
        return CLD_EXITED, status >> 8 & 0xFF
    return (CLD_DUMPED if status & 0x80 else CLD_KILLED), status & 0x7F


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The result of wait4 and waitid."""

    pid: int
    uid: int
    status: int
    usage: ResourceUsage


def wait(kernel: Kernel, process: Process, which: int, options: int) -> WaitResult | None:
    """wait4 and waitid: `which` is a pid, 0 (own group), -1 (any child) or minus a group.

    `options` includes WEXITED if exits count. None if WNOHANG is set and nothing has happened.
    """
    found = False
    for child in list(process.children.values()):
        if not _matches(process, child, which):
            continue
        if child.dead:
            if options & WEXITED:
                result = WaitResult(child.pid, child.identity.uid, child.exit_status, child.usage)
                if not options & WNOWAIT:
                    reap(kernel, child)
                return result
            continue
        found = True
        change = child.state_change
        if change and options & (WCONTINUED if change == CONTINUED_STATUS else WUNTRACED):
            if not options & WNOWAIT:
                child.state_change = 0
            return WaitResult(child.pid, child.identity.uid, change, child.usage)
    if not found:
        raise KernelError(Errno.ECHILD)
    if options & WNOHANG:
        return None
    raise WouldBlock((process.child_queue,))


def _matches(process: Process, child: Process, which: int) -> bool:
    if which == -1:
        return True
    if which > 0:
        return child.pid == which
    return child.group == (process.group if which == 0 else -which)
