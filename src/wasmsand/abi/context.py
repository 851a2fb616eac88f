"""What every call of a guest works on, whichever ABI it belongs to.

Owns `ProcessContext`, and the exception by which a call leaves the guest for good. Rules: a
handler runs with the sandbox's lock held, and may raise `KernelError`, `WouldBlock` or a
`GuestUnwind`; anything else is a bug of ours. A handler that raised `WouldBlock` is called
again with the same arguments, so it must not have acted, or must keep its progress in
`thread.call` (see `CallState`).
"""

from __future__ import annotations

from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.protocol import GuestUnwind
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import Thread


class ProcessEnded(GuestUnwind):
    """The calling process is dead: its thread must stop running it."""


class ProcessContext:
    """The caller: its process and thread, its memory, its kernel."""

    kernel: Kernel
    process: Process
    thread: Thread
    """The one of the process's threads that calls."""
    memory: GuestMemory

    def end(self, status: int) -> int:
        """Exit with a wait status; returns only for an embryo (its pid)."""
        raise NotImplementedError

    def cpu_time_ns(self) -> int:
        """CPU time of the calling process until now."""
        raise NotImplementedError
