"""The life of a thread: how threads of a process come and go.

Owns clone of a thread, exit of one, and what exec does to the others. Rules: ending, stopping and
waiting for children are the process's; the process table knows further threads by their numbers;
a process that has, or had, several threads hands its signals to those that take them (see
`delivery.retarget`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.delivery import hand_back, retarget
from wasmsand.kernel.process.life import exit_process, require_room_for_child
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import ALL_SIGNALS, ThreadSignals
from wasmsand.kernel.process.thread import ProcessState, Thread
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel


def new_thread(kernel: Kernel, maker: Thread) -> Thread:
    """Another thread, with its maker's name, mask and processors; EAGAIN where a process would
    get it."""
    process = maker.process
    require_room_for_child(kernel, process)
    tid = kernel.processes.allocate_pid()
    if not process.is_threaded:
        maker.signals = _own_signals(process, maker)
    thread = Thread(
        process, tid, kernel.clock.monotonic(), _own_signals(process, maker), WaitQueue()
    )
    thread.name = maker.name
    thread.processors = maker.processors
    process.threads = [*process.threads, thread]
    kernel.processes.add_thread(thread)
    return thread


def _own_signals(process: Process, maker: Thread) -> ThreadSignals:
    signals = ThreadSignals(process.signals)
    signals.mask = maker.signals.mask
    return signals


def end_thread(kernel: Kernel, thread: Thread, status: int) -> None:
    """exit(2) of one thread; the process ends with its last one."""
    process = thread.process
    if thread.dead:
        return
    if len(process.threads) == 1:
        exit_process(kernel, process, status)
        return
    _drop(kernel, thread)
    hand_back(thread, ALL_SIGNALS)
    process.threads = [other for other in process.threads if other is not thread]
    retarget(kernel, process)  # what it was to take is for the others now


def only_thread(kernel: Kernel, thread: Thread) -> None:
    """execve by a thread: the others end, and it is the first one from now on."""
    process = thread.process
    if not process.is_threaded:
        return
    for other in process.threads:
        hand_back(other, ALL_SIGNALS)
        if other is not thread:
            _drop(kernel, other)
            kernel.interrupt_if_computing(other)
    kernel.processes.remove_thread(thread)
    process.threads = [thread]
    process.signals.mask = thread.signals.mask
    thread.tid = process.pid
    thread.signals = process.signals
    thread.signal_queue = process.signal_queue
    thread.state = ProcessState.RUNNING


def _drop(kernel: Kernel, thread: Thread) -> None:
    thread.dead = True
    thread.call.clear()
    kernel.processes.remove_thread(thread)
    thread.signal_queue.wake()


def thread_of(kernel: Kernel, tid: int, group: int | None = None) -> Thread:
    """The thread with this number, of the process `group` if one is named; or ESRCH."""
    found = kernel.processes.find_thread(tid)
    if found is None or group not in (None, found.process.pid):
        raise KernelError(Errno.ESRCH, f"thread {tid}")
    return found
