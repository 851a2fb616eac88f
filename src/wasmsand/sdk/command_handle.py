"""`CommandHandle`: a started command, returned by `commands.start`.

Rules: reading blocks only the calling thread; several threads may use one handle, for example
one that writes and one that reads; dropping a handle leaves its command running.
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
    """A piece of a command's output."""

    stream: Literal["stdout", "stderr"]
    text: str
    """The characters that are complete so far; may be empty."""
    data: bytes = field(repr=False)
    """The bytes as they were written."""


class CommandHandle:
    """A started command: talk to it, wait for it, end it.

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
        """The process ID in the sandbox; `kill PID` works there."""
        return self._process.pid

    def __iter__(self) -> Iterator[OutputChunk]:
        """Yield the output of both streams as it is printed, in the order in which it was written.

        Example:
            for chunk in sandbox.commands.start("ping-pong", stdin=""):
                print(chunk.stream, chunk.text)

        The iteration ends when the command has ended. Output that you get here is not in the
        result of `wait`.
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
            if rest := self._decoder.rest(fd):  # an incomplete character
                yield OutputChunk(name, rest, b"")

    def write_stdin(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Write to the command's input; text is encoded as UTF-8. Waits until the command has read
        enough.

        Example:
            command.write_stdin("yes\\n", timeout_ms=5_000)

        Raises `InputTimeoutError` if not all of `data` is written after `timeout_ms`: its
        `written` is the number of bytes written, and the rest may be written again. Raises
        `CommandError` with EPIPE if the command has ended or closed its input, and with EBADF
        after `close_stdin` or if `stdin` was given to `start`.
        """
        self._attachment.check_open()
        content = arguments.content("data", data)
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        written = write_all(self._process, content, timeout)
        if written < len(content):
            self._attachment.check_open()
            raise InputTimeoutError(written, len(content))

    def close_stdin(self) -> None:
        """Close the command's input. Calling it again does nothing.

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
        """Wait for the end of the command, and return the output that was not read by iterating.

        Example:
            command.wait(timeout_ms=5_000).stdout

        Raises `TimeoutError` if the command is still running after `timeout_ms`; the command
        keeps running, and you may wait again. `wait` does not close the input: if the command
        reads until the end of its input, call `close_stdin` first.
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
        """Return the exit code, or None while the command is running.

        Example:
            command.poll() is None
        """
        self._attachment.check_open()
        ended = self._process.wait(0)
        if ended is not None:
            self._exit_code = ended.exit_code
        return self._exit_code

    def send_signal(self, number: int) -> None:
        """Send a signal, such as 2 (SIGINT) or 15 (SIGTERM), to the command's first process.

        Example:
            command.send_signal(signal.SIGTERM)

        Raises `CommandError` (ESRCH) if the process has ended.
        """
        backend = self._attachment.backend
        backend.signal(self.pid, arguments.signal_number("number", number))

    def kill(self) -> None:
        """End every process of the command, including those that it left in the background.
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
