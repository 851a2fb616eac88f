"""The process record.

Owns `Process`: everything the kernel knows of one process. Rules: data and small questions only;
what happens to processes is in `life` (fork, exit, wait), `program` (exec), `groups`, `delivery`
(signals) and `timers`. All fields are guarded by the sandbox's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.rlimits import ResourceLimits
from wasmsand.kernel.process.signals import SignalState
from wasmsand.kernel.vfs import Node
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.files.terminal import Terminal
    from wasmsand.kernel.process.memory import MemoryAccount

CPU_COUNT: Final = 2
ALL_PROCESSORS: Final = (1 << CPU_COUNT) - 1
"""All processors as a mask, one bit each."""


class ProcessState(Enum):
    """As ps shows it."""

    RUNNING = "R"
    SLEEPING = "S"
    STOPPED = "T"
    ZOMBIE = "Z"
    GONE = "X"


class CpuTimer(NamedTuple):
    """A timer that counts CPU time: when it goes off, and how often after that (0: not)."""

    deadline_ns: int
    interval_ns: int


class Usage:
    """CPU time used, in nanoseconds, and the highest memory seen."""

    __slots__ = ("max_memory", "system_ns", "user_ns")

    def __init__(self) -> None:
        self.user_ns = 0
        self.system_ns = 0
        self.max_memory = 0

    def add(self, other: Usage) -> None:
        """Account a reaped child."""
        self.user_ns += other.user_ns
        self.system_ns += other.system_ns
        self.max_memory = max(self.max_memory, other.max_memory)


class FutexWait:
    """One thread that sleeps on a futex."""

    __slots__ = ("address", "bits", "queue", "woken")

    def __init__(self, address: int, bits: int) -> None:
        self.address = address
        self.bits = bits
        self.queue = WaitQueue()
        self.woken = False


class Process:
    """One process; or, as `Thread`, one of its threads."""

    __slots__ = (
        "argument_cost",
        "argv",
        "call_deadline",
        "call_done",
        "call_progress",
        "call_started",
        "child_queue",
        "children",
        "children_usage",
        "clear_tid",
        "cpu_timers",
        "cwd",
        "dead",
        "dumpable",
        "environ",
        "executable",
        "exit_status",
        "fds",
        "futex_wait",
        "futexes",
        "group",
        "has_execed",
        "identity",
        "job",
        "memory",
        "memory_bytes",
        "name",
        "nice",
        "parent",
        "pid",
        "processors",
        "real_timer_deadline",
        "real_timer_interval",
        "rlimits",
        "session",
        "signal_queue",
        "signals",
        "start_ns",
        "state",
        "state_change",
        "terminal",
        "threads",
        "tid",
        "umask",
        "usage",
    )

    def __init__(
        self,
        pid: int,
        parent: Process | None,
        *,
        fds: FdTable,
        cwd: Node,
        identity: Identity,
        rlimits: ResourceLimits,
        start_ns: int,
    ) -> None:
        self.pid = self.tid = pid
        self.parent = parent
        self.children: dict[int, Process] = {}
        self.group = pid
        self.session = pid
        self.terminal: Terminal | None = None
        self.job = pid
        """The command that this process belongs to: the pid of the process that the host
        started."""

        self.fds = fds
        self.cwd = cwd
        self.umask = 0o022
        self.identity = identity
        self.rlimits = rlimits
        self.nice = 0
        self.processors = ALL_PROCESSORS
        """The processors that it asked to run on, as a mask: kept and shown; the host
        schedules."""
        self.dumpable = True

        self.signals = SignalState()
        self.signal_queue = WaitQueue()
        """Wakes when a signal may interrupt a wait, or the process died or continued."""
        self.child_queue = WaitQueue()
        """Wakes when a child changed its state."""
        self.real_timer_deadline = 0
        self.real_timer_interval = 0
        self.cpu_timers: dict[int, CpuTimer] = {}
        """Timers of CPU time that are armed, by the signal that they send."""

        self.state = ProcessState.RUNNING
        self.dead = False
        """The process has exited; its thread must stop if it still computes."""
        self.exit_status = 0
        self.state_change = 0
        """The last stop or continue (a wait status) if nobody has waited for it yet."""
        self.has_execed = False

        self.name = b""
        self.argv: tuple[bytes, ...] = ()
        self.environ: tuple[bytes, ...] = ()
        self.argument_cost = 0
        """Bytes that `argv` and `environ` take on the ledger."""
        self.executable = b""
        self.start_ns = start_ns
        self.usage = Usage()
        self.children_usage = Usage()
        self.memory: MemoryAccount | None = None
        """The account of the program that it runs."""
        self.memory_bytes = 0
        """The size that ps shows."""

        self.threads: Sequence[Process] = ()
        """Its threads, once there was more than one."""
        self.clear_tid = 0
        """The address of a word to be cleared when the thread ends."""
        self.futexes: dict[int, list[FutexWait]] = {}
        """The threads that sleep, by address."""
        self.futex_wait: FutexWait | None = None
        """The sleep of the call being retried."""

        self.call_done = 0
        """Progress of the call being retried: bytes already moved."""
        self.call_deadline: int | None = None
        """Absolute time limit of the call being retried, fixed at its first try."""
        self.call_started: int | None = None
        """The time of the first try, for a call that waits for several times at once."""
        self.call_progress: object | None = None
        """What a call that is retried has made so far, if it is more than a number."""

    @property
    def leader(self) -> Process:
        """The process that this is a thread of; a process is its own."""
        return self

    @property
    def stopped(self) -> bool:
        """Suspended by job control."""
        return self.state is ProcessState.STOPPED

    def leave_memory(self, new: MemoryAccount | None = None) -> None:
        """The process has ended, or runs another program now."""
        if self.memory is not None:
            self.memory.owner_left()
        self.memory = new
        self.memory_bytes = 0 if new is None else new.total

    def shown_state(self) -> ProcessState:
        """The state as ps shows it: running if one thread does."""
        if self.dead or not self.threads:
            return self.state
        states = [thread.state for thread in self.threads]
        return ProcessState.RUNNING if ProcessState.RUNNING in states else states[0]

    def __repr__(self) -> str:
        return f"<Process {self.pid} {self.name!r} {self.state.name}>"
