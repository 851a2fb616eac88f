"""One sandbox of the server: its backend, and the state that the SDK keeps above a backend.

Owns the sandbox's variables and working directory, for clients without our SDK, and its
started commands and sessions. Rules: the SDK's own checks validate every
value of a client, so every interface refuses a value with the same message; calls of the
backend block and run on threads, everything else runs on the event loop.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from msgspec import UnsetType

from wasmsand.http.failures import ApiFailure, lost
from wasmsand.http.messages import RunCommand, SessionTag, StartCommand
from wasmsand.http.served_sessions import ServedSessions
from wasmsand.http.started import Started
from wasmsand.http.terminal_messages import OpenTerminal
from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend, BackendProcess, CommandRequest
from wasmsand.sdk.client_programs import (
    Captures,
    attachment_of,
    snapshot_with,
    take_programs,
)
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
from wasmsand.sdk.opening import open_backend
from wasmsand.sdk.options import Isolation, SandboxOptions
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.state import Running, Snapshot
from wasmsand.sdk.terminal import terminal_request

MAX_STARTED = 64
"""Started commands that one sandbox remembers; ended ones are forgotten when it is full."""

MAX_VARIABLE_BYTES = 2 * 1024 * 1024
"""Names and values of a sandbox's variables. The server stores them; a program cannot take
more."""


class ServedSandbox:
    """A sandbox, in this process or in a separate one."""

    def __init__(
        self,
        options: SandboxOptions,
        max_command_seconds: float,
        isolation: Isolation = "none",
        *,
        copied: Sandbox | None = None,
    ) -> None:
        """A new sandbox, or one that is a copy."""
        check_variables(options.env)
        self.options = options
        self.sandbox = copied or Sandbox.from_backend(open_backend(options, isolation), options)
        self._attachment = attachment_of(self.sandbox)
        self.starting = 0
        """Commands that are being started. Used on the event loop only."""
        self.env = self.sandbox.env
        self._builder = CommandBuilder(options, self.env.chosen, max_command_seconds)
        self._started: dict[str, Started] = {}
        self._lost: frozenset[str] = frozenset()
        """Commands that were not part of the stored state."""
        self.sessions = ServedSessions(self.sandbox, self._attachment, self._builder)
        self.captures = Captures(options.memory_limit_bytes)

    def begin_anew(
        self, names: Mapping[str, str], tags: Mapping[str, SessionTag]
    ) -> list[tuple[str, Started]]:
        """After a copy or a restore: find the sessions, whose ids are given by identity, and
        the captured commands, whose `tags` are given by their ids in the original. Returns the
        commands, with these ids."""
        self._started.clear()
        self._lost = frozenset()
        self.captures = Captures(self.options.memory_limit_bytes)
        self.sessions.begin_anew(names)
        programs = take_programs(self.sandbox)
        return [(was, self.remember(process, tags.get(was))) for was, process in programs.items()]

    def go_on(
        self, names: Mapping[str, str], commands: Iterable[Started], lost_ids: Iterable[str]
    ) -> None:
        """After a resume: the sessions and commands have the ids that they had."""
        self._lost = frozenset(lost_ids)
        self.sessions.begin_anew(names, self._lost)
        self._started = {started.id: started for started in commands}

    def take(self, name: str | None, running: Running, commands: Iterable[str]) -> Snapshot:
        """A snapshot. It calls the sandbox, so run it on a thread."""
        return snapshot_with(self.sandbox, name, running, self.captures.take(commands))

    @property
    def attachment(self) -> Attachment:
        """What the parts of the sandbox share."""
        return self._attachment

    @property
    def backend(self) -> Backend:
        """The sandbox's backend. Raises `SandboxClosedError` after `kill`."""
        return self._attachment.backend

    def check_alive(self) -> None:
        """Raises `SandboxClosedError` after `kill`: a killed command has no valid result."""
        self._attachment.check_open()

    def kill(self) -> None:
        """End every process and drop every file; idempotent."""
        self._attachment.close()

    def path(self, value: str, name: str = "path") -> str:
        """`value` as an absolute path in the sandbox."""
        return arguments.guest_path(name, value, self.options.cwd)

    def command_request(self, wanted: RunCommand) -> CommandRequest:
        """Validate and complete a client's request."""
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
            user=wanted.user,
            inputs=inputs,
            outputs=outputs,
        )

    def terminal_request(self, wanted: OpenTerminal) -> CommandRequest:
        """Validate and complete a client's request for a terminal."""
        return terminal_request(
            self._builder,
            wanted.command,
            env=wanted.env,
            environ=wanted.environ,
            cwd=wanted.cwd,
            user=wanted.user,
        )

    def make_room(self) -> None:
        """Before a command is started: forget ended commands if too many are remembered. It
        calls the sandbox, so run it on a thread. Raises `too_many_commands`."""
        for started in list(self._started.values()):
            if len(self._started) + self.starting <= MAX_STARTED:
                return
            if started.process.wait(0) is not None:
                self.forget(started)
        if len(self._started) + self.starting > MAX_STARTED:
            raise ApiFailure(
                429,
                "too_many_commands",
                f"{MAX_STARTED} started commands run in this sandbox; kill one, or use another "
                "sandbox",
            )

    def remember(self, process: BackendProcess, session: SessionTag | None = None) -> Started:
        """Give a started command an id, and remember it."""
        started = Started(f"cmd-{secrets.token_hex(8)}", process, session)
        self._started[started.id] = started
        return started

    def find_started(self, identity: str) -> Started:
        """A started command by its id. Raises `command_not_found`."""
        started = self._started.get(identity)
        if started is None:
            if identity in self._lost:
                raise lost(f"the command {identity}")
            raise ApiFailure(
                404,
                "command_not_found",
                f"no started command {identity[:64]!r}: it was deleted, or never existed",
            )
        return started

    def all_started(self) -> list[Started]:
        """The started commands, oldest first."""
        return list(self._started.values())

    def forget(self, started: Started) -> None:
        """Forget a started command."""
        self._started.pop(started.id, None)
        self.captures.drop(started.id)

    def timeout_seconds(self, timeout_ms: float | UnsetType | None) -> float | None:
        """The timeout of a run: the client's or the sandbox's, up to the server's maximum."""
        given = SANDBOX_TIMEOUT if isinstance(timeout_ms, UnsetType) else timeout_ms
        return self._builder.seconds(given)


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises `ValueError` if a sandbox's variables are too large."""
    size = sum(len(name) + len(value) for name, value in variables.items())
    if size > MAX_VARIABLE_BYTES:
        raise ValueError(
            f"names and values of variables may have {MAX_VARIABLE_BYTES} characters, not {size}"
        )
