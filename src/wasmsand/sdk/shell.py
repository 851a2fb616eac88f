"""`Shell`: one bash that keeps its state between commands, from `sandbox.shell()`.

How it works: an interactive bash (without a terminal, so without prompts, history and job
control) reads lines from a pipe. For each command it gets two lines: one runs the script with the
command's own standard files, the other prints the exit status on a separate descriptor
(`conversation`). A long script is passed in a file, so that the line is short: a pipe accepts a
short line completely or not at all, and bash never takes a part of a script for a separate line.
Bash is interactive because SIGINT then ends the command and not the shell, so the shell stays
usable after a timeout. Bash without job control starts background jobs so that they ignore SIGINT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import DEFAULT_USER, Backend, BackendProcess
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder, SandboxTimeout
from wasmsand.sdk.conversation import Dialect
from wasmsand.sdk.errors import CommandError, FileError, StateError
from wasmsand.sdk.output import TextSink, command_result
from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.session import Session, new_identity
from wasmsand.sdk.session_request import SessionRequest

ARGV: Final = ("/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
_OUT, _ERR, STATUS_FD, _SCRIPT = 101, 102, 103, 104
"""Descriptors of the shell: the command's outputs, its exit status, its script."""
PREPARE: Final = (
    "set +o history +o histexpand; unset HISTFILE MAILCHECK; export -n PS1 PS2; "
    f"exec {_OUT}>&1 {_ERR}>&2 >/dev/null 2>&1; "
)
GREETING_MAX: Final = 65536
_FORK_SECONDS: Final = 10.0
_INLINE_MAX: Final = 2048
"""Bytes of a script that are part of the line."""
STATUS_REQUEST: Final = re.compile(rb"\\builtin echo ([0-9a-f]{16}) \$\? >&%d\n\Z" % STATUS_FD)
"""The end of every request, with its token. A server finds out from it whether a shell that a
client drives has a request."""
_STATUS_LINE: Final = re.compile(rb"([0-9a-f]{16}) (\d{1,3})")
_STATUS_LINE_MAX: Final = 20
_ENDED: Final = "ESRCH: the shell has ended; open another one with sandbox.shell()"


class Shell(Session["ShellCommand"]):
    """A bash session: working directory, variables, functions and background jobs persist.

    Example:
        with sandbox.shell() as shell:
            shell.run("cd /tmp; name=world; greet() { echo hello $1; }")
            shell.run("greet $name; pwd").stdout
    """

    def __init__(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        *,
        env: Mapping[str, str] | None,
        cwd: object,
        user: str = DEFAULT_USER,
    ) -> None:
        request = builder.request(
            ARGV, stdin=None, env=env, cwd=cwd, timeout_ms=None, user=user, outputs=(STATUS_FD,)
        )
        # Prompts would be part of the output.
        identity = new_identity()
        request = replace(
            request,
            environ={**request.environ, "PS1": "", "PS2": ""},
            session=(self.kind, identity),
        )
        self._open(attachment, attachment.backend.start(request), DIALECT, identity)
        with self._conversation.turn():
            # Bash complains about the missing terminal before it prints the first status.
            greeting = ShellCommand(GREETING_MAX)
            limit = arguments.timeout_seconds("timeout_ms", attachment.options.timeout_ms)
            self._run(PREPARE, greeting, limit)
            if greeting.timed_out:
                self.close()
                raise CommandError("ETIMEDOUT: the shell did not start in time", "ETIMEDOUT")

    kind = "shell"

    @classmethod
    def _continued(cls, attachment: Attachment, process: BackendProcess, identity: str) -> Shell:
        """The session of a shell that was copied with its sandbox."""
        shell = cls.__new__(cls)
        shell._open(attachment, process, DIALECT, identity)
        return shell

    def _capture(self, backend: Backend) -> object:
        """See `Session`. Bash is copied while it starts a subshell."""

        take = backend.capture_at_fork(self._conversation.process)
        command, problem = ShellCommand(GREETING_MAX), ""
        try:
            self._run("(\\builtin :)", command, _FORK_SECONDS)
        except CommandError:
            problem = "it has ended"
        if problem or command.timed_out:
            with suppress(StateError):
                take()
            raise StateError(problem or "it does not react")
        return take()

    def run(
        self,
        command: str,
        *,
        stdin: bytes | str | None = None,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Run a script in this shell, wait for its end and return its result.

        Example:
            shell.run("cd project && make", timeout_ms=60_000).exit_code

        Arguments and result are those of `sandbox.commands.run`. After `timeout_ms` the script
        is interrupted, as with Ctrl-C, and the result has exit code 124; the shell, its state and
        its background jobs remain. If the script ignores the interrupt (`trap '' INT`), the shell
        is ended about six seconds later: then standard error says so, and `closed` is true.

        Output of background jobs belongs to the result of the command during which it is read.
        Redirections of standard files with `exec` last until the end of `command`. A script that
        ends the shell (`exit 3`) returns a result too; the next `run` raises `CommandError`
        (ESRCH).

        One command runs at a time; other threads wait.
        """
        self._attachment.check_open()
        script = arguments.text("command", command)
        payload = None if stdin is None else arguments.content("stdin", stdin)
        timeout = self._check_run(timeout_ms, on_stdout, on_stderr)
        with self._conversation.turn():
            run = ShellCommand(self._attachment.options.max_output_bytes, on_stdout, on_stderr)
            with ExitStack() as files:
                stdin_path = "/dev/null"
                if payload is not None:
                    stdin_path = f"/tmp/.wasmsand-stdin-{run.token}"
                    self._put(stdin_path, payload, files)
                self._run(script_line(stdin_path, self._source(script, run, files)), run, timeout)
            self._attachment.check_open()
            return run.result()

    def _source(self, script: str, run: ShellCommand, files: ExitStack) -> str:
        """The redirection with which bash reads the script."""
        content = script.encode("utf-8", "surrogateescape")
        if len(content) > _INLINE_MAX:
            path = f"/tmp/.wasmsand-script-{run.token}"
            try:
                self._put(path, content + b"\n", files)
                return f"<{path}"
            except FileError:
                pass  # the file system is full: a script that makes room must run
        quoted = script.replace("'", "'\\''")
        return f"<<<'{quoted}'"

    def _put(self, path: str, content: bytes, files: ExitStack) -> None:
        """Create a file that is removed when `files` closes."""
        self._attachment.backend.write_file(path, content, mode=0o600)
        files.callback(self._remove, path)

    def _remove(self, path: str) -> None:
        if not self._attachment.closed:
            try:
                self._attachment.backend.remove(path)
            except FileError:
                pass  # the script has removed it

    def _run(self, line: str, command: ShellCommand, timeout_seconds: float | None) -> None:
        """Let bash execute a line and then print its status. The caller must have the turn."""
        self._conversation.ask(command_text(line, command.token), command, timeout_seconds)
        if command.exit_code is None:
            command.exit_code = self._conversation.exit_code


class ShellCommand(SessionRequest):
    """The state of one command of a shell."""

    exit_code: int | None = None

    def result(self) -> CommandResult:
        """What `run` returns."""
        return command_result(self.completed(self.exit_code or 0))


def _on_status(line: bytes, command: ShellCommand) -> None:
    match = _STATUS_LINE.fullmatch(line)
    if match is not None and match[1] == command.token.encode():
        command.exit_code = int(match[2])
        command.answered = True


def command_text(line: str, token: str) -> bytes:
    """What makes bash execute a line and then print its status."""
    return f"{line}\n{_tell_status(token)}".encode("utf-8", "surrogateescape")


def script_line(stdin: str, source: str) -> str:
    """The line that runs a script. `source`, not `eval`: it is silent about background jobs."""
    return f"{{ \\builtin . /dev/fd/{_SCRIPT}; }} 0<{stdin} 1>&{_OUT} 2>&{_ERR} {_SCRIPT}{source}"


def _tell_status(token: str) -> str:
    return f"\\builtin echo {token} $? >&{STATUS_FD}\n"


DIALECT: Final[Dialect[ShellCommand]] = Dialect(
    report_fd=STATUS_FD,
    line_max=_STATUS_LINE_MAX,
    on_report=_on_status,
    # Bash may drop lines that were sent before the signal.
    reminder=lambda command: _tell_status(command.token).encode(),
    ended=_ENDED,
)
