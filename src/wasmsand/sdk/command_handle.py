"""`CommandHandle`: a command that runs, from `commands.start`.

Rules: reading blocks the calling thread and nothing else; several threads may use one handle,
as one that writes and one that reads; a handle that is dropped leaves its command running.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import STDERR, STDOUT, BackendProcess
from wasmsand.sdk.errors import InputTimeoutError
from wasmsand.sdk.input import write_all
from wasmsand.sdk.output import Collector, TextDecoder, TextSink
from wasmsand.sdk.results import CommandResult

_NAMES: Final[dict[int, Literal["stdout", "stderr"]]] = {STDOUT: "stdout", STDERR: "stderr"}


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A piece of what a command printed."""

    stream: Literal["stdout", "stderr"]
    text: str
    """The characters that are complete now; may be empty."""
    data: bytes = field(repr=False)
    """The bytes as they were written."""


class CommandHandle:
    """One command that was started: talk to it, wait for it, end it.

    Example:
        with sandbox.commands.start("bc") as command:
            command.write_stdin("6 * 7\\n")
            command.close_stdin()
            print(command.wait().stdout)
    """

    def __init__(
        self, attachment: Attachment, process: BackendProcess, command: str | Sequence[str]
    ) -> None:
        self._attachment = attachment
        self._process = process
        self._command = command
        self._collector = Collector(process, attachment.options.max_output_bytes)
        self._decoder = TextDecoder()
        self._result: CommandResult | None = None
        self._exit_code: int | None = None

    @property
    def pid(self) -> int:
        """The process id in the sandbox; `kill PID` there works."""
        return self._process.pid

    def __iter__(self) -> Iterator[OutputChunk]:
        """Output as it is printed, on both streams, in the order in which it was written.

        Example:
            for chunk in sandbox.commands.start("ping-pong", stdin=""):
                print(chunk.stream, chunk.text)

        Ends when the command has ended. What was taken here is not in the result of `wait`.
        """
        while True:
            self._attachment.check_open()
            outputs = self._process.read()
            for output in outputs:
                yield OutputChunk(_NAMES[output.fd], self._decoder.decode(output), output.data)
            if not outputs:
                break
        self._attachment.check_open()
        for fd, name in _NAMES.items():
            if rest := self._decoder.rest(fd):  # of a character that was never completed
                yield OutputChunk(name, rest, b"")

    def write_stdin(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Write to the command's input; text is encoded as UTF-8. Waits while the command does
        not read.

        Example:
            command.write_stdin("yes\\n", timeout_ms=5_000)

        Raises `InputTimeoutError` when the command has not taken all of it after `timeout_ms`:
        `written` is how many bytes it has taken, and the rest may be written again. Raises
        `CommandError`: EPIPE if it has ended or closed its input, EBADF after `close_stdin`, or
        if `stdin` was given to `start`.
        """
        self._attachment.check_open()
        content = arguments.content("data", data)
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        written = write_all(self._process, content, timeout)
        if written < len(content):
            self._attachment.check_open()
            raise InputTimeoutError(written, len(content))

    def close_stdin(self) -> None:
        """The end of the command's input. Calling it again does nothing.

        Example:
            command.close_stdin()
        """
        self._attachment.check_open()
        self._process.close_input()

    def wait(
        self,
        *,
        timeout_ms: float | None = None,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Wait for the end, and return what was printed and not taken by iterating.

        Example:
            command.wait(timeout_ms=5_000).stdout

        Raises `TimeoutError` when the command still runs after `timeout_ms`; it goes on, and
        may be waited for again. The input stays open: a command that reads to its end needs
        `close_stdin` first.
        """
        self._attachment.check_open()
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        arguments.callback("on_stdout", on_stdout)
        arguments.callback("on_stderr", on_stderr)
        if self._result is None:
            self._result = self._collector.collect(on_stdout, on_stderr, timeout)
            self._exit_code = self._result.exit_code
            self._attachment.check_open()
        return self._result

    def poll(self) -> int | None:
        """The exit code, or None while the command runs.

        Example:
            command.poll() is None
        """
        self._attachment.check_open()
        ended = self._process.wait(0)
        if ended is not None:
            self._exit_code = ended.exit_code
        return self._exit_code

    def send_signal(self, number: int) -> None:
        """Send a signal, as 2 (SIGINT) or 15 (SIGTERM), to the command's first process.

        Example:
            command.send_signal(signal.SIGTERM)

        Raises `CommandError` (ESRCH) if it has ended.
        """
        backend = self._attachment.backend
        backend.signal(self.pid, arguments.signal_number("number", number))

    def kill(self) -> None:
        """End every process of the command, also those that it left in the background.
        Calling it again does nothing.

        Example:
            command.kill()
        """
        if not self._attachment.closed:
            self._process.kill()

    def __enter__(self) -> CommandHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def __repr__(self) -> str:
        state = " of a killed sandbox" if self._attachment.closed else ""
        if self._exit_code is not None:
            state = f" exit_code={self._exit_code}"
        return f"<CommandHandle pid={self.pid}{state} {self._command!r}>"
