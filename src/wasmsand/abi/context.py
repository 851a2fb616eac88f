"""What every guest call works on, in both ABIs.

Owns `ProcessContext`, and `ProcessEnded`, the exception by which a call ends the guest. Rules: a
handler runs with the sandbox's lock held and may raise `KernelError`, `WouldBlock` or a
`GuestUnwind`; any other exception is a bug. A handler that raised `WouldBlock` is called again with
the same arguments, so it must not have acted yet, or must keep its progress in `thread.call` (see
`CallState`).
"""

from __future__ import annotations

from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import GuestUnwind
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import Thread


class ProcessEnded(GuestUnwind):
    """The calling process is dead: its thread must stop running the program."""


class ProcessContext:
    """The caller: its process and thread, its memory, its kernel."""

    __deletable__ = ("memory",)  # for mypyc: the guest drops it at its end

    kernel: Kernel
    process: Process
    thread: Thread
    """The calling thread."""
    memory: GuestMemory

    def end(self, status: int) -> int:
        """Exit with a wait status. Returns only for an embryo: its pid."""
        raise NotImplementedError

    def cpu_time_ns(self) -> int:
        """CPU time used so far by the calling process."""
        raise NotImplementedError
