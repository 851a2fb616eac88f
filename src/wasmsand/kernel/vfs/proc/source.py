"""The interface from /proc to the kernel: `ProcSource` and its records.

Owns no behaviour. Rules: the kernel fills these records at the time of the call; /proc stores none
of them. Byte strings come from the guest, unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wasmsand.kernel.vfs.filesystem import Node
from wasmsand.kernel.vfs.model import Stat


@dataclass(frozen=True, slots=True)
class FdInfo:
    """One open descriptor of a process."""

    text: bytes
    """The target of /proc/PID/fd/N: a path, or `pipe:[123]`."""
    node: Node | None
    """The open object if it is in a file system; opening the link then opens it again. None for an
    anonymous object: the resolver then returns a node for which `Namespace.fd_reference` gives
    (pid, fd), and the kernel reopens the object."""
    flags: int = 0
    """The open flags, for fdinfo and for the link's permission bits."""
    position: int = 0


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One process as /proc shows it."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    name: bytes
    """comm: at most 15 bytes."""
    state: str = "S"
    """One letter: R running, S sleeping, T stopped, Z zombie."""
    cmdline: Sequence[bytes] = ()
    environ: Sequence[bytes] = ()
    exe_path: bytes = b""
    """The path of its program; empty for init."""
    cwd: Node | None = None
    root: Node | None = None
    uids: tuple[int, int, int] = (0, 0, 0)
    """Real, effective, saved."""
    gids: tuple[int, int, int] = (0, 0, 0)
    groups: Sequence[int] = ()
    umask: int = 0o022
    tty: int = 0
    """Device number of the controlling terminal; 0: none."""
    tty_pgid: int = -1
    start_time_ns: int = 0
    """Since boot."""
    user_time_ns: int = 0
    system_time_ns: int = 0
    children_user_time_ns: int = 0
    children_system_time_ns: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0
    memory_share: float = 0.0
    """The share of the sandbox's memory limit, from 0 to 1."""
    children: Sequence[int] = ()
    threads: Sequence[int] = ()
    """The tids; empty means only the pid."""
    tgid: int = 0
    """The process to which this thread belongs; 0 if this is not a thread."""
    nice: int = 0
    exit_code: int = 0
    signals_pending: int = 0
    signals_blocked: int = 0
    signals_ignored: int = 0
    signals_caught: int = 0
    rlimits: dict[int, tuple[int, int]] = field(default_factory=dict)
    """RLIMIT number to (soft, hard); -1 or a missing entry means unlimited."""


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """The whole system as /proc shows it."""

    memory_total_bytes: int
    memory_free_bytes: int
    cpu_count: int
    uptime_ns: int
    boot_time_s: int
    load: tuple[float, float, float] = (0.0, 0.0, 0.0)
    running: int = 1
    processes: int = 1
    last_pid: int = 1
    user_time_ns: int = 0
    """CPU time of all processes, including ended ones."""
    system_time_ns: int = 0
    forks: int = 0
    """Processes created since boot."""
    hostname: bytes = b"sandbox"
    os_release: bytes = b"6.1.0-wasmsand"
    version: bytes = b"#1 SMP"
    boot_id: bytes = b"00000000-0000-4000-8000-000000000000"
    pid_max: int = 32768
    processes_max: int = 32768


class ProcSource(Protocol):
    """The kernel as seen by /proc."""

    def self_pid(self) -> int:
        """The process whose system call is being served; 0 for the host."""

    def self_tid(self) -> int:
        """The thread whose system call is being served; 0 for the host."""

    def pids(self) -> Sequence[int]:
        """All pids in ascending order, including zombies."""

    def process_info(self, pid: int) -> ProcessFacts | None:
        """One process, or None."""

    def thread_info(self, tid: int) -> ProcessFacts | None:
        """One thread, or None. The only thread of a process has the process's record."""

    def fds(self, pid: int) -> Sequence[int]:
        """The open descriptors of a process, ascending; empty for a zombie."""

    def fd_info(self, pid: int, fd: int) -> FdInfo | None:
        """One open descriptor, or None."""

    def fd_stat(self, pid: int, fd: int) -> Stat | None:
        """fstat of a descriptor; used only if its `FdInfo.node` is None."""

    def system_info(self) -> SystemInfo:
        """The whole system."""

    def random_uuid(self) -> bytes:
        """A new version 4 UUID as text, without a newline."""
