"""The process table.

Owns pids, and queries about groups and sessions. Rules: pid 1 is the kernel's init, which has no
program and reaps orphans at once. A pid is free again after the process was waited for, if no
group, session or command uses its number. Processes and threads are charged to the sandbox's
ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.ledger import Ledger
from wasmsand.kernel.limits import PID_MAX, PROCESS_COST, THREAD_COST
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import Thread

INIT_PID: Final = 1


class ProcessTable:
    """All processes of a sandbox, by pid."""

    __slots__ = (
        "_ledger",
        "_processes",
        "_threads",
        "_wrapped",
        "created",
        "last_pid",
        "maximum",
    )

    def __init__(self, maximum: int, ledger: Ledger | None = None) -> None:
        self.maximum = maximum
        self._ledger = ledger or Ledger()
        self._processes: dict[int, Process] = {}
        self._threads: dict[int, Thread] = {}
        """Threads other than the first of their process, by tid."""
        self.last_pid = 0
        self.created = 0
        """How many processes were ever added."""
        self._wrapped = False

    def allocate_pid(self) -> int:
        """The next free pid; EAGAIN at the process limit."""
        self.require_room()
        processes, threads = self._processes, self._threads
        pid = self.last_pid
        while True:
            pid += 1
            if pid > PID_MAX:
                pid = INIT_PID + 1
                self._wrapped = True
            if pid not in processes and pid not in threads and not self._is_in_use(pid):
                self.last_pid = pid
                return pid

    def require_room(self) -> None:
        """EAGAIN if no further process or thread may exist (init does not count)."""
        if self.population >= self.maximum:
            raise KernelError(Errno.EAGAIN, f"{self.maximum} processes exist; raise max_processes")
        self._ledger.require(PROCESS_COST)

    @property
    def population(self) -> int:
        """The number of processes and further threads, at most `maximum`."""
        return len(self._processes) + len(self._threads) - 1

    def _is_in_use(self, number: int) -> bool:
        # Old numbers can only be in use after the pids have wrapped around.
        return self._wrapped and any(
            number in (p.group, p.session, p.job) for p in self._processes.values()
        )

    def add(self, process: Process) -> None:
        """Add a new process."""
        if process.pid != INIT_PID:
            self._ledger.add_object(PROCESS_COST + process.argument_cost)
        self._processes[process.pid] = process
        self.created += 1

    def add_again(self, process: Process) -> None:
        """Add a process that comes from another sandbox and keeps its pid."""
        self.add(process)
        self.last_pid = max(self.last_pid, process.pid)

    def remove(self, process: Process) -> None:
        """Remove a reaped process."""
        if self._processes.pop(process.pid, None) is not None:
            self._ledger.drop_object(PROCESS_COST + process.argument_cost)

    def add_thread(self, thread: Thread) -> None:
        """Add a further thread of a process."""
        self._ledger.add_object(THREAD_COST)
        self._threads[thread.tid] = thread

    def remove_thread(self, thread: Thread) -> None:
        """Remove a further thread that has ended. No effect for the first thread of a process."""
        if self._threads.pop(thread.tid, None) is not None:
            self._ledger.drop_object(THREAD_COST)

    def find_thread(self, tid: int) -> Thread | None:
        """The living thread with this tid, or None."""
        process = self._processes.get(tid)
        if process is None:
            return self._threads.get(tid)
        return next((thread for thread in process.threads if thread.tid == tid), None)

    def find(self, pid: int) -> Process | None:
        """The process with this pid, or None."""
        return self._processes.get(pid)

    def get(self, pid: int) -> Process:
        """The process with this pid; ESRCH if there is none."""
        process = self._processes.get(pid)
        if process is None:
            raise KernelError(Errno.ESRCH, f"pid {pid}")
        return process

    def group(self, group: int) -> list[Process]:
        """The members of a process group."""
        return [p for p in self._processes.values() if p.group == group]

    def session(self, session: int) -> list[Process]:
        """The members of a session."""
        return [p for p in self._processes.values() if p.session == session]

    def count_of_user(self, uid: int) -> int:
        """How many processes a user has, counting each thread."""
        return sum(
            max(1, len(p.threads)) for p in self._processes.values() if p.identity.uid == uid
        )

    def job(self, job: int) -> list[Process]:
        """All processes of a command that the host started."""
        return [p for p in self._processes.values() if p.job == job]

    def is_orphaned(self, group: int) -> bool:
        """Whether no member has a parent in another group of the same session."""
        for process in self.group(group):
            parent = process.parent
            if (
                not process.dead
                and parent is not None
                and parent.group != group
                and parent.session == process.session
            ):
                return False
        return True

    def __iter__(self) -> Iterator[Process]:
        return iter(list(self._processes.values()))

    def __len__(self) -> int:
        return len(self._processes)
