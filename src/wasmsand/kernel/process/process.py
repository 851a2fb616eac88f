"""The process record.

Owns `Process`: everything the kernel stores about a process, except what each thread has for itself
(see `Thread`). Rules: data and simple queries only; operations are in `life` (fork, exit, wait),
`program` (exec), `groups`, `delivery` (signals) and `timers`. The sandbox's lock guards all fields.
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
    """A CPU-time timer: its expiration, and its interval (0: none)."""

    deadline_ns: int
    interval_ns: int


class ResourceUsage:
    """CPU time used, in nanoseconds, and peak memory."""

    __slots__ = ("max_memory", "system_ns", "user_ns")

    def __init__(self) -> None:
        self.user_ns = 0
        self.system_ns = 0
        self.max_memory = 0

    def add(self, other: ResourceUsage) -> None:
        """Add the usage of a reaped child."""
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
        """The command to which this process belongs: the pid of the process that the host
        started."""

        self.fds = fds
        self.cwd = cwd
        self.umask = 0o022
        self.identity = identity
        self.rlimits = rlimits
        self.nice = 0
        self.dumpable = True

        self.signals = signals or SignalState()
        """Signal actions, and signals sent to the process. With a single thread, also its mask."""
        self.signal_queue = WaitQueue()
        """The first thread's queue; also woken when the process dies."""
        self.child_queue = WaitQueue()
        """Woken when a child changes state."""
        self.real_timer_deadline = 0
        self.real_timer_interval = 0
        self.cpu_timers: dict[int, CpuTimer] = {}
        """Armed CPU-time timers, by the signal that they send."""

        self.stopped = False
        """Stopped by job control, with all its threads."""
        self.dead = False
        """The process has exited."""
        self.end_state: ProcessState | None = None
        """ZOMBIE or GONE after the end, else None."""
        self.exit_status = 0
        self.state_change = 0
        """The wait status of the last stop or continue, if nobody has waited for it yet."""
        self.has_execed = False

        self.name = b""
        self.argv: tuple[bytes, ...] = ()
        self.environ: tuple[bytes, ...] = ()
        self.argument_cost = 0
        """Bytes charged for `argv` and `environ`."""
        self.executable = b""
        self.start_ns = start_ns
        self.usage = ResourceUsage()
        self.children_usage = ResourceUsage()
        self.memory: MemoryAccount | None = None
        """The account of the program that it runs."""
        self.memory_bytes = 0
        """The size that ps shows."""

        self.threads: Sequence[Thread] = (
            Thread(self, pid, start_ns, self.signals, self.signal_queue),
        )
        """All threads, the first thread first; empty after the end."""
        self.futexes: dict[int, list[FutexWait]] = {}
        """Sleeping threads, by futex address."""

    @property
    def first_thread(self) -> Thread:
        """The first thread. The process must not have ended."""
        return self.threads[0]

    @property
    def is_threaded(self) -> bool:
        """Whether it has, or had, several threads. These have signal sets of their own."""
        return bool(self.threads) and self.threads[0].signals is not self.signals

    @property
    def state(self) -> ProcessState:
        """The state that ps shows: running if any thread runs."""
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
