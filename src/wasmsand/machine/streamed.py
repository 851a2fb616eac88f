"""A command with streams: the host writes to it and reads from it while it runs.

Owns `StreamedProcess`. Rules: reads and writes block the calling thread, as on a pipe, and never
hold the lock while they wait. The program blocks while its output is not read. The command has
ended when its first process has; background processes keep running. When a `StreamedProcess` is
garbage-collected, further output is dropped, but the time limit stays in force.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from wasmsand.engine.placement import CallerPlace
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.command_files import CommandInput
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.output_channel import ChannelOutput, OutputChannel
from wasmsand.kernel.files.pipe import PipeEnd, make_pipe
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.command import STDERR, STDIN, STDOUT, CommandRequest, Ended, Output
from wasmsand.machine.parking import OneShot, Parker
from wasmsand.machine.running import LINGER_SECONDS, PIPE_MODE, RunningCommand

if TYPE_CHECKING:
    from wasmsand.kernel.process.captured import CapturedStream
    from wasmsand.kernel.process.process import Process
    from wasmsand.machine.machine import Machine
    from wasmsand.machine.sessions import CapturedSession
    from wasmsand.machine.thread_driver import ThreadDriver

_LINGER_NS: Final = int(LINGER_SECONDS * SECOND)
_WRITE_STEP: Final = 65536
_NO_REQUEST: Final = CommandRequest((), {}, "/")
"""Of a program that was not started here: it has no time limit."""


class _StreamedCommand(RunningCommand):
    """A command whose streams are connected to the host."""

    def __init__(self, machine: Machine, request: CommandRequest) -> None:
        super().__init__(machine, request)
        self.is_settled = OneShot()
        # Guarded by the lock:
        self.channel = OutputChannel(machine.kernel.ledger)
        self.inputs: dict[int, PipeEnd] = {}
        self.has_ended = WaitQueue()
        self._forget_deadline: Callable[[], None] | None = None

    def open_files(self, machine: Machine, request: CommandRequest) -> Mapping[int, OpenFile]:
        """See `RunningCommand`."""
        extra = [*request.extra_inputs, *request.extra_outputs]
        if len({STDIN, STDOUT, STDERR, *extra}) != 3 + len(extra):
            raise KernelError(Errno.EINVAL, f"duplicate descriptors: {extra}")
        kernel, identity = machine.kernel, machine.identity
        new_pipe = partial(kernel.anonymous.new, PIPE_MODE, identity.uid, identity.gid)
        files: dict[int, OpenFile] = {}
        stat = new_pipe()
        for fd in (STDOUT, STDERR, *request.extra_outputs):
            files[fd] = ChannelOutput(self.channel, fd, stat)
        inputs = request.extra_inputs
        if request.stdin is None:
            inputs = (STDIN, *inputs)
        else:
            files[STDIN] = CommandInput(request.stdin, new_pipe)
        for fd in inputs:
            files[fd], self.inputs[fd] = make_pipe(kernel.pipes, 0, new_pipe())
        return files

    def drop_files(self, files: Mapping[int, OpenFile]) -> None:
        """See `RunningCommand`."""
        super().drop_files(files)
        self.close_inputs()

    def revive(self, machine: Machine, session: CapturedSession, *, is_last: bool) -> ThreadDriver:
        """Create a copy of a captured process, with streams of its own. Needs the lock."""
        kernel, identity = machine.kernel, session.process.identity
        new_pipe = partial(kernel.anonymous.new, PIPE_MODE, identity.uid, identity.gid)

        def stream(captured: CapturedStream) -> OpenFile:
            if not captured.is_input:
                return ChannelOutput(self.channel, captured.host_fd, new_pipe())
            end, self.inputs[captured.host_fd] = make_pipe(kernel.pipes, 0, new_pipe())
            end.flags = captured.flags
            if captured.waiting:
                end.pipe.push(captured.waiting)
            return end

        try:
            driver = machine.revive_process(session, stream, self._end, is_last=is_last)
        except BaseException:
            self.close_inputs()
            raise
        self.process = driver.process
        return driver

    def settled(self) -> None:
        """See `RunningCommand`."""
        self.is_settled.set()

    def limit_time(self, machine: Machine) -> None:
        """Arrange that the command is ended when its time is up."""
        with self._lock:
            end = self.deadline.ns
            if end is not None and self.ended_ns is None:
                self._forget_deadline = machine.call_at(self, end)

    def fire_timers(self) -> int | None:
        """See `TimerOwner`."""
        if not self.deadline.is_past:  # it has moved meanwhile
            return self.deadline.next_look_ns
        self.expire()
        return None

    def process_ended(self) -> None:
        """See `RunningCommand`."""
        if self._forget_deadline is not None:
            self._forget_deadline()
            self._forget_deadline = None
        self.close_inputs()
        self.has_ended.wake()
        self.channel.changed.wake()

    def close_inputs(self) -> None:
        """No more input will be written. Needs the lock."""
        for source in self.inputs.values():
            source.dispose()
        self.inputs.clear()

    def abandon(self) -> None:
        """The host will neither read nor write any longer."""
        with self._lock:
            self.channel.abandon()
            self.close_inputs()


class StreamedProcess:
    """A running command with its streams."""

    def __init__(self, machine: Machine, life: _StreamedCommand, process: Process) -> None:
        self._machine = machine
        self._life = life
        self.pid = process.pid
        self._job = process.job
        self._callers = CallerPlace()
        """Guarded by the lock."""
        self._finalizer = weakref.finalize(self, _abandon, life, os.getpid())
        self._finalizer.atexit = False

    @classmethod
    def of_request(cls, machine: Machine, request: CommandRequest) -> StreamedProcess:
        """Start a program."""
        life = _StreamedCommand(machine, request)
        life.launch(machine, request, life.is_settled, in_time=False)
        streamed = cls(machine, life, life.started(machine))
        life.limit_time(machine)
        return streamed

    @classmethod
    def of_session(
        cls, machine: Machine, session: CapturedSession, *, is_last: bool
    ) -> StreamedProcess:
        """Let a copy of a captured program run."""
        life = _StreamedCommand(machine, _NO_REQUEST)
        with machine.lock:
            driver = life.revive(machine, session, is_last=is_last)
        machine.engine.start_thread(driver.run)
        return cls(machine, life, driver.process)

    @property
    def inputs(self) -> Mapping[int, PipeEnd]:
        """The host's ends of its inputs. Needs the lock."""
        return self._life.inputs

    def now(self) -> float:
        """The current time, in seconds, on the clock that measures timeouts. It stands still while
        a program of the image is compiled."""
        return self._machine.kernel.clock.monotonic() / SECOND - self.uncounted_seconds()

    def uncounted_seconds(self) -> float:
        """How long that clock has stood still."""
        return self._machine.uncounted.total_ns() / SECOND

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """Wait for output; return what was written since the last call, in order, by descriptor.

        Empty at the end of output. Raises `TimeoutError` if nothing was written in time.
        """
        with self._machine.lock:
            return self._wait_for_output(timeout_seconds)

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """Write a whole request, and then wait for output like `read`: in one step, so that nothing
        is left to do between the wake-up of the program and the wait. Unless `awaited` is None,
        wait until something was written to that descriptor, or much to others.

        None if the input cannot take the request at once; then nothing was written. Raises
        `TimeoutError` like `read`; the request was written then."""
        machine, channel = self._machine, self._life.channel
        machine.mounts.look_again()
        with machine.lock:
            source = self._life.inputs.get(fd)
            if source is None or source.pipe.room() < len(request):
                return None
            parker = Parker(machine.lock, machine.kernel.clock)
            if awaited is not None:
                channel.awaited, channel.on_awaited = awaited, parker.wake_soon
                parker.gate.host_thread = self._callers.about_to_wait()
            try:
                machine.lock.postpones = True
                try:
                    source.write(request)
                finally:
                    machine.lock.postpones = False
                return self._wait_for_output(timeout_seconds, parker)
            finally:
                channel.awaited = channel.on_awaited = None
                machine.lock.wake_postponed()
                if awaited is not None:
                    self._callers.has_waited()

    def _wait_for_output(
        self, timeout_seconds: float | None, parker: Parker | None = None
    ) -> tuple[Output, ...]:
        """See `read`. Needs the lock."""
        life, channel = self._life, self._life.channel
        if not channel.is_due():
            clock = self._machine.kernel.clock
            deadline = clock.deadline(timeout_seconds)
            parker = parker or Parker(self._machine.lock, clock)
            while not channel.is_due():
                until = deadline
                if life.ended_ns is not None:
                    if channel.size:
                        break
                    # Other processes may hold its output a moment longer, such as a process
                    # substitution.
                    lingers_until = life.ended_ns + _LINGER_NS
                    if not channel.writers or clock.monotonic() >= lingers_until:
                        channel.abandon()
                        return ()
                    until = lingers_until if deadline is None else min(deadline, lingers_until)
                if deadline is not None and clock.monotonic() >= deadline:
                    raise TimeoutError
                parker.park((channel.changed,), until)
        return tuple([Output(fd, data) for fd, data in channel.take()])

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """Write to an input; wait while the program does not read. Returns the number of bytes
        written: all of them, or fewer if `timeout_seconds` passed. EPIPE if nobody can read the
        input any longer, EBADF if it is closed."""
        life = self._life
        deadline = self._deadline(timeout_seconds)
        parker = Parker(self._machine.lock, self._machine.kernel.clock)
        clock = self._machine.kernel.clock
        done = 0
        self._machine.mounts.look_again()
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
                    parker.park((*block.queues, life.has_ended), deadline)
        return done

    def close_input(self, fd: int = STDIN) -> None:
        """Close an input. Idempotent."""
        with self._machine.lock:
            source = self._life.inputs.pop(fd, None)
            if source is not None:
                source.dispose()

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """Wait for the command's end. None if it still runs after `timeout_seconds`."""
        life = self._life
        deadline = self._deadline(timeout_seconds)
        parker = Parker(self._machine.lock, self._machine.kernel.clock)
        with self._machine.lock:
            while life.ended_ns is None:
                if deadline is not None and self._machine.kernel.clock.monotonic() >= deadline:
                    return None
                parker.park((life.has_ended,), deadline)
            return life.ended()

    def take_notices(self) -> tuple[str, ...]:
        """The notices so far of a command that still runs, each once."""
        if not self._life.may_have_notices:
            return ()
        with self._machine.lock:
            return self._life.take_notices()

    def kill(self) -> None:
        """End every process of the command, including background processes."""
        self._machine.end_job(self._job)

    def _deadline(self, timeout_seconds: float | None) -> int | None:
        return self._machine.kernel.clock.deadline(timeout_seconds)


def _abandon(life: _StreamedCommand, owner: int) -> None:
    """The collector may run on a thread that holds the lock, so a new thread takes the lock. A
    forked host process has nothing to clean up."""
    leftover = life.ended_ns is None or life.channel.writers or life.channel.size
    if leftover and os.getpid() == owner:
        start_new_thread(life.abandon, ())
