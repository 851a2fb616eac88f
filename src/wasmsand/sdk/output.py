"""Collects and decodes the output of commands.

Rules: a character is never split, however the command writes its bytes; callbacks run on the
thread that waits for the command, without locks, so they may use the sandbox.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from wasmsand.sdk.backend import (
    STDERR,
    STDOUT,
    BackendProcess,
    CapturedOutput,
    Completed,
    Output,
)
from wasmsand.sdk.results import CommandResult

TextSink = Callable[[str], None]


class TextDecoder:
    """Decodes UTF-8 in pieces; invalid bytes are replaced."""

    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {STDOUT: decoder("replace"), STDERR: decoder("replace")}

    def decode(self, output: Output) -> str:
        """The characters that are complete so far."""
        return self._decoders[output.fd].decode(output.data)

    def rest(self, fd: int) -> str:
        """The replacement for an incomplete character at the end."""
        return self._decoders[fd].decode(b"", True)


class Collector:
    """Collects a command's output, up to `limit` bytes of each stream."""

    def __init__(self, process: BackendProcess, limit: int) -> None:
        self._process = process
        self._captured = CapturedOutput(limit)
        self._decoder = TextDecoder()

    def collect(
        self,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
        timeout_seconds: float | None = None,
    ) -> CommandResult:
        """Read to the end. Raises `TimeoutError` if the output has not ended after
        `timeout_seconds`; the output so far is kept for the next call."""
        deadline = None if timeout_seconds is None else self._process.now() + timeout_seconds
        sinks = {STDOUT: on_stdout, STDERR: on_stderr}
        while outputs := self._process.read(self._seconds_until(deadline)):
            for output in outputs:
                text = self._decoder.decode(self._keep(output))
                sink = sinks[output.fd]
                if sink is not None and text:
                    sink(text)
        for fd, sink in sinks.items():
            if sink is not None and (text := self._decoder.rest(fd)):
                sink(text)
        return self.result()

    def _seconds_until(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(0.0, deadline - self._process.now())

    def _keep(self, output: Output) -> Output:
        """The part of `output` within the limit. Kills the command when it exceeds the limit."""
        was_within = not self._captured.truncated
        kept = self._captured.keep(output.fd, output.data)
        if was_within and self._captured.truncated:
            self._process.kill()
        return Output(output.fd, kept)

    def result(self) -> CommandResult:
        """The result of the command. Its output must have ended."""
        ended = self._process.wait()
        assert ended is not None, "wait() without a time limit waits"
        return command_result(self._captured.completed(ended))


def command_result(completed: Completed) -> CommandResult:
    """The public result of a command."""
    stderr = completed.stderr
    if completed.timed_out:
        if stderr and not stderr.endswith(b"\n"):
            stderr += b"\n"
        stderr += b"command timed out\n"
    return CommandResult(
        stdout=completed.stdout.decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace"),
        exit_code=completed.exit_code,
        execution_time_ms=completed.seconds * 1000,
        stdout_bytes=completed.stdout,
        stderr_bytes=stderr,
        timed_out=completed.timed_out,
        truncated=completed.truncated,
    )
