"""Creating the instance of a program, for a guest or for the host.

Owns `start_program`, for execve and for commands of the host, and `explain`. Rules: the caller
holds the sandbox's lock. Detached processes give way if there is no room. A program that cannot run
raises `ProgramRejected`, whatever the engine raises.
"""

from __future__ import annotations

from functools import partial

from wasmsand.engine.protocol import Instance, Module, ModuleRejected
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.room import with_room
from wasmsand.kernel.wait import WouldBlock
from wasmsand.machine.charging import make_program
from wasmsand.machine.module_source import ModuleSource, ProgramRejected


def start_program(
    kernel: Kernel,
    modules: ModuleSource,
    process: Process,
    program: Program,
    module: Module,
    *,
    replaced: MemoryAccount | None = None,
    of_host: bool = False,
) -> tuple[Instance, MemoryAccount]:
    """Create an instance of `module` for `process`, and its account. `replaced` is the account of
    the program that it replaces. `of_host`: the host starts the process.

    Raises `ProgramRejected`, and ENOMEM.
    """
    limit = process.rlimits.address_space
    make = partial(make_program, kernel, modules, program, module, limit, replaced)
    try:
        return with_room(kernel, None if of_host else process, make)
    except ModuleRejected as error:
        raise ProgramRejected(program, str(error)) from error


def explain(process: Process, rejected: ProgramRejected) -> None:
    """Explain the failure on standard error, as a dynamic linker does."""
    stderr = process.fds.find(2)
    if stderr is not None:
        try:
            stderr.require_writable()
            stderr.write(f"wasmsand: {rejected.detail}\n".encode())
        except (KernelError, WouldBlock):
            pass
