"""Shell and Python sessions of a web machine.

Owns `WebSession`: the conversation with one interpreter, without waiting. What is said is the same
as in `sdk/conversation.py`, which waits on a thread. Rules: one request is made at a time, the
others stand in line. Reports of the interpreter are untrusted. A timeout interrupts the request;
the interpreter is killed only if it does not react.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.process.delivery import kill
from wasmsand.machine.command import CommandRequest, Ended, Output
from wasmsand.sdk import python_session
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.conversation import Dialect
from wasmsand.sdk.errors import CommandError
from wasmsand.sdk.output import command_result
from wasmsand.sdk.python_source import driver_command
from wasmsand.sdk.results import CommandResult, PythonResult
from wasmsand.sdk.session_request import SessionRequest
from wasmsand.sdk.shell import GREETING_MAX
from wasmsand.sdk.shell_protocols import LINES, ShellCommand
from wasmsand.web.commands import StartedCommand
from wasmsand.web.machine import WebMachine

_SIGINT, _SIGKILL, _SIGCONT = 2, 9, 18
_PATIENCE_NS: Final = SECOND // 2
_ROUNDS: Final = 12
_POLITE_ROUNDS: Final = 8
_WAITING_MAX: Final = 1000
_BASH: Final = LINES
Request = TypeVar("Request", bound=SessionRequest)
Failed = Callable[[Exception], None]


@dataclass(slots=True)
class _Order(Generic[Request]):
    """A request that waits for its turn, or is being made."""

    text: bytes
    request: Request
    timeout_ns: int | None
    done: Callable[[Request], None]
    failed: Failed
    began_ns: int = 0
    rounds: int = 0


class WebSession(Generic[Request]):
    """The host's side of a session with one interpreter."""

    def __init__(
        self,
        machine: WebMachine,
        command: CommandRequest,
        dialect: Dialect[Request],
        *,
        opened: Callable[[int], None],
        failed: Failed,
    ) -> None:
        self._machine = machine
        self._loop = machine.loop
        self._dialect = dialect
        self._orders: deque[_Order[Request]] = deque()
        self._report = bytearray()
        self.pid = 0
        self.exit_code: int | None = None
        self.closed = False

        def started(pid: int) -> None:
            self.pid = pid
            opened(pid)

        self._command = StartedCommand(
            machine,
            command,
            on_started=started,
            on_output=self._on_output,
            on_end=self._on_end,
            failed=failed,
        )

    def launch(self) -> None:
        """Start the interpreter."""
        self._command.launch()

    def kill(self) -> None:
        """End the interpreter and everything that it started."""
        self.closed = True
        self._command.kill()

    def ask(
        self,
        text: bytes,
        request: Request,
        timeout_seconds: float | None,
        done: Callable[[Request], None],
        failed: Failed,
    ) -> None:
        """Make a request; `done` gets it when it was answered."""
        if self.closed or len(self._orders) >= _WAITING_MAX:
            problem = self._dialect.ended if self.closed else "EAGAIN: too many requests wait"
            failed(CommandError(problem, problem.partition(":")[0]))
            return
        limit = None if timeout_seconds is None else int(timeout_seconds * SECOND)
        self._orders.append(_Order(text, request, limit, done, failed))
        if len(self._orders) == 1:
            self._begin()

    def _begin(self) -> None:
        order = self._orders[0]
        order.began_ns = self._machine.kernel.clock.monotonic()
        try:
            self._command.write(order.text, self._dialect.request_fd)
        except KernelError as error:
            self._orders.popleft()
            order.failed(CommandError(str(error), error.errno.name))
            return
        order.request.begun = order.request.sent = True
        if order.timeout_ns is not None:
            self._loop.at(order.began_ns + order.timeout_ns, self._expire)

    # What the interpreter says.

    def _on_output(self, fd: int, data: bytes) -> None:
        # A request bounds what it keeps, so nothing has to wait for the page.
        self._command.window.taken(len(data))
        if not self._orders:
            return  # output of background jobs between two requests is dropped
        order = self._orders[0]
        if fd != self._dialect.report_fd:
            order.request.receive(Output(fd, data))
        else:
            self._listen(data, order.request)
        if order.request.answered:
            self._finish()
        elif order.request.truncated and not order.rounds:
            self._interrupt()

    def _listen(self, data: bytes, request: Request) -> None:
        report, most = self._report, self._dialect.line_max
        *lines, rest = data.split(b"\n")
        for line in lines:
            report += line
            self._dialect.on_report(bytes(report[-most:]), request)
            report.clear()
        report += rest
        del report[:-most]

    def _on_end(self, ended: Ended) -> None:
        self.exit_code, self.closed = ended.exit_code, True
        if self._orders:
            self._orders[0].request.answered = True
            self._finish()
        while self._orders:
            order = self._orders.popleft()
            order.failed(CommandError(self._dialect.ended, "ESRCH"))

    def _finish(self) -> None:
        order = self._orders.popleft()
        self._loop.not_at(self._expire)
        self._loop.not_at(self._interrupt)
        now = self._machine.kernel.clock.monotonic()
        order.request.seconds = (now - order.began_ns) / SECOND
        order.done(order.request)
        if self._orders:
            self._loop.soon(self._begin)

    # Timeouts.

    def _expire(self) -> None:
        if self._orders:
            self._orders[0].request.timed_out = True
            self._interrupt()

    def interrupt(self) -> None:
        """Interrupt the current request, as Ctrl-C does."""
        if self._orders:
            self._interrupt()

    def _interrupt(self) -> None:
        order = self._orders[0]
        order.rounds += 1
        if order.rounds > _ROUNDS:
            order.request.notices.append(
                "the session did not react to an interrupt and was ended; its state is lost"
            )
            self.kill()
            return
        self._signal_all(_SIGINT if order.rounds <= _POLITE_ROUNDS else _SIGKILL)
        if self._dialect.reminder is not None:
            try:
                self._command.write(self._dialect.reminder(order.request), self._dialect.request_fd)
            except KernelError:
                pass  # it has ended, which its end tells
        self._loop.at(self._machine.kernel.clock.monotonic() + _PATIENCE_NS, self._interrupt)

    def _signal_all(self, number: int) -> None:
        kernel = self._machine.kernel
        children = [p.pid for p in kernel.processes.job(self.pid) if p.pid != self.pid]
        # The interpreter first: otherwise it would go on when its child has ended.
        targets = [(self.pid, _SIGINT), (self.pid, _SIGCONT)]
        for pid, signal in targets + [(pid, number) for pid in children]:
            try:
                kill(kernel, kernel.init, pid, signal)
            except KernelError:
                pass  # it has ended meanwhile


def new_shell(
    machine: WebMachine,
    builder: CommandBuilder,
    env: Mapping[str, str] | None,
    cwd: str | None,
    *,
    opened: Callable[[int], None],
    failed: Failed,
) -> WebSession[Any]:
    """A bash session; `opened` gets its pid when it is ready."""
    request = builder.request(
        _BASH.argv,
        stdin=_BASH.stdin,
        env=env,
        cwd=cwd,
        timeout_ms=None,
        inputs=_BASH.inputs,
        outputs=(_BASH.dialect.report_fd,),
    )
    request = replace(request, environ={**request.environ, "PS1": "", "PS2": ""})

    def started(pid: int) -> None:
        greeting = ShellCommand(GREETING_MAX)
        first = _BASH.first_request(greeting.token)
        session.ask(first, greeting, None, lambda _: opened(pid), failed)

    session: WebSession[Any] = WebSession(
        machine, request, _BASH.dialect, opened=started, failed=failed
    )
    return session


def run_in_shell(
    session: WebSession[Any],
    script: str,
    limit: int,
    timeout_seconds: float | None,
    sinks: tuple[Callable[[str], None] | None, Callable[[str], None] | None],
    done: Callable[[CommandResult], None],
    failed: Failed,
) -> None:
    """Run a script in a bash session."""
    run = ShellCommand(limit, *sinks)

    def answered(command: Any) -> None:
        if command.exit_code is None:
            command.exit_code = session.exit_code
        done(command_result(command.completed(command.exit_code or 0)))

    session.ask(_BASH.request(run.token, script, "", ""), run, timeout_seconds, answered, failed)


def new_python(
    machine: WebMachine,
    builder: CommandBuilder,
    env: Mapping[str, str] | None,
    cwd: str | None,
    *,
    opened: Callable[[int], None],
    failed: Failed,
) -> WebSession[Any]:
    """A Python session."""
    requests, answers = python_session.REQUESTS_FD, python_session.ANSWERS_FD
    request = builder.request(
        (python_session.PROGRAM, "-c", driver_command(requests, answers)),
        stdin=b"",
        env=env,
        cwd=cwd,
        timeout_ms=None,
        inputs=(requests,),
        outputs=(answers,),
    )
    return WebSession(machine, request, python_session.DIALECT, opened=opened, failed=failed)


def run_in_python(
    session: WebSession[Any],
    code: str,
    limit: int,
    timeout_seconds: float | None,
    sinks: tuple[Callable[[str], None] | None, Callable[[str], None] | None],
    on_result: python_session.ResultSink | None,
    done: Callable[[PythonResult], None],
    failed: Failed,
) -> None:
    """Run code in a Python session."""
    run = python_session.PythonRun(limit, *sinks)
    run.on_result = on_result

    def answered(answer: Any) -> None:
        done(answer.result(session.exit_code))

    session.ask(python_session.request(run.token, code), run, timeout_seconds, answered, failed)
