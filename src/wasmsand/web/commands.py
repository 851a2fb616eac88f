"""Commands of a web machine: captured, streamed, and on a terminal.

Owns their lives, from the request to the end. Rules: nothing waits. Output of a started command is
handed to its listener when the current step is done. A listener that has `WINDOW_BYTES` and has not
said that it took them gets no more; then the guest waits, as for any reader. A program that is
being fetched delays the start of its command, and that time does not count.
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
from wasmsand.kernel.files.output_channel import ChannelOutput, OutputChannel
from wasmsand.kernel.files.pipe import PipeEnd, make_pipe
from wasmsand.kernel.files.terminal import Terminal, TerminalFile
from wasmsand.kernel.flags import O_RDWR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Stat
from wasmsand.kernel.wait import WaitQueue, WouldBlock
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

if TYPE_CHECKING:
    from wasmsand.web.machine import WebMachine

_PIPE_MODE: Final = 0o010600
_LINGER_NS: Final = SECOND // 10
"""How long output of other processes is awaited after the end of a command."""
WINDOW_BYTES: Final = 1 << 20
"""Bytes of output that may be on their way to a listener."""
Failed = Callable[[KernelError], None]


class _Window:
    """How much output is on its way to a listener."""

    __slots__ = ("_bytes", "_opened")

    def __init__(self, opened: Callable[[], None]) -> None:
        """`opened` is called when the listener has taken something."""
        self._bytes = 0
        self._opened = opened

    @property
    def is_open(self) -> bool:
        """Whether the listener gets more."""
        return self._bytes < WINDOW_BYTES

    def give(self, count: int) -> None:
        """So many bytes are on their way."""
        self._bytes += count

    def taken(self, count: int) -> None:
        """The listener has taken so many bytes."""
        self._bytes = max(0, self._bytes - count)
        self._opened()


class Command:
    """The common part: start, time limit, end."""

    terminal: Terminal | None = None

    def __init__(self, machine: WebMachine, request: CommandRequest, failed: Failed) -> None:
        """`failed` is called if the process cannot be created."""
        self._machine = machine
        self._loop = machine.loop
        self._request = request
        self._failed = failed
        self._awaited: WouldBlock | None = None
        self._cancelled = False
        self.process: Process | None = None
        self.timed_out = False
        self.began_ns = machine.kernel.clock.monotonic()
        self.ended_ns: int | None = None

    @abstractmethod
    def open_files(self) -> Mapping[int, OpenFile]:
        """The files with which the process starts."""

    @abstractmethod
    def started(self, process: Process) -> None:
        """The process runs."""

    @abstractmethod
    def process_ended(self) -> None:
        """The process has ended."""

    def abandoned(self) -> None:
        """The process could not be created, and its files are gone."""

    def launch(self) -> None:
        """Start the program, as soon as its module is there."""
        self._files = self.open_files()
        self._try()

    def _try(self) -> None:
        if self._awaited is not None:
            for queue in self._awaited.queues:
                queue.remove(self._again)
            self._awaited = None
        machine, request = self._machine, self._request
        try:
            if self._cancelled:
                raise KernelError(Errno.EINTR, "it was ended before it began")
            process = machine.make_process(request, self._files, self._end, terminal=self.terminal)
        except WouldBlock as block:
            self._awaited = block
            for queue in block.queues:
                queue.add(self._again)
            return
        except KernelError as error:
            for file in {id(file): file for file in self._files.values()}.values():
                file.dispose()
            self.abandoned()
            self._failed(error)
            return
        self.process = process
        self.began_ns = machine.kernel.clock.monotonic()
        if request.timeout_seconds is not None:
            self._loop.at(self.began_ns + int(request.timeout_seconds * SECOND), self._expire)
        self.started(process)

    def _again(self) -> None:
        self._loop.soon(self._try)

    def _expire(self) -> None:
        if self.ended_ns is None:
            self.timed_out = True
            self.kill()

    def kill(self) -> None:
        """End every process of the command."""
        self._cancelled = True
        if self.process is not None:
            self._machine.kernel.kill_job(self.process.job)

    def _end(self) -> None:
        self.ended_ns = self._machine.kernel.clock.monotonic()
        self._loop.not_at(self._expire)
        self.process_ended()

    def ended(self) -> Ended:
        """How the command ended."""
        process, ended_ns = self.process, self.ended_ns
        assert process is not None, "it was started"
        assert ended_ns is not None, "it has ended"
        notices = tuple(self._machine.notices(process.job))
        code = TIMEOUT_EXIT_CODE if self.timed_out else exit_code_of(process.exit_status)
        return Ended(code, self.timed_out, (ended_ns - self.began_ns) / SECOND, notices)

    def new_pipe(self) -> Callable[[], Stat]:
        """Makes the stat of a pipe of the user."""
        identity = self._machine.identity
        new = self._machine.kernel.anonymous.new
        return partial(new, _PIPE_MODE, identity.uid, identity.gid)


class CapturedCommand(Command):
    """A command whose output is captured until it ends."""

    def __init__(
        self,
        machine: WebMachine,
        request: CommandRequest,
        done: Callable[[Completed], None],
        failed: Failed,
    ) -> None:
        super().__init__(machine, request, failed)
        self._done: Callable[[Completed], None] | None = done
        self._output = CapturedOutput(machine.kernel.limits.max_output_bytes)
        self._outputs: tuple[CommandOutput, ...] = ()
        self._open = 2

    def open_files(self) -> Mapping[int, OpenFile]:
        """See `Command`."""
        pipe = self.new_pipe()
        stdout, stderr = CommandOutput(STDOUT, self, pipe), CommandOutput(STDERR, self, pipe)
        self._outputs = (stdout, stderr)
        return {
            STDIN: CommandInput(self._request.stdin or b"", pipe),
            STDOUT: stdout,
            STDERR: stderr,
        }

    def started(self, process: Process) -> None:
        """See `Command`."""

    def process_ended(self) -> None:
        """See `Command`."""
        assert self.ended_ns is not None
        if self._open:
            self._loop.at(self.ended_ns + _LINGER_NS, self._finish)
        else:
            self._loop.soon(self._finish)

    def _finish(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            self._loop.not_at(self._finish)
            for file in self._outputs:
                file.detach()
            done(self._output.completed(self.ended()))

    # OutputSink.

    def printed(self, fd: int, data: bytes) -> None:
        """See `OutputSink`."""
        self._output.keep(fd, data)
        if self._output.truncated:
            self._loop.soon(self.kill)

    def output_closed(self) -> None:
        """See `OutputSink`."""
        self._open -= 1
        if not self._open and self.ended_ns is not None:
            self._loop.soon(self._finish)


class StartedCommand(Command):
    """A command with streams. `on_output` gets each piece of output, `on_end` how it ended."""

    def __init__(
        self,
        machine: WebMachine,
        request: CommandRequest,
        *,
        on_started: Callable[[int], None],
        on_output: Callable[[int, bytes], None],
        on_end: Callable[[Ended], None],
        failed: Failed,
    ) -> None:
        super().__init__(machine, request, failed)
        self._on_started = on_started
        self._on_output = on_output
        self._on_end: Callable[[Ended], None] | None = on_end
        self._channel = OutputChannel(machine.kernel.ledger)
        self._channel.changed.add(self._changed)
        self.window = _Window(self._changed)
        self._inputs: dict[int, PipeEnd] = {}
        self._outgoing: dict[int, bytearray] = {}
        """What the host has written and the program has not taken, by descriptor."""
        self._closing: set[int] = set()
        self._is_listed = False

    def open_files(self) -> Mapping[int, OpenFile]:
        """See `Command`."""
        request, new_pipe = self._request, self.new_pipe()
        files: dict[int, OpenFile] = {}
        stat = new_pipe()
        for fd in (STDOUT, STDERR, *request.extra_outputs):
            files[fd] = ChannelOutput(self._channel, fd, stat)
        inputs = request.extra_inputs
        if request.stdin is None:
            inputs = (STDIN, *inputs)
        else:
            files[STDIN] = CommandInput(request.stdin, new_pipe)
        for fd in inputs:
            pipe = make_pipe(self._machine.kernel.pipes, 0, new_pipe())
            files[fd], self._inputs[fd] = pipe
        return files

    def started(self, process: Process) -> None:
        """See `Command`."""
        self._on_started(process.pid)
        for fd in tuple(self._outgoing):
            self._push(fd)

    def process_ended(self) -> None:
        """See `Command`."""
        assert self.ended_ns is not None
        for source in self._inputs.values():
            source.dispose()
        self._inputs.clear()
        self._outgoing.clear()
        self._loop.at(self.ended_ns + _LINGER_NS, self._finish)
        self._changed()

    def _finish(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            self._loop.not_at(self._finish)
            self._hand_over()
            self._channel.abandon()
            on_end(self.ended())

    # Output.

    def _changed(self) -> None:
        if not self._is_listed:
            self._is_listed = True
            self._loop.soon(self._take)

    def _take(self) -> None:
        self._is_listed = False
        if self.window.is_open:
            self._hand_over()
        if self.ended_ns is not None and not self._channel.writers and self._on_end is not None:
            self._finish()

    def _hand_over(self) -> None:
        if self._channel.size and not self._channel.abandoned:
            for fd, data in self._channel.take():
                self.window.give(len(data))
                self._on_output(fd, data)

    # Input.

    def write(self, data: bytes, fd: int = STDIN) -> None:
        """Write to an input. What does not fit is written when the program reads. EBADF if the
        input is closed, EPIPE if the command has ended."""
        if self.ended_ns is not None:
            raise KernelError(Errno.EPIPE, "the command has ended")
        if fd in self._closing or (self.process is not None and fd not in self._inputs):
            raise KernelError(Errno.EBADF, f"input {fd} is closed")
        waiting = self._outgoing.setdefault(fd, bytearray())
        if len(waiting) + len(data) > self._machine.kernel.limits.max_output_bytes:
            raise KernelError(Errno.EAGAIN, "the program does not read its input")
        waiting += data
        if self.process is not None:
            self._push(fd)

    def close_input(self, fd: int = STDIN) -> None:
        """Close an input when everything written to it was taken. Idempotent."""
        self._closing.add(fd)
        if self.process is not None:
            self._push(fd)

    def _push(self, fd: int) -> None:
        source, waiting = self._inputs.get(fd), self._outgoing.get(fd)
        if source is None:
            return
        try:
            while waiting:
                del waiting[: source.write(bytes(waiting[:65536]))]
        except WouldBlock as block:
            self._push_when(block.queues, fd)
            return
        except KernelError:  # nobody reads it any longer
            self._outgoing.pop(fd, None)
        if fd in self._closing:
            self._inputs.pop(fd).dispose()

    def _push_when(self, queues: tuple[WaitQueue, ...], fd: int) -> None:
        def woken() -> None:
            for queue in queues:
                queue.remove(woken)
            self._loop.soon(partial(self._push, fd))

        for queue in queues:
            queue.add(woken)


class TerminalCommand(Command):
    """A command on a pseudo-terminal. `on_data` gets what it prints."""

    def __init__(
        self,
        machine: WebMachine,
        request: CommandRequest,
        rows: int,
        columns: int,
        *,
        on_started: Callable[[int], None],
        on_data: Callable[[bytes], None],
        on_end: Callable[[Ended], None],
        failed: Failed,
    ) -> None:
        super().__init__(machine, request, failed)
        self._on_started = on_started
        self._on_data = on_data
        self._on_end = on_end
        identity = machine.identity
        self.terminal = terminal = machine.kernel.new_terminal(identity.uid, identity.gid)
        terminal.rows, terminal.columns = rows, columns
        terminal.changed.add(self._changed)
        self.window = _Window(self._changed)
        self._is_listed = False

    def open_files(self) -> Mapping[int, OpenFile]:
        """See `Command`."""
        assert self.terminal is not None
        return dict.fromkeys((0, 1, 2), TerminalFile(self.terminal, O_RDWR))

    def started(self, process: Process) -> None:
        """See `Command`."""
        self._on_started(process.pid)

    def abandoned(self) -> None:
        """See `Command`."""
        self.close()

    def process_ended(self) -> None:
        """See `Command`."""
        self._loop.soon(self._finish)

    def _finish(self) -> None:
        self._hand_over()
        self._on_end(self.ended())
        self.close()

    def _changed(self) -> None:
        if not self._is_listed:
            self._is_listed = True
            self._loop.soon(self._take)

    def _take(self) -> None:
        self._is_listed = False
        if self.window.is_open:
            self._hand_over()

    def _hand_over(self) -> None:
        terminal = self.terminal
        assert terminal is not None
        if terminal.output:
            data = bytes(terminal.output)
            terminal.output.clear()
            terminal.changed.wake()
            self.window.give(len(data))
            self._on_data(data)

    def write(self, data: bytes) -> None:
        """Type on the keyboard."""
        assert self.terminal is not None
        self.terminal.type_keys(data)

    def resize(self, rows: int, columns: int) -> None:
        """Change the window's size."""
        assert self.terminal is not None
        self.terminal.resize(rows, columns)

    def close(self) -> None:
        """Hang up."""
        assert self.terminal is not None
        self.terminal.close_master()
