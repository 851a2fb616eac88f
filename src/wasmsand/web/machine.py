"""A sandbox's machine in a JavaScript host.

Owns `WebMachine`: kernel, files and guests without threads. Rules: every method returns at once.
What takes longer ends with a call of a function that the caller gave. After each entry from
JavaScript, `Loop.settle` runs what became ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wasmsand.abi.wasi.table import HOST_FUNCTIONS
from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.flags import S_IFDIR, S_IFMT
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.groups import take_terminal
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program, become, find_program, require_arguments
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.timers import fire_timers
from wasmsand.kernel.vfs import FrozenTree, TreeFs
from wasmsand.machine.command import CommandRequest, guest_bytes, guest_environment
from wasmsand.machine.files import SandboxFiles
from wasmsand.machine.guest import Guest
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.program_start import start_program
from wasmsand.web.host import WebHost
from wasmsand.web.loop import Loop
from wasmsand.web.modules import WebModules

USER_ID: Final = 1000
_USERS_GROUP: Final = 100
_SEARCH_PATH: Final = b"/usr/local/bin:/usr/bin:/bin"


class NoMounts:
    """A page has no directories of a host."""

    def look_again(self) -> None:
        """There is nothing to look at."""


class WebMachine:
    """One sandbox."""

    def __init__(
        self,
        host: WebHost,
        engine: JavaScriptEngine,
        image: FrozenTree,
        limits: Limits | None = None,
        hostname: str = "sandbox",
    ) -> None:
        limits = limits or Limits()
        clock = Clock()
        engine.offer(HOST_FUNCTIONS)
        self.engine = engine
        self.lock = SandboxLock()
        self.identity = Identity.of(USER_ID, USER_ID, frozenset({USER_ID, _USERS_GROUP}))
        self.loop = Loop(host, clock)
        self.modules = WebModules(engine, host)
        self.kernel = kernel = Kernel(
            TreeFs(image, limits, clock.realtime), limits, clock=clock, hostname=hostname.encode()
        )
        kernel.interrupt = self.loop.look_at_computing
        kernel.timer_armed = self._timer_armed
        kernel.process_ended = self._process_ended
        self._watchers: dict[int, Callable[[], None]] = {}
        self.closed = False
        self.mounts = NoMounts()
        self.files = SandboxFiles(self)  # type: ignore[arg-type]

    # Hooks of the kernel.

    def _timer_armed(self, when_ns: int) -> None:
        self.loop.at(when_ns, self._fire_timers)

    def _fire_timers(self) -> None:
        again = fire_timers(self.kernel)
        if again is not None:
            self._timer_armed(again)

    def _process_ended(self, process: Process) -> None:
        watcher = self._watchers.pop(process.pid, None)
        if watcher is not None:
            watcher()

    # Commands.

    def make_process(
        self,
        request: CommandRequest,
        open_files: Callable[[], Mapping[int, OpenFile]],
        on_end: Callable[[], None],
        *,
        terminal: Terminal | None = None,
    ) -> Process:
        """Create a process for the requested program, and run it. Raises `KernelError`, and
        `WouldBlock` if its module is being fetched: then call again. `open_files` makes its files,
        by descriptor."""
        argv = tuple([guest_bytes(word) for word in request.argv])
        environ = guest_environment(request.environ)
        kernel, namespace = self.kernel, self.kernel.namespace
        cwd = guest_bytes(request.cwd)
        directory = namespace.resolve(self.identity.credentials(), namespace.root, cwd)
        if namespace.stat(directory).mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, request.cwd)
        process = kernel.new_process(self.identity, directory, environ)
        thread = process.first_thread
        try:
            program = self._find(process, argv, environ)
            module = self.modules.module(thread, program)
            instance, memory = start_program(
                kernel, self.modules, process, program, module, of_host=True
            )
        except BaseException:
            kernel.exit(process, Signal.SIGKILL)
            raise
        for number, file in open_files().items():
            process.fds.replace(number, file)
        if terminal is not None:
            take_terminal(process, terminal)
        become(kernel, process, program)
        process.leave_memory(memory)
        self._watchers[process.pid] = on_end
        self.loop.add(Guest(kernel, self.modules, thread, instance, memory))
        return process

    def _find(
        self, process: Process, argv: tuple[bytes, ...], environ: tuple[bytes, ...]
    ) -> Program:
        name = argv[0]
        candidates = [name]
        if b"/" not in name:
            path = next((e[5:] for e in environ if e.startswith(b"PATH=")), _SEARCH_PATH)
            candidates = [d.rstrip(b"/") + b"/" + name for d in path.split(b":") if d]
        require_arguments(self.kernel, argv, environ)
        failure = KernelError(Errno.ENOENT, name.decode("utf-8", "replace"))
        for candidate in candidates:
            try:
                return find_program(self.kernel, process, process.cwd, candidate, argv, environ)
            except KernelError as error:
                if error.errno not in (Errno.ENOENT, Errno.ENOTDIR):
                    failure = error
        raise failure

    def notices(self, job: int) -> list[str]:
        """What the sandbox did to a command."""
        kernel, found = self.kernel, []
        if job in kernel.out_of_memory_jobs:
            kernel.out_of_memory_jobs.discard(job)
            limit = kernel.limits.memory_limit_bytes
            found.append(
                f"out of memory ({limit} bytes), a process was ended; raise memoryLimitBytes"
            )
        found += kernel.job_notices.pop(job, ())
        return found

    def close(self) -> None:
        """End every process."""
        self.closed = True
        self.kernel.kill_all()
        self.loop.settle()
