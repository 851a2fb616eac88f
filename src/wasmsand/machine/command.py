"""One command of the host: start a process, capture its output, end it in time.

Owns `Completed` and `run_command`. Rules: the result is returned when the started
process has ended; what it left in the background goes on, its output is then
dropped, and it is ended when it leaves no room for further commands; a timeout, an
output overflow or an exception in the caller ends everything the command started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.files.command_files import CommandInput, CommandOutput
from wasmsand.kernel.flags import S_IFIFO
from wasmsand.kernel.process.room import end_largest_detached
from wasmsand.kernel.process.signals import Signal
from wasmsand.machine.launch import Launch
from wasmsand.machine.parking import OneShot

if TYPE_CHECKING:
    from wasmsand.machine.guest import Guest
    from wasmsand.machine.machine import Machine

TIMEOUT_EXIT_CODE: Final = 124
_COMPILING: Final = (
    b"wasmsand: the program was still being compiled, which was ended; raise timeout_ms\n"
)
LINGER_SECONDS: Final = 0.05
"""How long to wait, after the process ended, for others that still hold its output: a
process substitution ends a moment later than the shell that started it."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left behind."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    """128 + the signal's number if a signal ended it; 124 on timeout."""
    timed_out: bool
    truncated: bool
    """Output reached max_output_bytes, which ended the command."""
    seconds: float


def exit_code_of(status: int) -> int:
    """A wait status as a shell's `$?`."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8 & 0xFF


class _Capture:
    """The output files of one command and the host's wait for its end."""

    def __init__(
        self,
        machine: Machine,
        uid: int,
        gid: int,
        on_stdout: Callable[[bytes], None] | None,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        self.ended = OneShot()
        self.closed = OneShot()
        self.overflowed = False
        self._open = 2
        inodes = machine.kernel.anonymous
        limit = machine.kernel.limits.max_output_bytes
        self.stdout = CommandOutput(
            limit,
            inodes.new(S_IFIFO | 0o600, uid, gid),
            on_data=on_stdout,
            on_overflow=self._overflow,
            on_close=self._one_closed,
        )
        self.stderr = CommandOutput(
            limit,
            inodes.new(S_IFIFO | 0o600, uid, gid),
            on_data=on_stderr,
            on_overflow=self._overflow,
            on_close=self._one_closed,
        )

    def _overflow(self) -> None:
        self.overflowed = True
        self.ended.set()

    def _one_closed(self) -> None:
        self._open -= 1
        if not self._open:
            self.closed.set()


def run_command(
    machine: Machine,
    argv: tuple[bytes, ...],
    environ: tuple[bytes, ...],
    cwd: bytes,
    stdin: bytes,
    timeout_seconds: float | None,
    on_stdout: Callable[[bytes], None] | None,
    on_stderr: Callable[[bytes], None] | None,
    on_started: Callable[[int], None] | None,
) -> Completed:
    """Start `argv`, wait for it, gather its output."""
    clock = machine.kernel.clock
    began = clock.monotonic()
    identity = machine.identity
    capture = _Capture(machine, identity.uid, identity.gid, on_stdout, on_stderr)
    source = CommandInput(
        stdin, machine.kernel.anonymous.new(S_IFIFO | 0o600, identity.uid, identity.gid)
    )
    deadline_ns = None if timeout_seconds is None else began + int(timeout_seconds * SECOND)
    files = {0: source, 1: capture.stdout, 2: capture.stderr}
    notices: list[str] = []

    def make() -> Guest:
        notices.extend(end_background_jobs(machine))
        return machine.make_process(
            argv, environ, cwd, files, capture.ended.set, deadline_ns=deadline_ns
        )

    launch = Launch(machine.kernel, make, partial(_settled, capture, on_started, machine))
    del make
    try:
        launch.begin(machine.engine, machine.lock)
        timed_out = not capture.ended.wait(clock, deadline_ns)
        if not timed_out and not capture.overflowed and not capture.closed.happened:
            capture.closed.wait(clock, clock.deadline(LINGER_SECONDS))
    except BaseException:  # the caller gave up (Ctrl-C): so does its command
        _give_up(machine, launch)
        raise
    process = launch.process
    if isinstance(launch.error, TimeoutError) or (process is None and launch.error is None):
        _give_up(machine, launch)
        seconds = (clock.monotonic() - began) / SECOND
        return Completed(b"", _COMPILING, TIMEOUT_EXIT_CODE, True, False, seconds)
    if process is None:
        assert launch.error is not None
        raise launch.error
    job = process.job
    if timed_out or capture.overflowed:
        machine.end_job(job)
    notices += end_background_jobs(machine)
    with machine.lock:
        capture.stdout.closed = capture.stderr.closed = True
    # Nobody adds to them any more, so that copying them needs no lock.
    stdout, stderr = bytes(capture.stdout.captured), bytes(capture.stderr.captured)
    notices += memory_notices(machine, job)
    if capture.overflowed:
        notices.append(
            f"output limit of {machine.kernel.limits.max_output_bytes} bytes reached, command "
            "ended; raise max_output_bytes"
        )
    stderr += b"".join(f"wasmsand: {notice}\n".encode() for notice in notices)
    if timed_out:
        exit_code = TIMEOUT_EXIT_CODE
    elif capture.overflowed:
        exit_code = 128 + Signal.SIGKILL
    else:
        exit_code = exit_code_of(process.exit_status)
    return Completed(
        stdout,
        stderr,
        exit_code,
        timed_out,
        capture.overflowed,
        (clock.monotonic() - began) / SECOND,
    )


def _settled(
    capture: _Capture, on_started: Callable[[int], None] | None, machine: Machine, launch: Launch
) -> None:
    """The process is made, or cannot be."""
    if launch.process is None:
        capture.ended.set()
        return
    if launch.given_up:
        machine.end_job(launch.process.job)
    elif on_started is not None:
        on_started(launch.process.job)


def _give_up(machine: Machine, launch: Launch) -> None:
    """Nobody wants the command any more, whether it runs already or not."""
    launch.given_up = True
    if launch.process is not None:
        machine.end_job(launch.process.job)


def memory_notices(machine: Machine, job: int) -> list[str]:
    """What to tell of a command of which a process was ended for memory."""
    with machine.lock:
        kernel = machine.kernel
        if job not in kernel.out_of_memory_jobs:
            return []
        kernel.out_of_memory_jobs.discard(job)
        return [
            f"out of memory ({kernel.limits.memory_limit_bytes} bytes), a process was ended; "
            "raise memory_limit_bytes"
        ]


def end_background_jobs(machine: Machine) -> list[str]:
    """Make room: end what commands left running (see `kernel/process/room.py`), the largest
    first, while the sandbox is so full that a further command would hardly run.

    Says what was done, since the last call.
    """
    with machine.lock:
        kernel = machine.kernel
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
