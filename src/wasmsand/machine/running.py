"""The life of a command: launch, timeout, end, notices.

Owns `RunningCommand`, which is common to captured commands and to commands with streams (see
`streamed`), and `run_command`. Rules: a caller that gives up before the process exists does not
leave it behind. A timeout or too much output ends every process of the command. Processes that a
command leaves in the background keep running, but their output is dropped, and they are ended when
they leave no room for further commands.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput, CommandOutput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.flags import S_IFIFO
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.room import end_largest_detached
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
)
from wasmsand.machine.launch import Launch
from wasmsand.machine.parking import OneShot
from wasmsand.machine.uncounted import Deadline

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.thread_driver import ThreadDriver

LINGER_SECONDS: Final = 0.05
"""How long to wait, after the process has ended, for others that still hold its output: a
process substitution ends slightly later than its shell."""
PIPE_MODE: Final = S_IFIFO | 0o600
"""The mode that fstat shows for a command's standard files."""


class StillCompiling(KernelError):
    """The time was up before the program was compiled; the compilation was cancelled."""

    def __init__(self) -> None:
        super().__init__(
            Errno.ETIMEDOUT,
            "timed out while the program was being compiled; raise timeout_ms",
        )


class RunningCommand:
    """One command, from its launch to its end.

    Lives as long as its process, so it must not reference the machine, which must stay collectable.
    """

    __slots__ = (
        "_kernel",
        "_launch",
        "_lock",
        "_notices",
        "began_ns",
        "deadline",
        "ended_ns",
        "process",
        "timed_out",
    )

    def __init__(self, machine: Machine, request: CommandRequest) -> None:
        self._kernel: Kernel = machine.kernel
        self._lock = machine.lock
        self.began_ns = machine.kernel.clock.monotonic()
        end_ns: int | None = None
        if request.timeout_seconds is not None:
            end_ns = self.began_ns + int(request.timeout_seconds * SECOND)
        self.deadline = Deadline(machine.kernel.clock, machine.uncounted, end_ns)
        self._launch: Launch | None = None
        # Guarded by the lock:
        self.process: Process | None = None
        self.ended_ns: int | None = None
        self.timed_out = False
        self._notices: list[str] = []

    @abstractmethod
    def open_files(self, machine: Machine, request: CommandRequest) -> Mapping[int, OpenFile]:
        """The files with which the process starts, by descriptor. Called under the lock."""

    def drop_files(self, files: Mapping[int, OpenFile]) -> None:
        """The process was not created: dispose of `files`. Called under the lock."""
        for file in files.values():
            file.dispose()

    @abstractmethod
    def settled(self) -> None:
        """The process exists but does not run yet, or it could not be created."""

    @abstractmethod
    def process_ended(self) -> None:
        """The process has ended. Called under the lock."""

    def launch(
        self, machine: Machine, request: CommandRequest, until: OneShot, *, in_time: bool
    ) -> bool:
        """Start the program, and wait. True if `until` happens; False if, with `in_time`, the
        command's time is up before that."""
        launch = self._launch = Launch(
            partial(self._make, machine, request), partial(self._settled, machine)
        )
        try:
            launch.begin(machine.engine, machine.lock)
            if not in_time:
                return until.wait()
            while not until.wait(machine.kernel.clock, self.deadline.ns):
                if self.deadline.is_past:
                    return False
                until.wait(machine.kernel.clock, self.deadline.next_look_ns)
            return True
        except BaseException:  # the caller gave up (Ctrl-C): end its command
            self.give_up(machine)
            raise

    def _make(self, machine: Machine, request: CommandRequest) -> ThreadDriver:
        with machine.lock:
            self._notices += make_room(machine.kernel)
            files = self.open_files(machine, request)
        try:
            return machine.make_process(request, files, self._end, deadline=self.deadline)
        except BaseException:
            with machine.lock:
                self.drop_files(files)
            raise

    def _settled(self, machine: Machine, launch: Launch) -> None:
        process = self.process = launch.process
        if process is not None and launch.given_up:
            machine.end_job(process.job)
        self.settled()

    def started(self, machine: Machine) -> Process:
        """The process. Raises the error that prevented its creation, such as `StillCompiling`."""
        launch = self._launch
        assert launch is not None, "it was launched"
        if launch.process is not None:
            return launch.process
        error = launch.error
        if error is None or isinstance(error, TimeoutError):
            self.give_up(machine)
            raise StillCompiling
        raise error

    def give_up(self, machine: Machine) -> None:
        """End the command, or prevent its start: nobody wants it any longer."""
        launch = self._launch
        assert launch is not None, "it was launched"
        launch.given_up = True
        if launch.process is not None:
            machine.end_job(launch.process.job)

    def _end(self) -> None:
        self.ended_ns = self._kernel.clock.monotonic()
        self.process_ended()

    def expire(self) -> None:
        """The command's time is up: kill it."""
        with self._lock:
            if self.ended_ns is None and self.process is not None:
                self.timed_out = True
                self._kernel.kill_job(self.process.job)

    def ended(self) -> Ended:
        """How the command ended. Needs the lock; the command must have ended."""
        process, ended_ns = self.process, self.ended_ns
        assert process is not None, "it was started"
        if ended_ns is None:  # it was killed, but its thread has not stopped yet
            ended_ns = self._kernel.clock.monotonic()
        self._notices += self._new_notices(process.job)
        exit_code = TIMEOUT_EXIT_CODE if self.timed_out else exit_code_of(process.exit_status)
        seconds = (ended_ns - self.began_ns) / SECOND
        return Ended(exit_code, self.timed_out, seconds, tuple(self._notices))

    def take_notices(self) -> tuple[str, ...]:
        """The notices so far of a command that still runs, each once. Needs the lock."""
        if self.process is None or self.ended_ns is not None:
            return ()
        taken = (*self._notices, *self._new_notices(self.process.job))
        self._notices.clear()
        return taken

    @property
    def may_have_notices(self) -> bool:
        """Whether `take_notices` could return any. Needs no lock."""
        kernel = self._kernel
        return bool(self._notices or kernel.out_of_memory_jobs or kernel.job_notices)

    def _new_notices(self, job: int) -> list[str]:
        notices = _memory_notices(self._kernel, job)
        return [*notices, *self._kernel.job_notices.pop(job, ())]


class _CapturedCommand(RunningCommand):
    """A command whose output is captured until it ends."""

    __slots__ = ("_files", "_on_started", "_open", "is_over", "is_silent", "output")

    def __init__(
        self,
        machine: Machine,
        request: CommandRequest,
        on_started: Callable[[int], None] | None,
    ) -> None:
        super().__init__(machine, request)
        self._on_started = on_started
        self.is_over = OneShot()
        """Set when the process has ended, printed too much, or could not be created."""
        self.is_silent = OneShot()
        """Set when no process holds its outputs any longer."""
        # Guarded by the lock:
        self.output = CapturedOutput(machine.kernel.limits.max_output_bytes)
        self._files: tuple[CommandOutput, ...] = ()
        self._open = 0

    def open_files(self, machine: Machine, request: CommandRequest) -> Mapping[int, OpenFile]:
        """See `RunningCommand`."""
        identity = machine.identity
        pipe = partial(machine.kernel.anonymous.new, PIPE_MODE, identity.uid, identity.gid)
        stdout, stderr = CommandOutput(STDOUT, self, pipe), CommandOutput(STDERR, self, pipe)
        self._files = (stdout, stderr)
        self._open = 2
        return {STDIN: CommandInput(request.stdin or b"", pipe), STDOUT: stdout, STDERR: stderr}

    def settled(self) -> None:
        """See `RunningCommand`."""
        if self.process is None:
            self.is_over.set()
        elif self._on_started is not None:
            self._on_started(self.process.job)

    def process_ended(self) -> None:
        """See `RunningCommand`."""
        self.is_over.set()

    def printed(self, fd: int, data: bytes) -> None:
        """See `OutputSink`."""
        output = self.output
        output.keep(fd, data)
        if output.truncated:
            self.is_over.set()

    def output_closed(self) -> None:
        """See `OutputSink`."""
        self._open -= 1
        if not self._open:
            self.is_silent.set()

    def completed(self) -> Completed:
        """The command's result. Output written from now on is dropped."""
        with self._lock:
            for file in self._files:
                file.detach()
            self._notices += make_room(self._kernel)
            ended = self.ended()
        # The output is complete, so copying it needs no lock.
        return self.output.completed(ended)


def run_command(
    machine: Machine, request: CommandRequest, on_started: Callable[[int], None] | None = None
) -> Completed:
    """Run a command to its end and capture its output. `on_started` receives its job number (see
    `Machine.end_job`) when the process exists."""
    command = _CapturedCommand(machine, request, on_started)
    in_time = command.launch(machine, request, command.is_over, in_time=True)
    try:
        process = command.started(machine)
    except StillCompiling as late:
        seconds = (machine.kernel.clock.monotonic() - command.began_ns) / SECOND
        return command.output.completed(Ended(TIMEOUT_EXIT_CODE, True, seconds, (late.detail,)))
    if not in_time:
        machine.change(command.expire)
    elif command.output.truncated:
        machine.end_job(process.job)
    elif not command.is_silent.happened:
        try:
            clock = machine.kernel.clock
            command.is_silent.wait(clock, clock.deadline(LINGER_SECONDS))
        except BaseException:  # the caller gave up (Ctrl-C)
            command.give_up(machine)
            raise
    return command.completed()


def _memory_notices(kernel: Kernel, job: int) -> list[str]:
    """A notice, if a process of the command was ended for lack of memory. Needs the lock."""
    if job not in kernel.out_of_memory_jobs:
        return []
    kernel.out_of_memory_jobs.discard(job)
    return [
        f"out of memory ({kernel.limits.memory_limit_bytes} bytes), a process was ended; "
        "raise memory_limit_bytes"
    ]


def make_room(kernel: Kernel) -> list[str]:
    """End processes that earlier commands left running (see `kernel/process/room.py`), the largest
    first, while the sandbox is too full for another command. Needs the lock.

    Returns notices about the processes ended since the last call.
    """
    while kernel.is_crowded():
        ended = end_largest_detached(kernel)
        if not ended:
            break
        kernel.ended_for_room += ended
    ended, kernel.ended_for_room = kernel.ended_for_room, 0
    if not ended:
        return []
    return [
        f"ended {ended} background processes to make room; raise max_processes or "
        "memory_limit_bytes"
    ]
