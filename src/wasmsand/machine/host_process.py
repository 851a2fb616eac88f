"""Creating the processes that the host starts, for every kind of machine.

Owns `new_process`, from a request to a guest that does not run yet, and who the sandbox's user is.
Rules: the caller holds the sandbox's lock. A failure leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wasmsand.engine.protocol import Module
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.flags import S_IFDIR, S_IFMT
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import FD_COST
from wasmsand.kernel.process.groups import take_terminal
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program, become, find_program, require_arguments
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.thread import Thread
from wasmsand.machine.command import ROOT_USER, CommandRequest, guest_bytes, guest_environment
from wasmsand.machine.guest import Guest
from wasmsand.machine.module_source import ModuleSource
from wasmsand.machine.program_start import start_program

USER_ID: Final = 1000
_USERS_GROUP: Final = 100
"""The user also belongs to this group in /etc/group."""
USER: Final = Identity.of(USER_ID, USER_ID, frozenset({USER_ID, _USERS_GROUP}))
"""The sandbox's user."""
_ROOT: Final = Identity.of(0, 0, frozenset({0}))
_SEARCH_PATH: Final = b"/usr/local/bin:/usr/bin:/bin"
Load = Callable[[Thread, Program], Module]


def new_process(
    kernel: Kernel,
    modules: ModuleSource,
    request: CommandRequest,
    files: Mapping[int, OpenFile],
    *,
    load: Load,
    is_closed: Callable[[], bool],
    terminal: Terminal | None = None,
) -> Guest:
    """Create a process for the requested program with these files, by descriptor. `load` returns
    the program's module; it may release the lock while it waits, or raise `WouldBlock`. Raises what
    `load` raises, and `KernelError`."""
    argv = tuple([guest_bytes(word) for word in request.argv])
    environ = guest_environment(request.environ)
    cwd = guest_bytes(request.cwd)
    identity = _ROOT if request.user == ROOT_USER else USER
    namespace = kernel.namespace
    # Both calls may ask the host for a mounted directory, without the lock.
    directory = namespace.resolve(identity.credentials(), namespace.root, cwd)
    if namespace.stat(directory).mode & S_IFMT != S_IFDIR:
        raise KernelError(Errno.ENOTDIR, cwd.decode("utf-8", "replace"))
    if is_closed():  # nothing would ever end the process
        raise KernelError(Errno.ESRCH, "the machine was closed")
    most = kernel.limits.max_open_files
    if not 0 <= min(files) <= max(files) < most:
        raise KernelError(Errno.EMFILE, f"{most} files may be open; raise max_open_files")
    process = kernel.new_process(identity, directory, environ)
    thread = process.first_thread
    try:
        program = _find(kernel, process, argv, environ)
        if thread.dead:
            raise KernelError(Errno.EINTR, "the machine was closed")
        module = load(thread, program)
        kernel.ledger.require(sum(FD_COST + file.cost for file in files.values()))
        instance, memory = start_program(kernel, modules, process, program, module, of_host=True)
    except BaseException:  # also Ctrl-C in the calling thread
        kernel.exit(process, Signal.SIGKILL)
        modules.abandon(thread)
        raise
    for number, file in files.items():
        process.fds.replace(number, file)
    if terminal is not None:
        take_terminal(process, terminal)
    become(kernel, process, program)
    process.leave_memory(memory)
    return Guest(kernel, modules, thread, instance, memory)


def _find(
    kernel: Kernel, process: Process, argv: tuple[bytes, ...], environ: tuple[bytes, ...]
) -> Program:
    name = argv[0]
    if b"/" in name:
        candidates = [name]
    else:
        path = next((e[5:] for e in environ if e.startswith(b"PATH=")), _SEARCH_PATH)
        candidates = [d.rstrip(b"/") + b"/" + name for d in path.split(b":") if d]
    require_arguments(kernel, argv, environ)
    failure = KernelError(Errno.ENOENT, name.decode("utf-8", "replace"))
    for candidate in candidates:
        try:
            return find_program(kernel, process, process.cwd, candidate, argv, environ)
        except KernelError as error:
            if error.errno not in (Errno.ENOENT, Errno.ENOTDIR):
                failure = error
    raise failure
