"""`PythonSession`: one interpreter that keeps its state between calls, from `sandbox.python()`.

How it works: the sandbox's `python3` runs `python_driver`, which reads code from one separate
descriptor and writes messages to another (`conversation`, `python_messages`). Rules: the program
shares its process with the driver and can write anything to any descriptor. So a message is checked
field by field, its size counts towards `max_output_bytes`, and only text, bytes and JSON values are
created from it; anything else is ignored. A hostile program can at most falsify the result of its
own run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from json.encoder import encode_basestring_ascii
from typing import Any, Final

from wasmsand.sdk import arguments, python_messages
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import DEFAULT_USER, Backend, BackendProcess
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder, SandboxTimeout
from wasmsand.sdk.conversation import Dialect
from wasmsand.sdk.output import TextSink, command_result
from wasmsand.sdk.python_messages import Message
from wasmsand.sdk.python_source import driver_command
from wasmsand.sdk.python_values import NoValue
from wasmsand.sdk.results import CommandResult, DisplayItem, PythonError, PythonResult
from wasmsand.sdk.session import Session, new_identity
from wasmsand.sdk.session_request import SessionRequest

ResultSink = Callable[[DisplayItem], None]
"""Gets what a program displays."""
InputSource = Callable[[str], str | None]
"""Answers `input()`: gets the prompt, and returns a line, or None for the end of the input."""

PROGRAM: Final = "python3"
REQUESTS_FD, ANSWERS_FD = 103, 104
_REPLY_MAX: Final = 32 * 1024
"""Bytes of a reply; it fits in a pipe that the driver has just emptied."""
_QUESTIONS_MAX: Final = 1 << 31
REQUEST_HEADER: Final = re.compile(rb"\Arun ([0-9a-f]{16}) ")
"""The beginning of every request, with its token: see `shell`."""
_ENDED: Final = "ESRCH: the interpreter has ended; open another one with sandbox.python()"


class PythonSession(Session["PythonRun"]):
    """A Python session: variables, functions and imports persist.

    Example:
        with sandbox.python() as session:
            session.run("import math; radius = 2")
            session.run("math.pi * radius ** 2").value
    """

    def __init__(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        *,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        stdin: bytes | str = b"",
        user: str = DEFAULT_USER,
    ) -> None:
        request = builder.request(
            (PROGRAM, "-c", driver_command(REQUESTS_FD, ANSWERS_FD)),
            stdin=arguments.content("stdin", stdin),
            env=env,
            cwd=cwd,
            timeout_ms=None,
            user=user,
            inputs=(REQUESTS_FD,),
            outputs=(ANSWERS_FD,),
        )
        identity = new_identity()
        request = replace(request, session=(self.kind, identity))
        self._open(attachment, attachment.backend.start(request), DIALECT, identity)

    kind = "python"

    @classmethod
    def _continued(
        cls, attachment: Attachment, process: BackendProcess, identity: str
    ) -> PythonSession:
        """The session of an interpreter that was copied with its sandbox."""
        session = cls.__new__(cls)
        session._open(attachment, process, DIALECT, identity)
        return session

    def _capture(self, backend: Backend) -> object:
        """See `Session`."""
        return backend.capture(self._conversation.process)

    def run(
        self,
        code: str,
        *,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
        on_result: ResultSink | None = None,
        on_input: InputSource | None = None,
    ) -> PythonResult:
        """Run statements in this interpreter. Return their output, what they displayed, and the
        value of the last statement if it is an expression.

        Example:
            result = session.run("print('hello'); 1 + 1")
            result.stdout, result.value, result.error, result.results

        `on_stdout` and `on_stderr` get text as it is printed, and `on_result` what is displayed, on
        the calling thread. `on_input` answers the program's `input()`: it gets the prompt, and
        returns a line; the time that it takes does not count towards the timeout. Without it,
        `input()` raises EOFError.

        If the program raises an exception, including `SystemExit`, the result contains it with its
        traceback. After `timeout_ms` (by default the sandbox's; None: never) the program gets a
        KeyboardInterrupt, as with Ctrl-C; the interpreter and its state remain. If the program
        ignores the interrupt, the interpreter is ended about six seconds later. Then, or if the
        program ends the interpreter itself, `closed` is true and the next `run` raises
        `CommandError` (ESRCH).

        One call runs at a time; other threads wait.
        """
        self._attachment.check_open()
        text = arguments.text("code", code)
        timeout = self._check_run(timeout_ms, on_stdout, on_stderr)
        arguments.callback("on_result", on_result)
        arguments.callback("on_input", on_input)
        with self._conversation.turn():
            run = PythonRun(self._attachment.options.max_output_bytes, on_stdout, on_stderr)
            run.on_result, run.on_input = on_result, on_input
            run.reply = self._conversation.reply
            run.now = self._conversation.process.now
            line = request(run.token, text, asks=on_input is not None)
            self._conversation.ask(line, run, timeout)
            self._attachment.check_open()
            return run.result(self._conversation.exit_code)

    def finish(
        self, *, timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT
    ) -> CommandResult:
        """End the interpreter as a program ends: wait for its threads, call its `atexit` functions,
        write what its files have buffered. Return its last output and its exit code.

        Example:
            session.run("log = open('log.txt', 'w'); log.write('all')")
            session.finish().exit_code

        After `timeout_ms` (by default the sandbox's; None: never) it is killed. `close` kills it
        at once.
        """
        self._attachment.check_open()
        timeout = self._check_run(timeout_ms, None, None)
        with self._conversation.turn():
            request = PythonRun(self._attachment.options.max_output_bytes)
            self._conversation.finish(request, timeout)
            return command_result(request.completed(self._conversation.exit_code or 0))


class PythonRun(SessionRequest):
    """The state of one call of a session."""

    repr: str | None = None
    value: Any = None
    has_value: bool = False
    error: PythonError | None = None
    has_answer: bool = False
    on_result: ResultSink | None = None
    on_input: InputSource | None = None
    reply: Callable[[bytes, PythonRun], None]
    now: Callable[[], float]

    def __init__(
        self, limit: int, on_stdout: TextSink | None = None, on_stderr: TextSink | None = None
    ) -> None:
        super().__init__(limit, on_stdout, on_stderr)
        self._room = limit
        self._items: list[DisplayItem] = []
        self._places: dict[str | None, int] = {}
        """Where the items with an ID are."""

    def silence(self) -> None:
        """See `SessionRequest`."""
        super().silence()
        self.on_result = self.on_input = None

    @property
    def is_plain(self) -> bool:
        """Whether there is an answer, and nothing to add to it or to its output."""
        return self.has_answer and not (
            self.timed_out or self.truncated or self.notices or self.is_watched
        )

    def on_display(self, message: Message) -> None:
        """Keep what was displayed, up to the limit."""
        item, cost = python_messages.display_item(message)
        self._room -= cost
        if self._room < 0:
            self.exceed()
        elif not self.truncated:
            self._add(item, is_update=message.header.get("update") is True)

    def _add(self, item: DisplayItem, *, is_update: bool = False, at: int | None = None) -> None:
        place = self._places.get(item.display_id) if is_update else None
        if place is not None:
            self._items[place] = item
        else:
            if item.display_id is not None:
                self._places[item.display_id] = len(self._items)
            self._items.insert(len(self._items) if at is None else at, item)
        if self.on_result is not None:
            self.on_result(item)

    def on_question(self, message: Message) -> None:
        """Ask the caller for a line, and send it."""
        number = message.header.get("number")
        if self.on_input is None or self.timed_out:
            return
        if not isinstance(number, int) or not 0 < number < _QUESTIONS_MAX:
            return
        began = self.now()
        text = self.on_input(message.text("prompt") or "")
        self.paused_seconds += self.now() - began
        if text is not None:
            text = arguments.text("the result of on_input", text).removesuffix("\n")
        reply = json.dumps({"number": number, "text": text}).encode() + b"\n"
        if len(reply) > _REPLY_MAX:
            raise ValueError(f"the result of on_input is too long: more than {_REPLY_MAX} bytes")
        self.reply(reply, self)

    def on_answer(self, message: Message) -> None:
        """Keep the answer, which ends the call."""
        shown = message.text("repr")
        if shown is not None:
            self.repr = shown
            try:
                self.value, self.has_value = python_messages.value_of(message), True
            except NoValue:
                pass  # `repr` describes it
            if not self._items or not any(item.is_main for item in self._items):
                at = message.header.get("at")
                known = isinstance(at, int) and 0 <= at < len(self._items)
                item = DisplayItem({"text/plain": shown}, is_main=True)
                self._add(item, at=at if known else None)
        self.error = python_messages.error_of(message)
        self.answered = self.has_answer = True

    def result(self, exit_code: int | None) -> PythonResult:
        """What `run` returns."""
        if self.is_plain:  # most requests: what `completed` does is not needed
            return PythonResult(
                *self.printed(),
                self.value,
                self.repr,
                self.error,
                self.seconds * 1000,
                results=tuple(self._items),
                has_value=self.has_value,
            )
        completed = self.completed()
        error = self.error
        if not self.has_answer:
            message = "the interpreter was ended"
            if exit_code is not None:
                message = f"the interpreter ended with exit code {exit_code}"
            error = PythonError("InterpreterEnded", message, "")
        return PythonResult(
            stdout=completed.stdout.decode("utf-8", "replace"),
            stderr=completed.stderr.decode("utf-8", "replace"),
            value=self.value,
            repr=self.repr,
            error=error,
            execution_time_ms=completed.seconds * 1000,
            timed_out=completed.timed_out,
            truncated=completed.truncated,
            results=tuple(self._items),
            has_value=self.has_value,
        )


def request(token: str, code: str, *, asks: bool = False) -> bytes:
    """The request to run code, as one line. With `asks`, the host answers `input()`."""
    return f"run {token} {asks:d} {encode_basestring_ascii(code)}\n".encode()


def _on_line(line: bytes, run: PythonRun) -> None:
    """Handle a message, if the line is one."""
    message = None if run.answered else python_messages.parse(line, run.token)
    if message is None:
        return
    if message.kind == "answer":
        run.on_answer(message)
    elif message.kind == "display":
        run.on_display(message)
    elif message.kind == "input":
        run.on_question(message)


DIALECT: Final[Dialect[PythonRun]] = Dialect(
    request_fd=REQUESTS_FD,
    report_fd=ANSWERS_FD,
    line_max=python_messages.LINE_MAX,
    on_report=_on_line,
    ended=_ENDED,
)
