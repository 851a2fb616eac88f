"""The thread record.

Owns `Thread`: everything that a thread has for itself; what threads share is in `Process`. A
process has at least one thread until it ends. Rules: data and simple queries only; creation and end
are in `thread_life`. tids are allocated from the pids; the first thread's tid is the pid.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.process.call_state import CallState
from wasmsand.kernel.process.signals import SignalState
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.process.process import Process

CPU_COUNT: Final = 2
ALL_PROCESSORS: Final = (1 << CPU_COUNT) - 1
"""The mask of all processors."""


class ProcessState(Enum):
    """The state of a process or thread, as ps shows it. Threads use only the first three."""

    RUNNING = "R"
    SLEEPING = "S"
    STOPPED = "T"
    ZOMBIE = "Z"
    GONE = "X"


class Thread:
    """One thread of a process."""

    __slots__ = (
        "call",
        "clear_tid",
        "dead",
        "name",
        "process",
        "processors",
        "signal_queue",
        "signals",
        "start_ns",
        "state",
        "tid",
    )

    def __init__(
        self,
        process: Process,
        tid: int,
        start_ns: int,
        signals: SignalState,
        signal_queue: WaitQueue,
    ) -> None:
        self.process = process
        self.tid = tid
        self.name = process.name
        self.start_ns = start_ns
        self.signals = signals
        """Its mask and the signals that it may take. For an only thread this is the process's own
        state, otherwise a `ThreadSignals`."""
        self.signal_queue = signal_queue
        """Woken when a signal may interrupt a wait of this thread, and when the thread dies or
        continues."""
        self.state = ProcessState.RUNNING
        self.dead = False
        """The thread, or its process, has ended. If its program still computes, it must stop."""
        self.processors = ALL_PROCESSORS
        """The affinity mask that it asked for: stored and reported; the host does the
        scheduling."""
        self.clear_tid = 0
        """The address of a word to clear when the thread ends."""
        self.call = CallState()
        """The state of the system call that is being retried."""

    @property
    def stopped(self) -> bool:
        """Stopped by job control."""
        return self.state is ProcessState.STOPPED

    def __repr__(self) -> str:
        return f"<Thread {self.tid} of {self.process!r}>"
