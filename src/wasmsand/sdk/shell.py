"""`Shell`: one bash that keeps its state between commands, from `sandbox.shell()`.

Owns the part of the API; `shell_protocols` has what is said to bash. Rules: a bash that does not
know our session mode ends at once, and is then started in the way that any bash understands. The
identity of a shell tells which of the two it is, so that a copy is continued in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import DEFAULT_USER, Backend, BackendProcess
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder, SandboxTimeout
from wasmsand.sdk.errors import CommandError, FileError, StateError
from wasmsand.sdk.output import TextSink
from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.session import Session, new_identity
from wasmsand.sdk.shell_protocols import LINES, SESSION_MODE, STATUS_FD, ShellCommand, ShellProtocol

GREETING_MAX: Final = 65536
_FORK_SECONDS: Final = 10.0
_USAGE_ERROR: Final = 2
"""The exit code of a bash that does not know an option."""
_OF_LINES: Final = "-lines"
"""The end of the identity of a shell with the protocol `LINES`."""


class Shell(Session["ShellCommand"]):
    """A bash session: working directory, variables, functions and background jobs persist.

    Example:
        with sandbox.shell() as shell:
            shell.run("cd /tmp; name=world; greet() { echo hello $1; }")
            shell.run("greet $name; pwd").stdout
    """

    _protocol: ShellProtocol

    def __init__(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        *,
        env: Mapping[str, str] | None,
        cwd: object,
        user: str = DEFAULT_USER,
    ) -> None:
        is_ours = getattr(attachment.backend, "has_our_bash", True)
        for protocol in (SESSION_MODE, LINES) if is_ours else (LINES,):
            self._begin(attachment, builder, protocol, env=env, cwd=cwd, user=user)
            try:
                self._prepare(attachment)
            except CommandError as error:
                if protocol is LINES or error.errno_name != "ESRCH":
                    raise
            else:
                if self._conversation.exit_code != _USAGE_ERROR:
                    return

    def _begin(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        protocol: ShellProtocol,
        *,
        env: Mapping[str, str] | None,
        cwd: object,
        user: str,
    ) -> None:
        request = builder.request(
            protocol.argv,
            stdin=protocol.stdin,
            env=env,
            cwd=cwd,
            timeout_ms=None,
            user=user,
            inputs=protocol.inputs,
            outputs=(STATUS_FD,),
        )
        identity = new_identity() + (_OF_LINES if protocol is LINES else "")
        # Prompts would be part of the output.
        request = replace(
            request,
            environ={**request.environ, "PS1": "", "PS2": ""},
            session=(self.kind, identity),
        )
        self._protocol = protocol
        self._open(attachment, attachment.backend.start(request), protocol.dialect, identity)

    def _prepare(self, attachment: Attachment) -> None:
        """Wait until bash is ready, or has ended."""
        with self._conversation.turn():
            # Bash complains about the missing terminal before it reports the first status.
            greeting = ShellCommand(GREETING_MAX)
            limit = arguments.timeout_seconds("timeout_ms", attachment.options.timeout_ms)
            first = self._protocol.first_request(greeting.token)
            self._conversation.ask(first, greeting, limit)
            if greeting.timed_out:
                self.close()
                raise CommandError("ETIMEDOUT: the shell did not start in time", "ETIMEDOUT")

    kind = "shell"

    @classmethod
    def _continued(cls, attachment: Attachment, process: BackendProcess, identity: str) -> Shell:
        """The session of a shell that was copied with its sandbox."""
        shell = cls.__new__(cls)
        shell._protocol = LINES if identity.endswith(_OF_LINES) else SESSION_MODE
        shell._open(attachment, process, shell._protocol.dialect, identity)
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
            inline_max = self._protocol.inline_max
            if payload is None and (inline_max is None or len(script) * 4 <= inline_max):
                self._run(script, run, timeout)
            else:
                with ExitStack() as files:
                    path = "" if payload is None else self._put("stdin", payload, run, files)
                    self._run(script, run, timeout, path, self._script_file(script, run, files))
            self._attachment.check_open()
            return run.result()

    def _script_file(self, script: str, run: ShellCommand, files: ExitStack) -> str:
        """The path of a file with the script; empty if the script can be part of the request."""
        content = script.encode("utf-8", "surrogateescape")
        inline_max = self._protocol.inline_max
        if inline_max is not None and len(content) > inline_max:
            with suppress(FileError):  # the file system is full: a script that makes room must run
                return self._put("script", content + b"\n", run, files)
        return ""

    def _put(self, name: str, content: bytes, run: ShellCommand, files: ExitStack) -> str:
        """Create a file that is removed when `files` closes. Returns its path."""
        path = f"/tmp/.wasmsand-{name}-{run.token}"
        self._attachment.backend.write_file(path, content, mode=0o600)
        files.callback(self._remove, path)
        return path

    def _remove(self, path: str) -> None:
        if not self._attachment.closed:
            try:
                self._attachment.backend.remove(path)
            except FileError:
                pass  # the script has removed it

    def _run(
        self,
        script: str,
        command: ShellCommand,
        timeout_seconds: float | None,
        stdin: str = "",
        file: str = "",
    ) -> None:
        """Let bash run a script. The caller must have the turn."""
        request = self._protocol.request(command.token, script, stdin, file)
        self._conversation.ask(request, command, timeout_seconds)
        if command.exit_code is None:
            command.exit_code = self._conversation.exit_code
