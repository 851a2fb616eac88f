"""Making room: background processes give way to those that the host waits for.

Owns which processes are ended when there is no room or no memory for another one. Rules: a process
is detached if the processes through which the host started it have ended. Detached processes give
way to attached ones: all detached processes of one command are ended at once and under the lock, so
that none of them can fork meanwhile. They never give way to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.signals import Signal

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

Result = TypeVar("Result")


def is_detached(kernel: Kernel, process: Process) -> bool:
    """Whether the host started neither the process nor any of its ancestors below init."""
    init = kernel.init
    root = process
    while root.parent is not None and root.parent is not init:
        root = root.parent
    return root.pid != root.job


def end_largest_detached(kernel: Kernel) -> int:
    """End the detached processes of the command that has the most of them, counting threads.
    Returns the number of processes ended."""
    found: dict[int, list[Process]] = {}
    for process in kernel.processes:
        if process is not kernel.init and not process.dead and is_detached(kernel, process):
            found.setdefault(process.job, []).append(process)
    if not found:
        return 0
    victims = max(found.values(), key=lambda group: sum(len(p.threads) for p in group))
    for process in victims:
        kernel.exit(process, Signal.SIGKILL)
    return len(victims)


def require_room(kernel: Kernel, parent: Process | None) -> None:
    """EAGAIN if no further process or thread may exist, even after detached processes gave way to
    a child of `parent` (None: to a process that the host starts)."""
    with_room(kernel, parent, kernel.processes.require_room)


def with_room(kernel: Kernel, process: Process | None, attempt: Callable[[], Result]) -> Result:
    """Call `attempt`. While it fails for lack of processes or memory, end detached processes in
    favour of `process` (None: of a process that the host starts) and try again."""
    while True:
        try:
            return attempt()
        except KernelError as error:
            if error.errno not in (Errno.EAGAIN, Errno.ENOMEM):
                raise
            if process is not None and is_detached(kernel, process):
                raise
            ended = end_largest_detached(kernel)
            if not ended:
                raise
            kernel.ended_for_room += ended
