"""The process record.

Owns `Process`: everything the kernel knows of one process but what each of its threads has for
itself, which is in `Thread`. Rules: data and small questions only; what happens to processes is
in `life` (fork, exit, wait), `program` (exec), `groups`, `delivery` (signals) and `timers`. All
fields are guarded by the sandbox's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.rlimits import ResourceLimits
from wasmsand.kernel.process.signals import SignalState
from wasmsand.kernel.process.thread import ProcessState, Thread
from wasmsand.kernel.vfs import Node
from wasmsand.kernel.wait import WaitQueue

if TYPE_CHECKING:
    from wasmsand.kernel.files.terminal import Terminal
    from wasmsand.kernel.process.futex import FutexWait
    from wasmsand.kernel.process.memory import MemoryAccount


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


class Process:
    """One process: what all its threads share."""

    __slots__ = (
        "argument_cost",
        "argv",
        "child_queue",
        "children",
        "children_usage",
        "cpu_timers",
        "cwd",
        "dead",
        "dumpable",
        "end_state",
        "environ",
        "executable",
        "exit_status",
        "fds",
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
        "real_timer_deadline",
        "real_timer_interval",
        "rlimits",
        "session",
        "signal_queue",
        "signals",
        "start_ns",
        "state_change",
        "stopped",
        "terminal",
        "threads",
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
        signals: SignalState | None = None,
    ) -> None:
        self.pid = pid
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
        self.dumpable = True

        self.signals = signals or SignalState()
        """Actions, and signals sent to the process; the only thread's mask."""
        self.signal_queue = WaitQueue()
        """The first thread's; wakes when the process died, too."""
        self.child_queue = WaitQueue()
        """Wakes when a child changed its state."""
        self.real_timer_deadline = 0
        self.real_timer_interval = 0
        self.cpu_timers: dict[int, CpuTimer] = {}
        """Timers of CPU time that are armed, by the signal that they send."""

        self.stopped = False
        """Suspended by job control, with all its threads."""
        self.dead = False
        """Exit has happened."""
        self.end_state: ProcessState | None = None
        """ZOMBIE or GONE, when it has ended."""
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

        self.threads: Sequence[Thread] = (
            Thread(self, pid, start_ns, self.signals, self.signal_queue),
        )
        """All of them, the first one first; none when the process has ended."""
        self.futexes: dict[int, list[FutexWait]] = {}
        """The threads that sleep, by address."""

    @property
    def first_thread(self) -> Thread:
        """Of a process that has not ended. Of one without further threads: the one."""
        return self.threads[0]

    @property
    def is_threaded(self) -> bool:
        """Whether it has, or had, several threads, which then have signals of their own."""
        return bool(self.threads) and self.threads[0].signals is not self.signals

    @property
    def state(self) -> ProcessState:
        """As ps shows it: running if one thread does."""
        if self.end_state is not None or not self.threads:
            return self.end_state or ProcessState.ZOMBIE
        states = [thread.state for thread in self.threads]
        return ProcessState.RUNNING if ProcessState.RUNNING in states else states[0]

    def leave_memory(self, new: MemoryAccount | None = None) -> None:
        """The process has ended, or runs another program now."""
        if self.memory is not None:
            self.memory.owner_left()
        self.memory = new
        self.memory_bytes = 0 if new is None else new.total

    def __repr__(self) -> str:
        return f"<Process {self.pid} {self.name!r} {self.state.name}>"
