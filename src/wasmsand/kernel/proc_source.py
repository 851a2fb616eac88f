"""What /proc shows, gathered from the kernel.

Owns the translation from processes and limits to the records of `ProcSource`. Rules: read-only;
nothing is cached, except the boot id.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.files.regular import NodeFile
from wasmsand.kernel.limits import PID_MAX
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.rlimits import COUNT
from wasmsand.kernel.process.thread import CPU_COUNT, ProcessState, Thread
from wasmsand.kernel.vfs import FdInfo, ProcessFacts, Stat, SystemInfo

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

OS_RELEASE: Final = b"6.1.0-wasmsand"
OS_VERSION: Final = b"#1 wasmsand"


class KernelProcSource:
    """Implements `ProcSource` for a kernel."""

    __slots__ = ("_boot_id", "_kernel")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._boot_id = b""

    def self_pid(self) -> int:
        """The pid of the process whose call is being served."""
        current = self._kernel.current
        return current.process.pid if current is not None else 0

    def pids(self) -> Sequence[int]:
        """All pids."""
        return sorted(process.pid for process in self._kernel.processes)

    def self_tid(self) -> int:
        """The tid of the thread whose call is being served."""
        current = self._kernel.current
        return current.tid if current is not None else 0

    def _find(self, pid: int) -> Process | None:
        """The process with this pid, or with a thread with this tid."""
        table = self._kernel.processes
        found = table.find(pid)
        if found is None:
            thread = table.find_thread(pid)
            return None if thread is None else thread.process
        return found

    def process_info(self, pid: int) -> ProcessFacts | None:
        """One process, or one thread."""
        process = self._kernel.processes.find(pid)
        return self.thread_info(pid) if process is None else self._info(process, process, pid)

    def thread_info(self, tid: int) -> ProcessFacts | None:
        """One thread."""
        table = self._kernel.processes
        thread = table.find_thread(tid)
        if thread is not None:
            return self._info(thread.process, thread, tid)
        process = table.find(tid)  # a zombie, or a process whose first thread has ended
        return None if process is None else self._info(process, process, tid)

    def _info(self, process: Process, shown: Process | Thread, pid: int) -> ProcessFacts:
        """`shown` is the process or one of its threads; it provides name, state, start time and
        signals."""
        identity, signals, terminal = process.identity, shown.signals, process.terminal
        return ProcessFacts(
            pid=pid,
            ppid=process.parent.pid if process.parent else 0,
            pgid=process.group,
            sid=process.session,
            name=shown.name,
            state=shown.state.value,
            cmdline=() if process.dead else process.argv,
            environ=() if process.dead else process.environ,
            exe_path=process.executable,
            cwd=None if process.dead else process.cwd,
            root=self._kernel.namespace.root,
            uids=(identity.uid, identity.euid, identity.suid),
            gids=(identity.gid, identity.egid, identity.sgid),
            groups=sorted(identity.groups),
            umask=process.umask,
            tty=terminal.device if terminal else 0,
            tty_pgid=terminal.foreground_group if terminal else -1,
            start_time_ns=shown.start_ns - self._kernel.clock.boot_ns,
            user_time_ns=process.usage.user_ns,
            system_time_ns=process.usage.system_ns,
            children_user_time_ns=process.children_usage.user_ns,
            children_system_time_ns=process.children_usage.system_ns,
            memory_bytes=process.memory_bytes,
            memory_peak_bytes=process.usage.max_memory,
            memory_share=process.memory_bytes / self._kernel.limits.memory_limit_bytes,
            children=sorted(process.children),
            threads=[thread.tid for thread in process.threads],
            tgid=process.pid,
            nice=process.nice,
            exit_code=process.exit_status,
            signals_pending=signals.pending,
            signals_blocked=signals.mask,
            signals_ignored=signals.ignored_set(),
            signals_caught=signals.caught_set(),
            rlimits={
                r: (process.rlimits.get(r).soft, process.rlimits.get(r).hard) for r in range(COUNT)
            },
        )

    def fds(self, pid: int) -> Sequence[int]:
        """The fds of a process."""
        process = self._find(pid)
        return list(process.fds) if process is not None else []

    def fd_info(self, pid: int, fd: int) -> FdInfo | None:
        """One fd."""
        process = self._find(pid)
        if process is None:
            return None
        file = process.fds.find(fd)
        if file is None:
            return None
        node = file.node
        position = 0
        if isinstance(file, NodeFile):
            position = file.position
        if node is not None:
            try:
                text = self._kernel.namespace.path_of(node)
            except KernelError:
                text = b"/ (deleted)"
        elif file.kind == "tty":
            text = b"/dev/pts/%d" % (file.stat().rdev & 0xFF)
        elif file.kind.startswith("anon_inode"):
            text = file.kind.encode()
        else:
            text = b"%s:[%d]" % (file.kind.encode(), file.stat().ino)
        return FdInfo(text, node, file.flags, position)

    def fd_stat(self, pid: int, fd: int) -> Stat | None:
        """fstat of an fd without an inode."""
        process = self._find(pid)
        file = process.fds.find(fd) if process is not None else None
        return file.stat() if file is not None else None

    def system_info(self) -> SystemInfo:
        """The whole system."""
        kernel = self._kernel
        total = kernel.limits.memory_limit_bytes
        uptime = kernel.clock.uptime()
        usage = kernel.usage()
        return SystemInfo(
            memory_total_bytes=total,
            memory_free_bytes=max(0, total - kernel.memory_used()),
            cpu_count=CPU_COUNT,
            uptime_ns=uptime,
            boot_time_s=(kernel.clock.realtime() - uptime) // SECOND,
            load=kernel.load_averages(),
            running=sum(1 for p in kernel.processes if p.state is ProcessState.RUNNING),
            processes=len(kernel.processes),
            last_pid=kernel.processes.last_pid,
            user_time_ns=usage.user_ns,
            system_time_ns=usage.system_ns,
            forks=kernel.processes.created,
            hostname=kernel.hostname,
            os_release=OS_RELEASE,
            version=OS_VERSION,
            boot_id=self._boot(),
            pid_max=PID_MAX,
            processes_max=kernel.limits.max_processes,
        )

    def _boot(self) -> bytes:
        """A random id of this sandbox run, chosen on first use."""
        if not self._boot_id:
            self._boot_id = self.random_uuid()
        return self._boot_id

    def mounts_text(self) -> bytes:
        """The lines of /proc/mounts."""
        return self._kernel.namespace.mounts_text()

    def random_uuid(self) -> bytes:
        """A new random UUID."""
        return str(uuid.uuid4()).encode()
