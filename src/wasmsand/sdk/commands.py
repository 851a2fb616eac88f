"""Running commands in a sandbox: `sandbox.commands`.

Rules: a command that fails is a result, not an exception; an exception means that it
could not be started. Each command is a process tree of its own: files stay, shell
variables do not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wasmsand.sdk import arguments
from wasmsand.sdk.environment import Environment, command_environment
from wasmsand.sdk.errors import command_errors
from wasmsand.sdk.handle import Handle
from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.streaming import BytesSink, TextSink, run_with_callbacks

if TYPE_CHECKING:
    from wasmsand.machine import Completed

SHELL = ("/bin/bash", "-c")
TIMEOUT_EXIT_CODE = 124
"""What GNU `timeout` returns when the time is over."""


class Commands:
    """Run programs in one sandbox."""

    def __init__(
        self, handle: Handle, environment: Environment, timeout_seconds: float | None
    ) -> None:
        self._handle = handle
        self._environment = environment
        self._timeout_seconds = timeout_seconds

    def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_ms: float | None = None,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Run `command` to its end and return what it printed.

        A str is a script for bash; a sequence is a program, found by PATH, and its
        arguments, with no shell between. `env` is added to the sandbox's variables for
        this command; `cwd` and `timeout_ms` replace the sandbox's own. `on_stdout` and
        `on_stderr` get text as it is printed, on the calling thread.

        The result is there when the command has ended. A process that it left in the
        background goes on; what that prints later is dropped.

        After `timeout_ms` every process of the command is killed, and the result has
        exit code 124, `command timed out` on stderr and what was printed until then.
        The sandbox goes on working.
        """
        machine = self._handle.machine
        argv = arguments.command_line(command, SHELL)
        payload = b"" if stdin is None else arguments.content("stdin", stdin)
        extra = arguments.variables("env", env)
        directory = self._handle.cwd
        if cwd is not None:
            directory = arguments.guest_path("cwd", cwd, self._handle.cwd)
        timeout = self._timeout_seconds
        if timeout_ms is not None:
            timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        arguments.callback("on_stdout", on_stdout)
        arguments.callback("on_stderr", on_stderr)

        def start(out: BytesSink | None, err: BytesSink | None) -> Completed:
            return machine.run(
                argv,
                environ=command_environment(self._environment.chosen(), extra, cwd=directory),
                cwd=directory,
                stdin=payload,
                timeout_seconds=timeout,
                on_stdout=out,
                on_stderr=err,
            )

        with command_errors(argv[0].decode("utf-8", "replace")):
            if on_stdout is None and on_stderr is None:
                completed = start(None, None)
            else:
                completed = run_with_callbacks(start, on_stdout, on_stderr)
        # Killed meanwhile: what the command printed until then is not a result.
        self._handle.check_open()
        return _result(completed)


def _result(completed: Completed) -> CommandResult:
    exit_code, stderr = completed.exit_code, completed.stderr
    if completed.timed_out:
        exit_code = TIMEOUT_EXIT_CODE
        if stderr and not stderr.endswith(b"\n"):
            stderr += b"\n"
        stderr += b"command timed out\n"
    return CommandResult(
        stdout=completed.stdout.decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace"),
        exit_code=exit_code,
        execution_time_ms=completed.seconds * 1000,
        stdout_bytes=completed.stdout,
        stderr_bytes=stderr,
        timed_out=completed.timed_out,
        truncated=completed.truncated,
    )
