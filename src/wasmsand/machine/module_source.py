"""Where guests get the compiled modules of their programs.

Owns `ModuleSource`, which a guest needs to execute a program, and `ProgramRejected`. Rules: the
caller holds the sandbox's lock, and every method returns at once. `ModuleLoader` is the machine's
source; a driver that compiles in another way provides its own.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand.engine.protocol import Engine, Instance, Module
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread


class ProgramRejected(KernelError):
    """A WebAssembly file cannot run here, or not now (EAGAIN). The message names the file and the
    reason."""

    def __init__(self, program: Program, reason: str, errno: Errno = Errno.ENOEXEC) -> None:
        path = program.path.decode("utf-8", "replace")
        super().__init__(errno, f"{path}: {reason}")


class ModuleSource(Protocol):
    """The compiled modules of one sandbox's programs."""

    engine: Engine

    def module(self, thread: Thread, program: Program) -> Module:
        """The module that `thread` is about to run.

        Raises `WouldBlock` until the module is compiled; raises `ProgramRejected`. A thread that
        does not retry must call `abandon`.
        """

    def shared_bytes(self, program: Program) -> int:
        """How much of the memory of a new instance is shared with others until it is written."""

    def abandon(self, thread: Thread) -> None:
        """The thread has ended, possibly while it waited for a module."""

    def instantiate(self, program: Program, module: Module, memory_limit: int) -> Instance:
        """A new instance of the program's module, with the memory that it starts with. Raises as
        `protocol.Module.instantiate` does."""
