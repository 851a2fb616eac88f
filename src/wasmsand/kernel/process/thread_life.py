"""The life of a thread: creation, exit, and what exec does to the other threads.

Rules: exit status, stopping and waiting for children belong to the process. The process table lists
further threads by tid. In a process that has, or had, several threads, signals are assigned to
threads that do not block them (see `delivery.retarget`).
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
    """Create a thread with its maker's name, mask and affinity. EAGAIN under the same conditions as
    fork."""
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
    """exit(2) of one thread. The process ends with its last thread."""
    process = thread.process
    if thread.dead:
        return
    if len(process.threads) == 1:
        exit_process(kernel, process, status)
        return
    _drop(kernel, thread)
    _leave_signals(thread)
    process.threads = [other for other in process.threads if other is not thread]
    retarget(kernel, process)  # assign its pending signals to other threads


def only_thread(kernel: Kernel, thread: Thread) -> None:
    """execve by a thread: end the other threads and make it the first thread."""
    process = thread.process
    if not process.is_threaded:
        return
    for other in process.threads:
        _leave_signals(other)
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


def _leave_signals(thread: Thread) -> None:
    """Return the thread's signals to the process."""
    hand_back(thread, ALL_SIGNALS)
    signals = thread.signals
    assert isinstance(signals, ThreadSignals)
    signals.leave_process()


def _drop(kernel: Kernel, thread: Thread) -> None:
    thread.dead = True
    thread.call.clear()
    kernel.processes.remove_thread(thread)
    thread.signal_queue.wake()


def thread_of(kernel: Kernel, tid: int, group: int | None = None) -> Thread:
    """The thread with this tid, in the process `group` if given; else ESRCH."""
    found = kernel.processes.find_thread(tid)
    if found is None or group not in (None, found.process.pid):
        raise KernelError(Errno.ESRCH, f"thread {tid}")
    return found
