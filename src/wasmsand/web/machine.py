"""A sandbox's machine in a JavaScript host.

Owns `WebMachine`: kernel, files and guests without threads. Rules: every method returns at once.
What takes longer ends with a call of a function that the caller gave. After each entry from
JavaScript, `Loop.settle` runs what became ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from wasmsand.abi.wasi.table import HOST_FUNCTIONS
from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.kernel.clock import SECOND, Clock
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput, CommandOutput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import S_IFDIR, S_IFMT
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program, become, find_program, require_arguments
from wasmsand.kernel.process.signals import Signal
from wasmsand.kernel.process.timers import fire_timers
from wasmsand.kernel.vfs import FrozenTree, TreeFs
from wasmsand.kernel.wait import WouldBlock
from wasmsand.machine.command import (
    STDERR,
    STDIN,
    STDOUT,
    TIMEOUT_EXIT_CODE,
    CapturedOutput,
    CommandRequest,
    Completed,
    Ended,
    exit_code_of,
    guest_bytes,
    guest_environment,
)
from wasmsand.machine.guest import Guest
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.program_start import start_program
from wasmsand.web.host import WebHost
from wasmsand.web.loop import Loop
from wasmsand.web.modules import WebModules

USER_ID: Final = 1000
_USERS_GROUP: Final = 100
_SEARCH_PATH: Final = b"/usr/local/bin:/usr/bin:/bin"
_PIPE_MODE: Final = 0o010600


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

    def run(self, request: CommandRequest, done: Callable[[Completed | Exception], None]) -> None:
        """Run a command; `done` gets its result, or the error that prevented its start."""
        _Command(self, request, done)
        self.loop.settle()

    def make_process(
        self, request: CommandRequest, files: Mapping[int, OpenFile], on_end: Callable[[], None]
    ) -> Process:
        """Create a process for the requested program, and run it. Raises `KernelError`, and
        `WouldBlock` if its module is being fetched: then call again."""
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
        for number, file in files.items():
            process.fds.replace(number, file)
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


class _Command:
    """A command whose output is captured until it ends."""

    def __init__(
        self,
        machine: WebMachine,
        request: CommandRequest,
        done: Callable[[Completed | Exception], None],
    ) -> None:
        self._machine = machine
        self._request = request
        self._done = done
        self._began = machine.kernel.clock.monotonic()
        self._output = CapturedOutput(machine.kernel.limits.max_output_bytes)
        self._process: Process | None = None
        self._timed_out = False
        self._ended_ns: int | None = None
        self._open = 2
        identity = machine.identity
        pipe = partial(machine.kernel.anonymous.new, _PIPE_MODE, identity.uid, identity.gid)
        self._files: dict[int, OpenFile] = {
            STDIN: CommandInput(request.stdin or b"", pipe),
            STDOUT: CommandOutput(STDOUT, self, pipe),
            STDERR: CommandOutput(STDERR, self, pipe),
        }
        self._waits: WouldBlock | None = None
        self._is_over = False
        self._launch()

    def _launch(self) -> None:
        machine = self._machine
        if self._waits is not None:
            for queue in self._waits.queues:
                queue.remove(self._relaunch)
            self._waits = None
        try:
            self._process = machine.make_process(self._request, self._files, self._ended)
        except WouldBlock as block:
            self._waits = block
            for queue in block.queues:
                queue.add(self._relaunch)
        except KernelError as error:
            self._is_over = True
            self._done(error)
        else:
            # The time for fetching and compiling does not count.
            self._began = machine.kernel.clock.monotonic()
            if self._request.timeout_seconds is not None:
                deadline = self._began + int(self._request.timeout_seconds * SECOND)
                machine.loop.at(deadline, self._expire)

    def _relaunch(self) -> None:
        self._machine.loop.soon(self._launch)

    def _expire(self) -> None:
        if self._process is not None and self._ended_ns is None:
            self._timed_out = True
            self._machine.kernel.kill_job(self._process.job)

    def _ended(self) -> None:
        self._ended_ns = self._machine.kernel.clock.monotonic()
        self._machine.loop.not_at(self._expire)
        # Output that is on its way: children may still write for a moment.
        if self._open:
            self._machine.loop.at(self._ended_ns + SECOND // 10, self._finish)
        else:
            self._machine.loop.soon(self._finish)

    def _finish(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._machine.loop.not_at(self._finish)
        for file in self._files.values():
            if isinstance(file, CommandOutput):
                file.detach()
        process, ended_ns = self._process, self._ended_ns
        assert process is not None
        assert ended_ns is not None
        code = TIMEOUT_EXIT_CODE if self._timed_out else exit_code_of(process.exit_status)
        seconds = (ended_ns - self._began) / SECOND
        self._done(self._output.completed(Ended(code, self._timed_out, seconds)))

    # OutputSink.

    def printed(self, fd: int, data: bytes) -> None:
        """See `OutputSink`."""
        self._output.keep(fd, data)
        if self._output.truncated and self._process is not None:
            self._machine.kernel.kill_job(self._process.job)

    def output_closed(self) -> None:
        """See `OutputSink`."""
        self._open -= 1
        if not self._open and self._ended_ns is not None:
            self._machine.loop.soon(self._finish)
