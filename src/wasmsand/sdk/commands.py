"""Running commands in a sandbox: `sandbox.commands`.

Rules: a command that fails returns a result; an exception means that it could not be started.
Each command is a separate process tree: files persist, shell variables do not.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping, Sequence

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import CANCELLATION
from wasmsand.sdk.command_builder import (
    SANDBOX_TIMEOUT,
    CommandBuilder,
    SandboxTimeout,
    SandboxUser,
)
from wasmsand.sdk.command_handle import CommandHandle
from wasmsand.sdk.output import Collector, TextSink, command_result
from wasmsand.sdk.results import CommandResult, ProcessInfo


class Commands:
    """Run programs in one sandbox.

    Example:
        sandbox.commands.run("echo hello | tr a-z A-Z").stdout
    """

    def __init__(self, attachment: Attachment, builder: CommandBuilder) -> None:
        self._attachment = attachment
        self._builder = builder

    def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        user: SandboxUser = "user",
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Run `command`, wait for its end and return its result.

        Example:
            result = sandbox.commands.run("sort | uniq -c", stdin="b\\na\\nb\\n")
            result.stdout, result.exit_code

        A str is a script for bash. A sequence is a program, searched for in PATH, and its
        arguments; no shell is involved. `env` adds variables for this command; `cwd` and
        `timeout_ms` replace the sandbox's values. With `user="root"` the command runs as the
        sandbox's own root, who may change every file of the sandbox and has no other rights.
        `on_stdout` and `on_stderr` get text as it is printed, on the calling thread; if one of
        them raises an exception, the command is ended and `run` raises that exception.

        `run` returns when the command has ended. A process that the command left in the
        background keeps running; its later output is dropped.

        After `timeout_ms` every process of the command is killed. The result then has exit code
        124, `command timed out` on stderr, and the output so far. The sandbox stays usable. With
        `timeout_ms=None` the command has no time limit.
        """
        backend = self._attachment.backend
        request = self._builder.request(
            command,
            stdin=b"" if stdin is None else stdin,
            env=env,
            cwd=cwd,
            timeout_ms=timeout_ms,
            user=user,
        )
        arguments.callback("on_stdout", on_stdout)
        arguments.callback("on_stderr", on_stderr)
        cancellation = CANCELLATION.get()
        if on_stdout is None and on_stderr is None:
            result = command_result(backend.run(request, cancellation))
        else:
            process = backend.start(request)
            if cancellation is not None:
                cancellation.on_cancel(process.kill)
            collector = Collector(process, self._attachment.options.max_output_bytes)
            try:
                result = collector.collect(on_stdout, on_stderr)
            except BaseException:  # the caller gave up: end its command
                process.kill()
                raise
        # If the sandbox was killed meanwhile, the output so far is not a result.
        self._attachment.check_open()
        return result

    def start(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_ms: float | None = None,
        user: SandboxUser = "user",
    ) -> CommandHandle:
        """Start `command` and return while it is running.

        Example:
            with sandbox.commands.start("cat -n") as cat:
                cat.write_stdin("hello\\n")
                cat.close_stdin()
                print(cat.wait().stdout)

        The arguments are those of `run`, with two differences. Without `stdin`, the command's
        input stays open until `close_stdin`. Without `timeout_ms`, there is no time limit: the
        sandbox's `timeout_ms` does not apply.

        If you do not read the output, the command waits when a buffer of 256 KiB is full, as at
        a pipe.
        """
        backend = self._attachment.backend
        request = self._builder.request(
            command, stdin=stdin, env=env, cwd=cwd, timeout_ms=timeout_ms, user=user
        )
        process = backend.start(request)
        return CommandHandle(self._attachment, process, command)

    def list(self) -> builtins.list[ProcessInfo]:
        """List every process in the sandbox, by pid: those of commands, and those that commands
        left in the background.

        Example:
            [process.argv for process in sandbox.commands.list()]
        """
        return self._attachment.backend.processes()

    def kill(self, pid: int) -> bool:
        """End a process at once. If it is the first process of a command (`CommandHandle.pid`, or
        `ProcessInfo.command_pid`), end every process of the command. Return False if there is no
        such process.

        Example:
            command = sandbox.commands.start("sleep 1000")
            sandbox.commands.kill(command.pid)
        """
        return self._attachment.backend.kill_process(arguments.positive_integer("pid", pid))

    def __repr__(self) -> str:
        return f"<Commands of {self._attachment!r}>"
