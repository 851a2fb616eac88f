"""Sending signals, and their effects.

Owns the path of a signal from its sender to its effect. Rules: an effect that needs no guest code
(terminate, stop, continue, ignore) happens at once, under the lock. A signal with a handler stays
pending until the guest takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import (
    DEFAULT_ACTIONS,
    SA_NOCLDSTOP,
    SA_RESTART,
    SIG_DFL,
    SIG_IGN,
    SIGCONT_BIT,
    STOP_SIGNALS,
    DefaultAction,
    Signal,
    SignalAction,
    SignalInfo,
    TakenSignal,
    ThreadSignals,
    require_signal,
)
from wasmsand.kernel.process.thread import ProcessState, Thread

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

SI_USER: Final = 0
SI_KERNEL: Final = 0x80
SI_TKILL: Final = -6
CLD_EXITED, CLD_KILLED, CLD_DUMPED, CLD_TRAPPED, CLD_STOPPED, CLD_CONTINUED = range(1, 7)
CONTINUED_STATUS: Final = 0xFFFF
_CORE_FLAG: Final = 0x80


def post(kernel: Kernel, process: Process, info: SignalInfo) -> None:
    """Send one signal to one process."""
    if process.dead or process.pid == 1 or not _prepare(kernel, process, info.signo):
        return
    if not process.is_threaded:
        _add(kernel, process.first_thread, info)
    elif not (process.signals.ignores(info.signo) and any_thread_takes(process, info.signo)):
        process.signals.add(info)
        retarget(kernel, process)


def post_to_thread(kernel: Kernel, thread: Thread, info: SignalInfo) -> None:
    """Send one signal to one thread."""
    process = thread.process
    if thread.dead or process.pid == 1 or not _prepare(kernel, process, info.signo):
        return
    _add(kernel, thread, info)


def _prepare(kernel: Kernel, process: Process, signo: int) -> bool:
    """The effects of sending a signal before it becomes pending. False if it must not become
    pending."""
    if signo == Signal.SIGKILL:
        kernel.exit(process, signo)
        return False
    if signo == Signal.SIGCONT:
        _discard(process, STOP_SIGNALS)
        _continue(kernel, process)
    elif STOP_SIGNALS >> (signo - 1) & 1:
        _discard(process, SIGCONT_BIT)
    return not process.dead


def _add(kernel: Kernel, thread: Thread, info: SignalInfo) -> None:
    """Make a signal pending for a thread. If it is the only thread, the process shares the set."""
    signals = thread.signals
    if signals.shared is not None:
        signals.shared.say_pending(True)  # before the mask is read: see decision 0029
    blocked = bool(signals.mask >> (info.signo - 1) & 1)
    if not blocked and signals.ignores(info.signo):
        if signals.shared is not None and not signals.pending:
            signals.shared.say_pending(False)
        return
    signals.add(info)
    thread.signal_queue.wake()  # even when blocked, for sigtimedwait
    if not blocked:
        act_on_pending(kernel, thread)
        kernel.interrupt_if_computing(thread)


def _discard(process: Process, bits: int) -> None:
    process.signals.discard(bits)
    for thread in process.threads:
        thread.signals.discard(bits)


def any_thread_takes(process: Process, signo: int) -> bool:
    """Whether any thread has the signal unblocked."""
    return any(not thread.signals.mask >> (signo - 1) & 1 for thread in process.threads)


def retarget(kernel: Kernel, process: Process) -> None:
    """Assign each pending signal of a multi-threaded process to the first thread that does not
    block it; the first thread of the process comes first. Signals that all threads block stay with
    the process."""
    takers: list[Thread] = []
    pending = process.signals.pending
    while pending:
        signo = (pending & -pending).bit_length()
        pending &= pending - 1
        for thread in process.threads:
            if not thread.signals.mask >> (signo - 1) & 1:
                thread.signals.add(process.signals.take(signo))
                takers.append(thread)
                break
        else:
            for thread in process.threads:
                thread.signal_queue.wake()  # for sigtimedwait
    for thread in takers:
        thread.signal_queue.wake()
        _act(kernel, thread)
        kernel.interrupt_if_computing(thread)


def hand_back(thread: Thread, signals: int) -> None:
    """Return signals that were sent to the process and assigned to this thread to the process, so
    that other threads can take them."""
    own = thread.signals
    assert isinstance(own, ThreadSignals)
    for info in own.own_signals():
        if signals >> (info.signo - 1) & 1 and info.code != SI_TKILL:
            thread.process.signals.add(own.take(info.signo))


def act_on_pending(kernel: Kernel, thread: Thread) -> None:
    """Take every signal that is deliverable to a thread and needs no guest code.

    Called when a signal arrives, when a mask or an action changes, and when a stopped process
    continues: a stopped process takes only SIGKILL and SIGCONT.
    """
    process = thread.process
    if process.is_threaded:
        hand_back(thread, thread.signals.mask)
        if process.signals.pending:
            retarget(kernel, process)
    _act(kernel, thread)


def look_again(kernel: Kernel, thread: Thread) -> None:
    """A program that keeps its mask and actions itself may have let pending signals through without
    seeing that they were pending: take those that need no guest code."""
    signals = thread.signals
    if signals.shared is None:
        return
    ready = signals.ready()
    if ready and (ready & ready - 1 or not signals.has_handler(ready.bit_length())):
        act_on_pending(kernel, thread)


def _act(kernel: Kernel, thread: Thread) -> None:
    """Signals with handlers stay pending: a fatal one need not wait until the guest has taken
    them."""
    signals = thread.signals
    ready = signals.ready()
    while ready and not thread.dead and not thread.stopped:
        signo = (ready & -ready).bit_length()
        ready &= ready - 1
        handler = signals.handler(signo)
        if handler in (SIG_DFL, SIG_IGN):
            signals.take(signo)
            if handler == SIG_DFL:
                _default(kernel, thread.process, signo)
                ready &= signals.pending  # it may have discarded others


def _default(kernel: Kernel, process: Process, signo: int) -> None:
    action = DEFAULT_ACTIONS[signo]
    if action is DefaultAction.TERMINATE:
        kernel.exit(process, signo)
    elif action is DefaultAction.CORE:
        kernel.exit(process, signo)  # no core file is written
    elif action is DefaultAction.STOP:
        if signo != Signal.SIGSTOP and kernel.processes.is_orphaned(process.group):
            return
        stop(kernel, process, signo)


def stop(kernel: Kernel, process: Process, signo: int) -> None:
    """Stop a process and notify its parent."""
    if process.stopped:
        return
    process.stopped = True
    for thread in process.threads:
        thread.state = ProcessState.STOPPED
    process.state_change = 0x7F | signo << 8
    _tell_parent(kernel, process, CLD_STOPPED, signo)


def _continue(kernel: Kernel, process: Process) -> None:
    if not process.stopped:
        return
    process.stopped = False
    process.state_change = CONTINUED_STATUS
    for thread in process.threads:
        thread.state = ProcessState.RUNNING
        thread.signal_queue.wake()
    _tell_parent(kernel, process, CLD_CONTINUED, Signal.SIGCONT)
    if process.is_threaded:
        retarget(kernel, process)
    elif not process.dead:
        act_on_pending(kernel, process.first_thread)


def _tell_parent(kernel: Kernel, process: Process, code: int, signo: int) -> None:
    parent = process.parent
    if parent is None:
        return
    if not parent.signals.action(Signal.SIGCHLD).flags & SA_NOCLDSTOP:
        post(
            kernel,
            parent,
            SignalInfo(Signal.SIGCHLD, code, process.pid, process.identity.uid, signo),
        )
    parent.child_queue.wake()


def deliverable_handler(thread: Thread) -> int:
    """The lowest pending unblocked signal with a handler, or 0."""
    signals = thread.signals
    ready = signals.ready()
    while ready:
        signo = (ready & -ready).bit_length()
        if signals.has_handler(signo):
            return signo
        ready &= ready - 1
    return 0


def give_up_handlers(kernel: Kernel, thread: Thread) -> None:
    """The program cannot run signal handlers: reset the handlers of pending signals, so that the
    default actions are taken."""
    while not thread.dead and not thread.stopped and (signo := deliverable_handler(thread)):
        thread.signals.set_action(signo, SignalAction())
        act_on_pending(kernel, thread)


def take_for_handler(thread: Thread) -> TakenSignal | None:
    """Take the next signal for a handler, and apply the handler's mask as Linux does."""
    signo = deliverable_handler(thread)
    return thread.signals.take_for_handler(signo) if signo else None


def interrupts(thread: Thread) -> bool:
    """Whether a signal handler must interrupt the current wait."""
    return bool(thread.signals.pending) and bool(deliverable_handler(thread))


def restarts(thread: Thread) -> bool:
    """Whether the next handler has SA_RESTART."""
    signo = deliverable_handler(thread)
    return bool(signo) and bool(thread.signals.action(signo).flags & SA_RESTART)


def may_signal(sender: Process, target: Process, signo: int) -> bool:
    """Linux's permission rule for kill(2)."""
    who, whom = sender.identity, target.identity
    if who.euid == 0 or who.euid in (whom.uid, whom.suid) or who.uid in (whom.uid, whom.suid):
        return True
    return signo == Signal.SIGCONT and sender.session == target.session


def kill(kernel: Kernel, sender: Process, target: int, signo: int) -> None:
    """kill(2): `target` is a pid, 0 (own group), -1 (all) or minus a group."""
    table = kernel.processes
    if target > 0:
        targets = [table.get(target)]
    elif target == 0:
        targets = table.group(sender.group)
    elif target == -1:
        targets = [p for p in table if p is not sender and p.pid != 1]
    else:
        targets = table.group(-target)
    if not targets:
        raise KernelError(Errno.ESRCH)
    if signo:
        require_signal(signo)
    allowed = [p for p in targets if may_signal(sender, p, signo)]
    if not allowed and target != -1:
        raise KernelError(Errno.EPERM)
    if signo:
        info = SignalInfo(signo, SI_USER, sender.pid, sender.identity.uid)
        for process in allowed:
            post(kernel, process, info)


def signal_group(kernel: Kernel, group: int, signo: int) -> None:
    """Send a signal from the kernel to a process group (terminal keys, hang-up)."""
    for process in kernel.processes.group(group):
        post(kernel, process, SignalInfo(signo, SI_KERNEL))
