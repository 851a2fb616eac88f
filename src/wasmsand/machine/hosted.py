"""A program with streams: the host writes to it and reads from it while it runs.

Owns `HostProcess`. Rules: reading and writing wait on the calling thread, as at a pipe, and
never under the lock; the program waits when its output is not read; it has ended when its
first process has, and what that left in the background goes on. A `HostProcess` that nobody
holds any more drops further output, and its time limit still holds.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.output_channel import ChannelOutput, OutputChannel
from wasmsand.kernel.files.pipe import PipeEnd, make_pipe
from wasmsand.kernel.flags import S_IFIFO
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.command import (
    LINGER_SECONDS,
    TIMEOUT_EXIT_CODE,
    end_background_jobs,
    exit_code_of,
    memory_notices,
)
from wasmsand.machine.launch import Launch
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.parking import OneShot, Parker

if TYPE_CHECKING:
    from wasmsand.machine.guest import Guest
    from wasmsand.machine.machine import Machine

_LINGER_NS: Final = int(LINGER_SECONDS * SECOND)
_WRITE_STEP: Final = 65536


@dataclass(frozen=True, slots=True)
class HostedEnd:
    """How a program ended."""

    exit_code: int
    """128 + the signal's number if a signal ended it; 124 on timeout."""
    timed_out: bool
    seconds: float
    notices: tuple[str, ...]
    """What the machine did to it, for its user."""


class _Life:
    """What happens to the process; lives as long as it, or its `HostProcess`, does.

    Holds no machine: that must be collectable while its processes run.
    """

    def __init__(self, kernel: Kernel, lock: SandboxLock) -> None:
        self._kernel = kernel
        self._lock = lock
        # Guarded by the lock:
        self.process: Process | None = None
        self.channel = OutputChannel(kernel.ledger)
        self.inputs: dict[int, PipeEnd] = {}
        self.ended_ns: int | None = None
        self.ended = WaitQueue()
        self.timed_out = False
        self.forget_deadline: Callable[[], None] | None = None

    def end(self) -> None:
        """The process has ended; called under the lock."""
        self.ended_ns = self._kernel.clock.monotonic()
        if self.forget_deadline is not None:
            self.forget_deadline()
            self.forget_deadline = None
        for source in self.inputs.values():
            source.dispose()
        self.inputs.clear()
        self.ended.wake()
        self.channel.changed.wake()

    def fire_timers(self) -> None:
        """Its time is over."""
        with self._lock:
            if self.ended_ns is None and self.process is not None:
                self.timed_out = True
                self._kernel.kill_job(self.process.job)

    def abandon(self) -> None:
        """Nobody will read or write any more."""
        with self._lock:
            self.channel.abandon()
            for source in self.inputs.values():
                source.dispose()
            self.inputs.clear()


class HostProcess:
    """A running program, and the streams to and from it."""

    def __init__(
        self,
        machine: Machine,
        argv: tuple[bytes, ...],
        environ: tuple[bytes, ...],
        cwd: bytes,
        stdin: bytes | None,
        extra_inputs: Sequence[int],
        extra_outputs: Sequence[int],
        timeout_seconds: float | None,
    ) -> None:
        self._machine = machine
        clock = machine.kernel.clock
        self._began_ns = clock.monotonic()
        deadline = None
        if timeout_seconds is not None:
            deadline = self._began_ns + int(timeout_seconds * SECOND)
        life = self._life = _Life(machine.kernel, machine.lock)
        notices: list[str] = []

        def make() -> Guest:
            notices.extend(end_background_jobs(machine))
            with machine.lock:
                files = self._files(stdin, extra_inputs, extra_outputs)
            try:
                return machine.make_process(
                    argv, environ, cwd, files, life.end, deadline_ns=deadline
                )
            except BaseException:
                with machine.lock:
                    for file in (*files.values(), *life.inputs.values()):
                        file.dispose()
                raise

        process = _launched(machine, make)
        self._notices = tuple(notices)
        life.process = process
        self.pid = process.pid
        self._job = process.job
        if deadline is not None:
            with machine.lock:
                if life.ended_ns is None:
                    life.forget_deadline = machine.call_at(life, deadline)
        self._finalizer = weakref.finalize(self, _abandon, life, os.getpid())
        self._finalizer.atexit = False

    def _files(
        self, stdin: bytes | None, extra_inputs: Sequence[int], extra_outputs: Sequence[int]
    ) -> dict[int, OpenFile]:
        machine, life = self._machine, self._life
        extra = [*extra_inputs, *extra_outputs]
        if len({0, 1, 2, *extra}) != 3 + len(extra):
            raise KernelError(Errno.EINVAL, f"descriptors that are not distinct: {extra}")
        uid, gid = machine.identity.uid, machine.identity.gid
        kernel = machine.kernel
        stat = kernel.anonymous.new(S_IFIFO | 0o600, uid, gid)
        files: dict[int, OpenFile] = {}
        for fd in (1, 2, *extra_outputs):
            files[fd] = ChannelOutput(life.channel, fd, stat)
        if stdin is not None:
            files[0] = CommandInput(stdin, stat)
        for fd in (*(() if stdin is not None else (0,)), *extra_inputs):
            stat = kernel.anonymous.new(S_IFIFO | 0o600, uid, gid)
            files[fd], life.inputs[fd] = make_pipe(kernel.pipes, 0, stat)
        return files

    def now(self) -> float:
        """The time in seconds by the clock that measures timeouts."""
        return self._machine.kernel.clock.monotonic() / SECOND

    def read(self, timeout_seconds: float | None = None) -> tuple[tuple[int, bytes], ...]:
        """What was written since the last call, by descriptor, in order; waits for it.

        Empty when there will be no more. Raises `TimeoutError` when nothing came in time.
        """
        life, channel = self._life, self._life.channel
        deadline = self._deadline(timeout_seconds)
        parker = Parker(self._machine.lock, self._machine.kernel.clock)
        clock = self._machine.kernel.clock
        with self._machine.lock:
            while not channel.size:
                until = deadline
                if life.ended_ns is not None:
                    # Others may hold its output a moment longer, as a process substitution.
                    lingers_until = life.ended_ns + _LINGER_NS
                    if not channel.writers or clock.monotonic() >= lingers_until:
                        channel.abandon()
                        return ()
                    until = lingers_until if deadline is None else min(deadline, lingers_until)
                if deadline is not None and clock.monotonic() >= deadline:
                    raise TimeoutError
                parker.park((channel.changed,), until)
            return channel.take()

    def write(self, data: bytes, fd: int = 0, timeout_seconds: float | None = None) -> int:
        """Write to an input; waits while the program does not read. Returns how many bytes the
        input has taken: all of them, or those until `timeout_seconds` were over. EPIPE if nobody
        can read it any more, EBADF if it was closed."""
        life = self._life
        deadline = self._deadline(timeout_seconds)
        parker = Parker(self._machine.lock, self._machine.kernel.clock)
        clock = self._machine.kernel.clock
        done = 0
        with self._machine.lock:
            while done < len(data):
                source = life.inputs.get(fd)
                if source is None:
                    if life.ended_ns is not None:
                        raise KernelError(Errno.EPIPE, "the command has ended")
                    raise KernelError(Errno.EBADF, f"input {fd} is closed")
                try:
                    done += source.write(data[done : done + _WRITE_STEP])
                except WouldBlock as block:
                    if deadline is not None and clock.monotonic() >= deadline:
                        break
                    parker.park((*block.queues, life.ended), deadline)
        return done

    def close_input(self, fd: int = 0) -> None:
        """The end of an input; idempotent."""
        with self._machine.lock:
            source = self._life.inputs.pop(fd, None)
            if source is not None:
                source.dispose()

    def wait(self, timeout_seconds: float | None = None) -> HostedEnd | None:
        """How the program ended; None when it still runs after `timeout_seconds`."""
        life = self._life
        deadline = self._deadline(timeout_seconds)
        parker = Parker(self._machine.lock, self._machine.kernel.clock)
        with self._machine.lock:
            while life.ended_ns is None:
                if deadline is not None and self._machine.kernel.clock.monotonic() >= deadline:
                    return None
                parker.park((life.ended,), deadline)
            assert life.process is not None
            exit_code = exit_code_of(life.process.exit_status)
            seconds = (life.ended_ns - self._began_ns) / SECOND
        self._notices += tuple(memory_notices(self._machine, self._job))
        if life.timed_out:
            exit_code = TIMEOUT_EXIT_CODE
        return HostedEnd(exit_code, life.timed_out, seconds, self._notices)

    def kill(self) -> None:
        """End every process of the command, also those in the background."""
        self._machine.end_job(self._job)

    def _deadline(self, timeout_seconds: float | None) -> int | None:
        return self._machine.kernel.clock.deadline(timeout_seconds)


def _launched(machine: Machine, make: Callable[[], Guest]) -> Process:
    """The process that `make` makes, running."""
    known = OneShot()

    def settled(launch: Launch) -> None:
        if launch.process is not None and launch.given_up:
            machine.end_job(launch.process.job)
        known.set()

    launch = Launch(machine.kernel, make, settled)
    try:
        launch.begin(machine.engine, machine.lock)
        known.wait()
    except BaseException:  # the caller gave up (Ctrl-C): so does its command
        launch.given_up = True
        if launch.process is not None:
            machine.end_job(launch.process.job)
        raise
    if isinstance(launch.error, TimeoutError):
        raise KernelError(
            Errno.ETIMEDOUT,
            "the program was still being compiled, which was ended; raise timeout_ms",
        )
    if launch.error is not None:
        raise launch.error
    assert launch.process is not None
    return launch.process


def _abandon(life: _Life, owner: int) -> None:
    """The collector may run in a thread that holds the lock, so that is taken in another. A
    process that was forked from the machine's leaves it alone."""
    leftover = life.ended_ns is None or life.channel.writers or life.channel.size
    if leftover and os.getpid() == owner:
        start_new_thread(life.abandon, ())
