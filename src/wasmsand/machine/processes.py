"""The sandbox's processes as the host lists and signals them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.delivery import kill
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.table import INIT_PID

if TYPE_CHECKING:
    from wasmsand.machine.host_access import HostedMachine


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process."""

    pid: int
    parent_pid: int
    job: int
    argv: tuple[bytes, ...]
    state: str
    memory_bytes: int
    cpu_ns: int


def list_processes(machine: HostedMachine) -> list[ProcessEntry]:
    """Every process except init, sorted by pid."""
    with machine.lock:
        entries = [
            ProcessEntry(
                process.pid,
                process.parent.pid if process.parent is not None else 0,
                process.job,
                process.argv,
                process.state.value,
                process.memory_bytes,
                process.usage.user_ns + process.usage.system_ns,
            )
            for process in machine.kernel.processes
            if process.pid != INIT_PID
        ]
    return sorted(entries, key=lambda entry: entry.pid)


def end_process(machine: HostedMachine, pid: int) -> bool:
    """End a process or, if the host started it, every process of its command, even if it has ended
    itself. False if there is none."""
    with machine.lock:
        kernel = machine.kernel
        command = [process for process in kernel.processes.job(pid) if not process.dead]
        process = kernel.processes.find(pid)
        if pid <= INIT_PID or not (command or (process is not None and not process.dead)):
            return False
        if command:
            kernel.kill_job(pid)
        else:
            kill(kernel, kernel.init, pid, Signal.SIGKILL)
        return True


def send_signal(machine: HostedMachine, pid: int, number: int) -> None:
    """kill(2) as root, for one process."""
    if pid <= INIT_PID:
        raise KernelError(Errno.ESRCH, f"pid {pid}")
    with machine.lock:
        kill(machine.kernel, machine.kernel.init, pid, number)
