"""`SessionRequest`: one request to the interpreter of a session, and its outcome so far.

Rules: output is kept up to the limit of the sandbox, and passed to callbacks as it arrives.
"""

from __future__ import annotations

import os
import threading

from wasmsand.machine.command import TIMEOUT_EXIT_CODE
from wasmsand.sdk.backend import STDERR, STDOUT, CapturedOutput, Completed, Ended, Output
from wasmsand.sdk.output import TextDecoder, TextSink


class SessionRequest:
    """One request to an interpreter, and its outcome so far."""

    def __init__(
        self, limit: int, on_stdout: TextSink | None = None, on_stderr: TextSink | None = None
    ) -> None:
        self.token = os.urandom(8).hex()
        """A token that the interpreter's answer must contain."""
        self.answered = False
        self.timed_out = False
        self.begun = False
        """Whether any part of the request was sent."""
        self.sent = False
        """Whether the whole request was sent."""
        self.cancelled = False
        self.notices: list[str] = []
        """Messages for the user about the end of the interpreter."""
        self.is_over = False
        self.over: threading.Event | None = None
        """Set at the end, if somebody waits for it."""
        self.seconds = 0.0
        self.paused_seconds = 0.0
        """Time in which the interpreter waited for the caller; it does not count."""
        self._captured = CapturedOutput(limit)
        self._sinks: dict[int, TextSink] = {}
        if on_stdout is not None:
            self._sinks[STDOUT] = on_stdout
        if on_stderr is not None:
            self._sinks[STDERR] = on_stderr
        self._decoder = TextDecoder() if self._sinks else None

    @property
    def is_watched(self) -> bool:
        """Whether a callback gets the output as it is written."""
        return self._decoder is not None

    @property
    def truncated(self) -> bool:
        """Whether output was cut at the limit."""
        return self._captured.truncated

    def receive(self, output: Output) -> None:
        """Keep output up to the limit, and pass it to the callbacks."""
        data = self._captured.keep(output.fd, output.data)
        if self._decoder is not None:
            text = self._decoder.decode(Output(output.fd, data))
            sink = self._sinks.get(output.fd)
            if sink is not None and text:
                sink(text)

    def exceed(self) -> None:
        """End the request, because its output exceeds the limit."""
        self._captured.truncated = True

    def silence(self) -> None:
        """Stop calling callbacks."""
        self._sinks = {}

    def printed(self) -> tuple[str, str]:
        """The output so far, as text."""
        captured = self._captured
        return captured.stdout.decode("utf-8", "replace"), captured.stderr.decode(
            "utf-8", "replace"
        )

    def completed(self, exit_code: int = 0) -> Completed:
        """Pass the rest of the output to the callbacks, and return the outcome."""
        if self._decoder is not None:
            for fd, sink in self._sinks.items():
                if text := self._decoder.rest(fd):
                    sink(text)
        if self.timed_out:
            exit_code = TIMEOUT_EXIT_CODE
        ended = Ended(exit_code, self.timed_out, self.seconds, tuple(self.notices))
        return self._captured.completed(ended)
