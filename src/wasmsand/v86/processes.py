"""Lists the processes that run in the guest.

Rules: only processes in the cgroups of commands are listed, so the kernel's own threads and the
agent are not; a process that ends meanwhile is left out; what /proc says is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.sdk.results import ProcessInfo
from wasmsand.v86 import linux
from wasmsand.v86.machine import BOX

if TYPE_CHECKING:
    from wasmsand.v86.agent import Agent

_TICKS_PER_SECOND: Final = 100
_PAGE: Final = 4096


def list_processes(agent: Agent) -> list[ProcessInfo]:
    """All processes of commands, sorted by pid. Raises `KernelError` and `MachineLost`."""
    found: list[ProcessInfo] = []
    fd = linux.open_file(agent, BOX, linux.O_DIRECTORY)
    try:
        names = linux.entries(agent, fd)
    finally:
        linux.close(agent, fd)
    for name in names:
        if name.startswith(b"c") and name[1:].isdigit():
            try:
                pids = linux.read_control(agent, BOX + b"/" + name + b"/cgroup.procs").split()
            except KernelError:
                continue
            numbers = [int(pid) for pid in pids if pid.isdigit()]
            found += [info for pid in numbers if (info := _info(agent, pid, min(numbers)))]
    return sorted(found, key=lambda info: info.pid)


def _info(agent: Agent, pid: int, command_pid: int) -> ProcessInfo | None:
    try:
        line = linux.read_control(agent, b"/proc/%d/stat" % pid)
        words = linux.read_control(agent, b"/proc/%d/cmdline" % pid)
    except KernelError:
        return None
    fields = line.rpartition(b")")[2].split()
    try:
        state, parent = fields[0].decode("ascii", "replace"), int(fields[1])
        ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
    except (IndexError, ValueError):
        return None
    argv = tuple(
        word.decode("utf-8", "surrogateescape") for word in words.removesuffix(b"\0").split(b"\0")
    )
    cpu_ms = ticks * 1000 / _TICKS_PER_SECOND
    return ProcessInfo(pid, parent, command_pid, argv, state, pages * _PAGE, cpu_ms)
