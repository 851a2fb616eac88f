"""Running commands in a sandbox: `sandbox.commands`.

Rules: a command that fails is a result, not an exception; an exception means that it
could not be started. Each command is a process tree of its own: files stay, shell
variables do not.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping, Sequence

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import CANCELLATION
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
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
        timeout_ms: float | None = None,
        on_stdout: TextSink | None = None,
        on_stderr: TextSink | None = None,
    ) -> CommandResult:
        """Run `command` to its end and return what it printed.

        Example:
            result = sandbox.commands.run("sort | uniq -c", stdin="b\\na\\nb\\n")
            result.stdout, result.exit_code

        A str is a script for bash; a sequence is a program, found by PATH, and its
        arguments, with no shell between. `env` is added to the sandbox's variables for
        this command; `cwd` and `timeout_ms` replace the sandbox's own. `on_stdout` and
        `on_stderr` get text as it is printed, on the calling thread; what they raise ends
        the command, and leaves `run`.

        The result is there when the command has ended. A process that it left in the
        background goes on; what that prints later is dropped.

        After `timeout_ms` every process of the command is killed, and the result has
        exit code 124, `command timed out` on stderr and what was printed until then.
        The sandbox goes on working.
        """
        backend = self._attachment.backend
        request = self._builder.request(
            command,
            stdin=b"" if stdin is None else stdin,
            env=env,
            cwd=cwd,
            timeout_ms=SANDBOX_TIMEOUT if timeout_ms is None else timeout_ms,
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
            except BaseException:  # the caller gave up: so does its command
                process.kill()
                raise
        # Killed meanwhile: what the command printed until then is not a result.
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
    ) -> CommandHandle:
        """Start `command` and return while it runs.

        Example:
            with sandbox.commands.start("cat -n") as cat:
                cat.write_stdin("hello\\n")
                cat.close_stdin()
                print(cat.wait().stdout)

        Arguments are those of `run`, with two differences. Without `stdin` the command's
        input is open until `close_stdin`. Without `timeout_ms` there is no time limit: the
        sandbox's own is for commands that somebody waits for.

        A command whose output nobody reads waits when a buffer (256 KiB) is full, as at a
        pipe.
        """
        backend = self._attachment.backend
        request = self._builder.request(
            command, stdin=stdin, env=env, cwd=cwd, timeout_ms=timeout_ms
        )
        process = backend.start(request)
        return CommandHandle(self._attachment, process, command)

    def list(self) -> builtins.list[ProcessInfo]:
        """Every process that there is in the sandbox, by pid: those of commands, and those
        that commands left in the background.

        Example:
            [process.argv for process in sandbox.commands.list()]
        """
        return self._attachment.backend.processes()

    def __repr__(self) -> str:
        return f"<Commands of {self._attachment!r}>"
