"""One sandbox's kernel.

Owns `Kernel`: the namespace, the process table, the network, terminals, FIFOs and the ledger of one
sandbox. Rules: the caller holds the sandbox's lock, and every method returns at once. Hooks tell
the machine what to do (interrupt a computing guest, arm a host timer).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.deadlines import Deadlines
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.anonymous import AnonymousInodes
from wasmsand.kernel.files.device import PTY_MAJOR, device_number
from wasmsand.kernel.files.epoll import WatchAccount
from wasmsand.kernel.files.locks import FileLocks
from wasmsand.kernel.files.pipe import Pipe, PipeAccount
from wasmsand.kernel.files.table import FdTable
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.files.timer import TimerFile
from wasmsand.kernel.flags import S_IFCHR
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import (
    NOTICED_JOBS_MAX,
    NOTICES_PER_JOB_MAX,
    TERMINAL_COST,
    TERMINALS_MAX,
    Limits,
)
from wasmsand.kernel.proc_source import KernelProcSource
from wasmsand.kernel.process.delivery import SI_KERNEL, post, signal_group
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.life import exit_process
from wasmsand.kernel.process.load import LoadAverages
from wasmsand.kernel.process.process import Process, ResourceUsage
from wasmsand.kernel.process.program import argument_cost
from wasmsand.kernel.process.rlimits import ResourceLimits
from wasmsand.kernel.process.room import require_room
from wasmsand.kernel.process.signals import Signal, SignalInfo
from wasmsand.kernel.process.table import INIT_PID, ProcessTable
from wasmsand.kernel.process.thread import ProcessState, Thread
from wasmsand.kernel.sockets.network import Network
from wasmsand.kernel.sockets.outside import Outside
from wasmsand.kernel.vfs import ROOT, Namespace, Node, ProcFs, TreeFs
from wasmsand.kernel.vfs.image_data import ImageData

log = logging.getLogger("wasmsand.kernel")


def _nothing() -> None:
    pass


def _ignore_time(_: int) -> None:
    pass


def _ignore_process(_: Process) -> None:
    pass


class Kernel:
    """The kernel of one sandbox."""

    def __init__(
        self,
        root: TreeFs,
        limits: Limits,
        *,
        clock: Clock | None = None,
        hostname: bytes = b"sandbox",
        outside: Outside | None = None,
    ) -> None:
        self.limits = limits
        self.ledger = Ledger(limits.memory_limit_bytes)
        self.clock = clock or Clock()
        self.hostname = hostname
        self.root = root
        self.namespace = Namespace(root)
        self.processes = ProcessTable(limits.max_processes, self.ledger)
        self.terminals: dict[int, Terminal] = {}
        self.locks = FileLocks(self.ledger)
        self.pipes = PipeAccount(self.ledger)
        self.watches = WatchAccount(self.ledger)
        self.anonymous = AnonymousInodes(self.clock)
        self.network = Network(self.pipes, self.anonymous, self.namespace, outside)
        self.timer_files: Deadlines[TimerFile] = Deadlines()
        """Armed timers of timerfd_create."""
        self.fifos: dict[Node, Pipe] = {}
        self.usage_of_ended = ResourceUsage()
        """The resource usage of all reaped processes."""
        self._load = LoadAverages()
        self.out_of_memory_jobs: set[int] = set()
        """Commands that lost a process because memory ran out; the host reports them."""
        self.job_notices: dict[int, dict[str, None]] = {}
        """By command: what the host reports to its user (see `notice`)."""
        self.ended_for_room = 0
        """How many processes were ended to make room; the host reports the number and resets it."""
        self.current: Thread | None = None
        """The thread whose system call is being served (for /proc/self)."""

        self.interrupt: Callable[[], None] = _nothing
        """Hook: interrupt computing guests, so that they soon notice changes to their process."""
        self.timer_armed: Callable[[int], None] = _ignore_time
        """Hook: call `fire_timers` at this monotonic time."""
        self.process_ended: Callable[[Process], None] = _ignore_process
        """Hook: a process has become a zombie, or was reaped at once."""

        self.content_wanted: Callable[[ImageData], None] | None = None
        """Hook: a guest opens a file whose content was not loaded yet. It may raise `OutsideWait`
        while the content is fetched."""

        self.random: Callable[[int], bytes] = os.urandom
        """The source of random bytes for guests."""
        self.checkpoint_reached: Callable[[Process, Any], None] | None = None
        """Hook: a process has prepared itself and calls `checkpoint`. The second argument is the
        engine's instance, which is opaque to the kernel. None: this kernel stores no programs."""

        self.init = self._make_init()
        self._mount_proc()

    @property
    def current_job(self) -> int | None:
        """The command whose system call is being served."""
        return None if self.current is None else self.current.process.job

    def notice(self, job: int | None, text: str) -> None:
        """Tell the user of a command something; each text is told once. The number of notices is
        bounded."""
        if job is None:
            return
        notices = self.job_notices.setdefault(job, {})
        if len(notices) < NOTICES_PER_JOB_MAX:
            notices[text] = None
        if len(self.job_notices) > NOTICED_JOBS_MAX:
            del self.job_notices[next(iter(self.job_notices))]

    def _make_init(self) -> Process:
        init = Process(
            self.processes.allocate_pid(),
            None,
            fds=FdTable(0),
            cwd=self.namespace.root,
            identity=Identity.of(0, 0),
            rlimits=ResourceLimits.of_sandbox(self.limits),
            start_ns=self.clock.boot_ns,
        )
        assert init.pid == INIT_PID
        init.name = b"init"
        init.first_thread.state = ProcessState.SLEEPING
        init.argv = (b"init",)
        self.processes.add(init)
        return init

    def _mount_proc(self) -> None:
        where = self.namespace.resolve(ROOT, self.namespace.root, b"/proc")
        self.namespace.mount(where, ProcFs(KernelProcSource(self), self.namespace), source=b"proc")

    def new_process(self, identity: Identity, cwd: Node, environ: tuple[bytes, ...]) -> Process:
        """Create a process for the host: a child of init, leader of its own Unix session."""
        require_room(self, None)
        process = Process(
            self.processes.allocate_pid(),
            self.init,
            fds=FdTable(self.limits.max_open_files, self.ledger),
            cwd=cwd,
            identity=identity,
            rlimits=ResourceLimits.of_sandbox(self.limits),
            start_ns=self.clock.monotonic(),
        )
        self.namespace.retain(cwd)
        process.environ = environ
        process.argument_cost = argument_cost((), environ)
        self.init.children[process.pid] = process
        self.processes.add(process)
        return process

    def exit(self, process: Process, status: int) -> None:
        """End a process (see `life.exit_process`)."""
        exit_process(self, process, status)

    def interrupt_if_computing(self, thread: Thread) -> None:
        """Interrupt a computing guest through the engine; a waiting one is woken by its queue."""
        if thread.state is ProcessState.RUNNING and thread is not self.current:
            self.interrupt()

    def kill_job(self, job: int) -> None:
        """End every process of a command."""
        for process in self.processes.job(job):
            self.exit(process, Signal.SIGKILL)

    def kill_all(self) -> None:
        """End every process."""
        for process in self.processes:
            if process.pid != INIT_PID:
                self.exit(process, Signal.SIGKILL)

    def is_crowded(self) -> bool:
        """Whether too few processes or too little memory are left for another command."""
        limits = self.limits
        return (
            self.processes.population * 4 > limits.max_processes * 3
            or self.ledger.room * 4 < limits.memory_limit_bytes
        )

    def memory_used(self) -> int:
        """Bytes in use that count against `memory_limit_bytes` (see `Ledger`)."""
        if not self.ledger.see():
            self.free_memory()
        return self.ledger.charged

    def usage(self) -> ResourceUsage:
        """The resource usage of all processes since the sandbox was created. For a computing
        process it is as old as its last tick."""
        total = ResourceUsage()
        total.add(self.usage_of_ended)
        for process in self.processes:
            total.add(process.usage)
        return total

    def load_averages(self) -> tuple[float, float, float]:
        """The average number of computing processes over 1, 5 and 15 minutes."""
        usage = self.usage()
        return self._load.averages(self.clock.uptime(), usage.user_ns + usage.system_ns)

    def end_largest(self) -> Process | None:
        """Out of memory: end the process that uses the most, like Linux's OOM killer."""
        living = [(p.memory.total, p) for p in self.processes if p.memory is not None]
        if not living:
            return None
        _, largest = max(living, key=lambda entry: entry[0])
        self.out_of_memory_jobs.add(largest.job)
        self.exit(largest, Signal.SIGKILL)
        return largest

    def free_memory(self) -> None:
        """End processes until the memory limit holds."""
        if self.ledger.room < 0:
            self.ledger.look_at_pages()
        while self.ledger.room < 0:
            victim = self.end_largest()
            if victim is None:
                return
            log.debug(  # the command's user gets a notice
                "out of memory (%d bytes); ended %r; raise memory_limit_bytes",
                self.limits.memory_limit_bytes,
                victim,
            )

    def new_terminal(self, uid: int, gid: int) -> Terminal:
        """Create a pseudo-terminal with the lowest free number, and its /dev/pts entry."""
        index = next((i for i in range(TERMINALS_MAX) if i not in self.terminals), None)
        if index is None:
            raise KernelError(Errno.ENOSPC, f"limit of {TERMINALS_MAX} terminals reached")
        self.ledger.require(TERMINAL_COST)
        namespace = self.namespace
        device = device_number(PTY_MAJOR, index)
        node = namespace.mknod(
            ROOT, namespace.root, b"/dev/pts/%d" % index, S_IFCHR | 0o620, device
        )
        namespace.chown(ROOT, node, uid, gid)
        terminal = Terminal(
            index, device, namespace, node, self._signal_group, self._terminal_gone, self.ledger
        )
        self.terminals[index] = terminal
        return terminal

    def _signal_group(self, group: int, signo: int) -> None:
        signal_group(self, group, signo)

    def _terminal_gone(self, terminal: Terminal) -> None:
        self.terminals.pop(terminal.index, None)
        try:
            self.namespace.unlink(ROOT, self.namespace.root, b"/dev/pts/%d" % terminal.index)
        except KernelError:
            pass  # a guest with root rights may have removed it
        leader = self.processes.find(terminal.session) if terminal.session else None
        if leader is not None:
            post(self, leader, SignalInfo(Signal.SIGHUP, SI_KERNEL))
            post(self, leader, SignalInfo(Signal.SIGCONT, SI_KERNEL))
