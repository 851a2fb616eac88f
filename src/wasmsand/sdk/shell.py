"""`Shell`: one bash that keeps its state between commands, from `sandbox.shell()`.

How it works: an interactive bash (without a terminal, so without prompts, history and job
control) reads lines from a pipe. For each command it gets two: one that runs the script with
the command's own standard files, one that tells the exit status on a descriptor of its own.
Output of all descriptors comes in one order, so what stands before the status is the
command's. Interactive, because SIGINT then ends the command and not the shell: that is how a
time limit leaves the shell usable.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import (
    CANCELLATION,
    STDERR,
    STDOUT,
    CommandRequest,
    Completed,
    Ended,
    Output,
)
from wasmsand.sdk.environment import Environment, command_environment
from wasmsand.sdk.errors import CommandError
from wasmsand.sdk.output import TextDecoder, TextSink, command_result, output_limit_notice
from wasmsand.sdk.results import CommandResult

_ARGV: Final = ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
_OUT, _ERR, _STATUS, _SCRIPT = 101, 102, 103, 104
"""Descriptors of the shell: the command's outputs, its exit status, its script."""
_PREPARE: Final = (
    "set +o history +o histexpand; unset HISTFILE MAILCHECK; export -n PS1 PS2; "
    f"exec {_OUT}>&1 {_ERR}>&2 >/dev/null 2>&1; "
)
_GREETING_MAX: Final = 65536
_STATUS_LINE: Final = re.compile(rb"([0-9a-f]{16}) (\d{1,3})")
_STATUS_LINE_MAX: Final = 20
_SIGINT, _SIGKILL = 2, 9
_PATIENCE_SECONDS: Final = 0.5
_POLITE_ROUNDS, _FIRM_ROUNDS = 3, 4
_KILLED_EXIT_CODE: Final = 137
_ENDED: Final = "ESRCH: the shell has ended; open another one with sandbox.shell()"


class Shell:
    """A bash that goes on living: directory, variables, functions and background jobs stay.

    Example:
        with sandbox.shell() as shell:
            shell.run("cd /tmp; name=world; greet() { echo hello $1; }")
            shell.run("greet $name; pwd").stdout
    """

    def __init__(
        self,
        attachment: Attachment,
        environment: Environment,
        *,
        env: Mapping[str, str] | None,
        cwd: object,
    ) -> None:
        self._attachment = attachment
        extra = arguments.variables("env", env)
        directory = attachment.cwd
        if cwd is not None:
            directory = arguments.guest_path("cwd", cwd, directory)
        environ = command_environment(environment.chosen(), extra, cwd=directory)
        request = CommandRequest(
            _ARGV,
            # Prompts would be part of the output.
            {**environ, "PS1": "", "PS2": ""},
            directory,
            stdin=None,
            extra_outputs=(_STATUS,),
        )
        self._process = attachment.backend.start(request)
        self._signalling = threading.Lock()
        """Held while a command is interrupted: what follows it must not be."""
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._status_bytes = b""
        self._has_ended = False
        with self._lock:
            # What bash says of having no terminal comes before the first status.
            self._run(_PREPARE, _Run(_GREETING_MAX), None)

    @property
    def pid(self) -> int:
        """The process id of the shell in the sandbox."""
        return self._process.pid

    @property
    def closed(self) -> bool:
        """Whether the shell is known to have ended: by `close`, by a command (`exit`), or with
        the sandbox."""
        return self._attachment.closed or self._has_ended

    def run(
        self,
        command: str,
        *,
        stdin: bytes | str | None = None,
        timeout_ms: float | None = None,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Run a script in this shell and return what it printed.

        Example:
            shell.run("cd project && make", timeout_ms=60_000).exit_code

        Arguments and result are those of `sandbox.commands.run`. After `timeout_ms` the script
        is interrupted, as by Ctrl-C, and the result has exit code 124; the shell, its state and
        its background jobs stay. Only a script that resists (`trap '' INT`) takes the shell with
        it.

        Output of background jobs is part of the result of the command during which it is read.
        Redirections of standard files by `exec` last until the end of `command`. A script that
        ends the shell (`exit 3`) is a result too; the next `run` raises `CommandError` (ESRCH).

        One command runs at a time; other threads wait.
        """
        self._attachment.check_open()
        script = arguments.text("command", command)
        payload = None if stdin is None else arguments.content("stdin", stdin)
        options = self._attachment.options
        timeout = arguments.timeout_seconds(
            "timeout_ms", options.timeout_ms if timeout_ms is None else timeout_ms
        )
        arguments.callback("on_stdout", on_stdout)
        arguments.callback("on_stderr", on_stderr)
        with self._lock:
            run = _Run(options.max_output_bytes, on_stdout, on_stderr)
            path = "/dev/null"
            if payload is not None:
                path = f"/tmp/.wasmsand-stdin-{run.token}"
                self._attachment.backend.write_file(path, payload, mode=0o600)
            cancellation = CANCELLATION.get()
            if cancellation is not None:
                cancellation.on_cancel(lambda: self._give_up(run))
            try:
                self._run(_line(script, path), run, timeout)
            finally:
                if payload is not None and not self._attachment.closed:
                    self._attachment.backend.remove(path)
            self._attachment.check_open()
            return run.result()

    def close(self) -> None:
        """End the shell and everything that it started. Calling it again does nothing.

        Example:
            shell.close()
        """
        self._has_ended = True
        if not self._attachment.closed:
            self._process.kill()

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Shell pid={self.pid}{' ended' if self.closed else ''}>"

    # Inside: called with the lock.

    def _run(self, line: str, run: _Run, timeout_seconds: float | None) -> None:
        """Have bash execute a line, and take what it prints, until its status comes."""
        began = time.monotonic()
        deadline = None if timeout_seconds is None else began + timeout_seconds
        try:
            self._send(f"{line}\n{_tell_status(run.token)}")
            while run.exit_code is None and not run.truncated:
                self._take(run, None if deadline is None else deadline - time.monotonic())
            if run.exit_code is None:
                self._end(run)
        except TimeoutError:
            run.timed_out = True
            self._end(run)
        except BaseException:  # the caller gave up: so does its command
            run.silence()
            if not self.closed:
                self._end(run)
            raise
        finally:
            with self._signalling:
                run.is_over.set()
        run.seconds = time.monotonic() - began

    def _send(self, line: str) -> None:
        """Give bash a line to execute."""
        if self._has_ended:
            raise CommandError(_ENDED, "ESRCH")
        try:
            self._process.write(line.encode("utf-8", "surrogateescape"))
        except CommandError as error:
            self._has_ended = True
            raise CommandError(_ENDED, "ESRCH") from error

    def _take(self, run: _Run, timeout_seconds: float | None) -> None:
        """Wait for output, and give it to the run."""
        outputs = self._process.read(None if timeout_seconds is None else max(0.0, timeout_seconds))
        if not outputs:
            ended = self._process.wait()
            assert ended is not None, "wait() without a time limit waits"
            run.exit_code = ended.exit_code
            self._has_ended = True
        for output in outputs:
            if output.fd != _STATUS:
                run.receive(output)
                continue
            *lines, rest = (self._status_bytes + output.data).split(b"\n")
            # Commands can write there too, whatever they like.
            self._status_bytes = rest[-_STATUS_LINE_MAX:]
            for line in lines:
                if match := _STATUS_LINE.fullmatch(line):
                    token, exit_code = match.groups()
                    if token == run.token.encode():
                        run.exit_code = int(exit_code)

    def _end(self, run: _Run) -> None:
        """End the command that runs, on the thread that waits for it."""

        def has_ended() -> bool:
            deadline = time.monotonic() + _PATIENCE_SECONDS
            try:
                while run.exit_code is None:
                    self._take(run, deadline - time.monotonic())
            except TimeoutError:
                return False
            return True

        self._interrupt(run, has_ended)
        while run.exit_code is None:
            self._take(run, None)

    def _give_up(self, run: _Run) -> None:
        """End the command that runs, on another thread than the one that waits for it."""
        self._interrupt(run, lambda: run.is_over.wait(_PATIENCE_SECONDS))

    def _interrupt(self, run: _Run, has_ended: Callable[[], bool]) -> None:
        """Interrupt the command until it has ended. If that cannot be, end the shell."""
        for round_ in range(_POLITE_ROUNDS + _FIRM_ROUNDS):
            with self._signalling:
                if run.is_over.is_set():
                    return
                # Background jobs ignore SIGINT: bash without job control starts them so.
                self._signal_all(_SIGINT if round_ < _POLITE_ROUNDS else _SIGKILL)
                try:
                    # Bash may drop lines that were sent before the signal.
                    self._send(_tell_status(run.token))
                except CommandError:  # it has ended
                    break
            if has_ended():
                return
        self.close()

    def _signal_all(self, number: int) -> None:
        backend = self._attachment.backend
        pid = self.pid
        children = [p.pid for p in backend.processes() if p.command_pid == pid and p.pid != pid]
        # The shell first: one that has not heard of an interrupt goes on with the next command
        # when a child ends by it.
        for target, signal in [(pid, _SIGINT), *((child, number) for child in children)]:
            try:
                backend.signal(target, signal)
            except CommandError:
                pass  # it has ended meanwhile


class _Run:
    """What one command of a shell has done so far."""

    def __init__(
        self, limit: int, on_stdout: TextSink | None = None, on_stderr: TextSink | None = None
    ) -> None:
        self.token = secrets.token_hex(8)
        self.exit_code: int | None = None
        self.timed_out = False
        self.truncated = False
        self.is_over = threading.Event()
        self.seconds = 0.0
        self._limit = limit
        self._kept = {STDOUT: bytearray(), STDERR: bytearray()}
        self._sinks: dict[int, TextSink | None] = {STDOUT: on_stdout, STDERR: on_stderr}
        self._decoder = TextDecoder()

    def receive(self, output: Output) -> None:
        """Keep what fits, and hand it on."""
        kept = self._kept[output.fd]
        data = output.data[: self._limit - len(kept)]
        if len(data) < len(output.data):
            self.truncated = True
        kept += data
        sink = self._sinks[output.fd]
        text = self._decoder.decode(Output(output.fd, data))
        if sink is not None and text:
            sink(text)

    def silence(self) -> None:
        """Call no callback any more."""
        self._sinks = {STDOUT: None, STDERR: None}

    def result(self) -> CommandResult:
        """What `run` returns."""
        for fd, sink in self._sinks.items():
            if sink is not None and (text := self._decoder.rest(fd)):
                sink(text)
        exit_code = _KILLED_EXIT_CODE if self.truncated else self.exit_code or 0
        stderr = bytes(self._kept[STDERR])
        if self.truncated:
            stderr += f"wasmsand: {output_limit_notice(self._limit)}\n".encode()
        ended = Ended(exit_code, self.timed_out and not self.truncated, self.seconds)
        return command_result(Completed(ended, bytes(self._kept[STDOUT]), stderr, self.truncated))


def _line(script: str, stdin: str) -> str:
    """The line that runs a script. `source`, not `eval`: it is silent about background jobs."""
    quoted = script.replace("'", "'\\''")
    return (
        f"{{ \\builtin . /dev/fd/{_SCRIPT}; }} 0<{stdin} 1>&{_OUT} 2>&{_ERR} {_SCRIPT}<<<'{quoted}'"
    )


def _tell_status(token: str) -> str:
    return f"\\builtin echo {token} $? >&{_STATUS}\n"
