"""One sandbox of the server: its backend, and what the SDK keeps on its side of the seam.

Owns the variables and the working directory that clients without an SDK rely on, and the
commands that were started. Rules: everything that comes from a client is checked here by
the SDK's own checks, so that an argument is refused with the same words everywhere; the
backend's calls block and belong on threads, everything else is for the event loop.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from msgspec import UnsetType

from wasmsand.http.failures import ApiFailure
from wasmsand.http.messages import RunCommand, StartCommand
from wasmsand.http.started import Started
from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend, BackendProcess, CommandRequest
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.opening import open_backend
from wasmsand.sdk.options import Isolation, SandboxOptions

MAX_STARTED = 64
"""Started commands of one sandbox that are remembered; those that ended make room."""


MAX_VARIABLE_BYTES = 2 * 1024 * 1024
"""Names and values of a sandbox's variables: the server holds them, and no program could be
given more."""


class ServedSandbox:
    """A sandbox, in this process or in one of its own."""

    def __init__(
        self,
        options: SandboxOptions,
        max_command_seconds: float,
        isolation: Isolation = "none",
    ) -> None:
        check_variables(options.env)
        self.options = options
        self._attachment = Attachment(open_backend(options, isolation), options)
        self.starting = 0
        """Commands that are being started; for the event loop."""
        self.env = Environment(self._attachment)
        self._builder = CommandBuilder(options, self.env.chosen, max_command_seconds)
        self._started: dict[str, Started] = {}
        self._attachment.make_working_directory()

    @property
    def backend(self) -> Backend:
        """What runs it. Raises `SandboxClosedError` after `kill`."""
        return self._attachment.backend

    def check_alive(self) -> None:
        """Raises `SandboxClosedError` after `kill`: what a command did until then is no result."""
        self._attachment.check_open()

    def kill(self) -> None:
        """End every process and drop every file; idempotent."""
        self._attachment.close()

    def path(self, value: str, name: str = "path") -> str:
        """`value` as an absolute path in the sandbox."""
        return arguments.guest_path(name, value, self.options.cwd)

    def command_request(self, wanted: RunCommand) -> CommandRequest:
        """What a client wants to run, complete and checked."""
        if wanted.stdin is not None and wanted.stdin_base64 is not None:
            raise ValueError("give either stdin or stdin_base64, not both")
        stdin = wanted.stdin_base64 if wanted.stdin is None else wanted.stdin
        inputs, outputs, open_stdin = [], [], False
        if isinstance(wanted, StartCommand):
            inputs, outputs, open_stdin = wanted.inputs, wanted.outputs, wanted.open_stdin
        if open_stdin and stdin:
            raise ValueError("give either open_stdin or stdin, not both")
        timeout_ms = wanted.timeout_ms
        return self._builder.request(
            wanted.command,
            stdin=None if open_stdin else stdin or b"",
            env=wanted.env,
            environ=wanted.environ,
            cwd=wanted.cwd,
            timeout_ms=SANDBOX_TIMEOUT if isinstance(timeout_ms, UnsetType) else timeout_ms,
            inputs=inputs,
            outputs=outputs,
        )

    def make_room(self) -> None:
        """Before a command is started: forget those that ended, if there are many. Asks the
        sandbox, so it belongs on a thread. Raises `too_many_commands`."""
        for started in list(self._started.values()):
            if len(self._started) + self.starting <= MAX_STARTED:
                return
            if started.process.wait(0) is not None:
                self.forget(started)
        if len(self._started) + self.starting > MAX_STARTED:
            raise ApiFailure(
                429,
                "too_many_commands",
                f"{MAX_STARTED} started commands run in this sandbox; end one, or use another",
            )

    def remember(self, process: BackendProcess) -> Started:
        """Make a started command known by an id."""
        started = Started(f"cmd-{secrets.token_hex(8)}", process)
        self._started[started.id] = started
        return started

    def find_started(self, identity: str) -> Started:
        """A started command by its id. Raises `command_not_found`."""
        started = self._started.get(identity)
        if started is None:
            raise ApiFailure(
                404,
                "command_not_found",
                f"there is no started command {identity[:64]!r}: it was deleted, or never existed",
            )
        return started

    def all_started(self) -> list[Started]:
        """The commands that are remembered, the oldest first."""
        return list(self._started.values())

    def forget(self, started: Started) -> None:
        """Remember a started command no longer."""
        self._started.pop(started.id, None)


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises `ValueError` if a sandbox's variables are too many."""
    size = sum(len(name) + len(value) for name, value in variables.items())
    if size > MAX_VARIABLE_BYTES:
        raise ValueError(f"variables may have {MAX_VARIABLE_BYTES} characters, not {size}")
