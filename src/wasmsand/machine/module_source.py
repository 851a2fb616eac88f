"""Where guests get the modules of their programs from.

Owns `ModuleSource`, which a guest needs to execute a program, and `ProgramRejected`. Rules: all
of it is called under the sandbox's lock and returns at once. `ModuleLoader` is the source of the
machine; a driver that compiles in another way brings its own.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand.engine.protocol import Engine, Instance, Module
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread


class ProgramRejected(KernelError):
    """A WebAssembly file is no program that can run here, or not now (EAGAIN); the message
    names it and says why."""

    def __init__(self, program: Program, reason: str, errno: Errno = Errno.ENOEXEC) -> None:
        path = program.path.decode("utf-8", "replace")
        super().__init__(errno, f"{path}: {reason}")


class ModuleSource(Protocol):
    """The compiled modules of one sandbox's programs."""

    engine: Engine

    def module(self, thread: Thread, program: Program) -> Module:
        """The module that `thread` is about to run.

        Raises `WouldBlock` until it is compiled, and `ProgramRejected`. A thread that does not
        come back calls `abandon`.
        """

    def abandon(self, thread: Thread) -> None:
        """The thread has ended, perhaps while it waited."""

    def instantiate(self, module: Module, memory_limit: int) -> Instance:
        """A fresh instance of a module. Raises as `protocol.Module.instantiate`."""
