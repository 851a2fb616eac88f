"""One sandbox of the server: its backend, and the state that the SDK keeps above a backend.

Owns the sandbox's variables and working directory, for clients without our SDK, and its
started commands, Python sessions and snapshots. Rules: the SDK's own checks validate every
value of a client, so every interface refuses a value with the same message; calls of the
backend block and run on threads, everything else runs on the event loop.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec import UnsetType

from wasmsand.http.failures import ApiFailure
from wasmsand.http.messages import OpenPython, RunCommand, StartCommand
from wasmsand.http.started import Started
from wasmsand.http.terminal_messages import OpenTerminal
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import Backend, BackendProcess, CommandRequest
from wasmsand.sdk.client_programs import (
    Captures,
    add_session,
    attachment_of,
    snapshot_with,
    take_programs,
)
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
from wasmsand.sdk.opening import open_backend
from wasmsand.sdk.options import Isolation, SandboxOptions
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.state import Running, Snapshot
from wasmsand.sdk.terminal import terminal_request

MAX_STARTED = 64
"""Started commands that one sandbox remembers; ended ones are forgotten when it is full."""
MAX_INTERPRETERS = 16
"""Python sessions of one sandbox; ended ones are forgotten when it is full."""


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
        self._interpreters: dict[str, Interpreter] = {}
        self._opening = 0
        """Python sessions that are being opened. Used on the event loop only."""
        self.captures = Captures(options.memory_limit_bytes)
        self.snapshots: dict[str, ServedSnapshot] = {}
        """By their ids, oldest first. Used on the event loop only, like the following."""
        self._taking = 0

    @classmethod
    def of_snapshot(cls, kept: ServedSnapshot, max_command_seconds: float) -> ServedSandbox:
        """A new sandbox from a snapshot. It calls the sandbox, so run it on a thread; then call
        `begin_anew` on the event loop."""
        options = kept.snapshot.state.options
        sandbox = Sandbox.from_snapshot(kept.snapshot)
        return cls(options, max_command_seconds, copied=sandbox)

    def begin_anew(self, interpreters: Mapping[str, str]) -> list[tuple[str, Started]]:
        """After a copy or a restore: find the Python sessions, whose ids are given by identity, and
        the captured commands. Returns the commands, with their ids in the original."""
        self._started.clear()
        self.captures = Captures(self.options.memory_limit_bytes)
        self._interpreters = {
            interpreters[session.identity]: Interpreter(interpreters[session.identity], session)
            for session in self.sandbox.sessions
            if isinstance(session, PythonSession) and session.identity in interpreters
        }
        programs = take_programs(self.sandbox)
        return [(was, self.remember(process)) for was, process in programs.items()]

    def take(self, name: str | None, running: Running, commands: Iterable[str]) -> Snapshot:
        """A snapshot. It calls the sandbox, so run it on a thread."""
        return snapshot_with(self.sandbox, name, running, self.captures.take(commands))

    @contextmanager
    def taking_snapshot(self, most: int) -> Iterator[None]:
        """Reserve room for a snapshot. Raises `too_many_snapshots`."""
        if len(self.snapshots) + self._taking >= most:
            raise ApiFailure(
                429,
                "too_many_snapshots",
                f"the sandbox has {most} snapshots; delete one, or start the server with a larger "
                "--max-snapshots",
            )
        self._taking += 1
        try:
            yield
        finally:
            self._taking -= 1

    @property
    def snapshot_bytes(self) -> int:
        """What all snapshots hold at most."""
        return sum(kept.size_bytes for kept in self.snapshots.values())

    def interpreter_names(self) -> dict[str, str]:
        """The ids of the Python sessions, by their identity."""
        return {each.session.identity: each.id for each in self._interpreters.values()}

    def interpreters(self) -> list[Interpreter]:
        """The live Python sessions, oldest first."""
        return [each for each in self._interpreters.values() if not each.session.closed]

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

    def remember(self, process: BackendProcess) -> Started:
        """Give a started command an id, and remember it."""
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

    @contextmanager
    def opening_interpreter(self) -> Iterator[None]:
        """Reserve room for a Python session. Raises `too_many_sessions`."""
        for identity, interpreter in list(self._interpreters.items()):
            if interpreter.session.closed:
                del self._interpreters[identity]
        if len(self._interpreters) + self._opening >= MAX_INTERPRETERS:
            raise ApiFailure(
                429,
                "too_many_sessions",
                f"{MAX_INTERPRETERS} Python sessions are open in this sandbox; close one, or use "
                "another sandbox",
            )
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1

    def open_interpreter(self, wanted: OpenPython) -> PythonSession:
        """A new Python session. It calls the sandbox, so run it on a thread."""
        session = PythonSession(
            self._attachment,
            self._builder,
            env=wanted.env,
            cwd=wanted.cwd,
            stdin=wanted.stdin,
            user=wanted.user,
        )
        add_session(self.sandbox, session)
        return session

    def remember_interpreter(self, session: PythonSession) -> Interpreter:
        """Give a Python session an id, and remember it."""
        interpreter = Interpreter(f"py-{secrets.token_hex(8)}", session)
        self._interpreters[interpreter.id] = interpreter
        return interpreter

    def find_interpreter(self, identity: str) -> Interpreter:
        """A Python session by its id. Raises `session_not_found`."""
        interpreter = self._interpreters.get(identity)
        if interpreter is None:
            raise ApiFailure(
                404,
                "session_not_found",
                f"no Python session {identity[:64]!r}: it was closed, or never existed",
            )
        return interpreter

    def forget_interpreter(self, interpreter: Interpreter) -> None:
        """Forget a Python session."""
        self._interpreters.pop(interpreter.id, None)

    def timeout_seconds(self, timeout_ms: float | UnsetType | None) -> float | None:
        """The timeout of a run: the client's or the sandbox's, up to the server's maximum."""
        given = SANDBOX_TIMEOUT if isinstance(timeout_ms, UnsetType) else timeout_ms
        return self._builder.seconds(given)


@dataclass(frozen=True, slots=True)
class ServedSnapshot:
    """A snapshot of a client."""

    id: str
    snapshot: Snapshot
    interpreters: Mapping[str, str]
    """The ids of its Python sessions, by their identity."""
    size_bytes: int

    @classmethod
    def of(cls, snapshot: Snapshot, interpreters: Mapping[str, str]) -> ServedSnapshot:
        """A snapshot with a new id."""
        identity = f"snap-{secrets.token_hex(12)}"
        return cls(identity, snapshot, interpreters, snapshot.size_bytes)


@dataclass(slots=True)
class Interpreter:
    """A Python session of a client."""

    id: str
    session: PythonSession
    is_busy: bool = False
    """Whether a request uses it. Used on the event loop only."""


def check_variables(variables: Mapping[str, str]) -> None:
    """Raises `ValueError` if a sandbox's variables are too large."""
    size = sum(len(name) + len(value) for name, value in variables.items())
    if size > MAX_VARIABLE_BYTES:
        raise ValueError(
            f"names and values of variables may have {MAX_VARIABLE_BYTES} characters, not {size}"
        )
