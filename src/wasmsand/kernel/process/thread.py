"""Threads: what of a process each of its threads has for itself.

Owns `Thread`, and how threads come and go. A process begins without: its one thread is the
process itself. With the first further thread the process becomes the group, and each thread,
the first included, gets a `Thread`: a process in all that calls look at, whose own are the
signal mask, the signals sent to it alone, its processors, its waiting and the progress of its
calls, and whose rest is the group's. Rules: the process table has groups only, and knows threads
by their numbers; ending, stopping and waiting for children are the group's; a number is taken
from the pids, that of the first thread is the pid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.call_state import CallState
from wasmsand.kernel.process.delivery import hand_back, retarget
from wasmsand.kernel.process.life import exit_process, require_room_for_child
from wasmsand.kernel.process.process import Process, ProcessState
from wasmsand.kernel.process.signals import ALL_SIGNALS, SignalState, ThreadSignals
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel


class Thread(Process):
    """One of several threads of a process."""

    __slots__ = ("_group",)

    def __init__(self, group: Process, tid: int, start_ns: int) -> None:
        # Not the fields of a process: those that are not set here are the group's.
        self._group = group
        self.tid = tid
        self.name = group.name
        self.signals: SignalState = ThreadSignals(group.signals)
        self.signal_queue = WaitQueue()
        self.state = ProcessState.RUNNING
        self.dead = False
        self.start_ns = start_ns
        self.clear_tid = 0
        self.processors = group.processors
        self.call = CallState()

    @property
    def leader(self) -> Process:
        """The process that this is a thread of."""
        return self._group

    def shown_state(self) -> ProcessState:
        """Its own."""
        return self.state

    def __repr__(self) -> str:
        return f"<Thread {self.tid} of {self._group!r}>"


_OWN: Final = frozenset(
    {
        "call",
        "clear_tid",
        "dead",
        "name",
        "processors",
        "signal_queue",
        "signals",
        "start_ns",
        "state",
        "tid",
    }
)


def _of_the_group(name: str) -> property:
    field: Any = getattr(Process, name)

    def read(thread: Thread) -> Any:
        return field.__get__(thread._group)

    def write(thread: Thread, value: Any) -> None:
        field.__set__(thread._group, value)

    return property(read, write)


for _name in Process.__slots__:
    if _name not in _OWN:
        setattr(Thread, _name, _of_the_group(_name))


def first_thread(kernel: Kernel, process: Process) -> Thread:
    """Make a process a group, whose one thread has the process's number and mask."""
    thread = Thread(process, process.pid, process.start_ns)
    thread.signals.mask = process.signals.mask
    thread.clear_tid = process.clear_tid
    process.threads = [thread]
    kernel.processes.add_thread(thread)
    return thread


def new_thread(kernel: Kernel, maker: Thread) -> Thread:
    """Another thread, with its maker's mask and processors; EAGAIN where a process would get it."""
    require_room_for_child(kernel, maker)
    group = maker.leader
    thread = Thread(group, kernel.processes.allocate_pid(), kernel.clock.monotonic())
    thread.signals.mask = maker.signals.mask
    thread.processors = maker.processors
    group.threads = [*group.threads, thread]
    kernel.processes.add_thread(thread)
    return thread


def end_thread(kernel: Kernel, thread: Process, status: int) -> None:
    """exit(2) of one thread; the process ends with its last one."""
    group = thread.leader
    if thread.dead or group.dead:
        return
    _drop(kernel, thread)
    hand_back(thread, ALL_SIGNALS)
    group.threads = [other for other in group.threads if other is not thread]
    if group.threads:
        retarget(kernel, group)  # what it was to take is for the others now
    else:
        exit_process(kernel, group, status)


def only_thread(kernel: Kernel, thread: Process) -> Process:
    """execve by a thread: the others end, and it is the process from now on."""
    group = thread.leader
    if group is thread:
        return group
    for other in group.threads:
        hand_back(other, ALL_SIGNALS)
        if other is not thread:
            _drop(kernel, other)
            kernel.interrupt_if_computing(other)
    kernel.processes.remove_thread(thread)
    group.threads = ()
    group.signals.mask = thread.signals.mask
    group.processors = thread.processors
    group.state = ProcessState.RUNNING
    return group


def _drop(kernel: Kernel, thread: Process) -> None:
    thread.dead = True
    thread.call.clear()
    kernel.processes.remove_thread(thread)
    thread.signal_queue.wake()


def thread_of(kernel: Kernel, tid: int, group: int | None = None) -> Process:
    """The thread with this number, of the process `group` if one is named; or ESRCH."""
    found = kernel.processes.find_thread(tid)
    if found is None or group not in (None, found.pid):
        raise KernelError(Errno.ESRCH, f"thread {tid}")
    return found
