"""The thread record.

Owns `Thread`: everything that a thread of a process has for itself. A process has at least one
thread until it ends; what its threads share is the process's. Rules: data and small questions
only; how threads come and go is in `thread_life`. A number is taken from the pids; that of the
first thread is the pid.
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
"""All processors as a mask, one bit each."""


class ProcessState(Enum):
    """Of a process or a thread, as ps shows it. A thread is only in the first three."""

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
        """Its mask and the signals that it may take. As long as it is the only thread these are
        the process's own, else a `ThreadSignals`."""
        self.signal_queue = signal_queue
        """Wakes when a signal may interrupt a wait of this thread, or the thread died or
        continued."""
        self.state = ProcessState.RUNNING
        self.dead = False
        """It has ended, perhaps with its process; if it still computes, it must stop."""
        self.processors = ALL_PROCESSORS
        """The processors that it asked to run on, as a mask: kept and shown; the host
        schedules."""
        self.clear_tid = 0
        """The address of a word to be cleared when the thread ends."""
        self.call = CallState()
        """What the system call being retried has to remember."""

    @property
    def stopped(self) -> bool:
        """Suspended by job control."""
        return self.state is ProcessState.STOPPED

    def __repr__(self) -> str:
        return f"<Thread {self.tid} of {self.process!r}>"
