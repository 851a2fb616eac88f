"""The state of a served sandbox for the store: taking it, and making a sandbox of it.

Rules: everything here calls the sandbox, so it runs on threads. What is taken is the sandbox at one
moment. Sessions are part of it: those that the server drives, and those that clients drive through
started commands (`SessionTag`). A session that runs a request makes the taking fail, unless it is
the last one. Ended commands are kept with the output that their client has not asked for. Commands
that run are not part of the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Final

from wasmsand.http.failures import ApiFailure
from wasmsand.http.served import ServedSandbox
from wasmsand.http.started import Started
from wasmsand.sdk.backend import Backend, BackendProcess, Ended, Output
from wasmsand.sdk.client_programs import capture_shell
from wasmsand.sdk.errors import CommandError, SandboxError, StateError
from wasmsand.sdk.state import PROGRAM, SandboxState, SavedSession, require_silence

_STILL_SECONDS: Final = 5.0
"""How long to wait for the end of a session's request."""
_DRAIN_MAX: Final = 8 << 20
"""Bytes of an ended command's output that are kept; its streams hold less."""


@dataclass(slots=True)
class TakenState:
    """A sandbox at one moment."""

    state: SandboxState
    is_silent: bool
    """Whether nothing runs besides the sessions."""
    ended: dict[str, Ended] = field(default_factory=dict)
    """How started commands ended, by their ids."""
    kept: set[str] = field(default_factory=set)
    """The ids of started commands whose programs are in the state."""
    lost: list[str] = field(default_factory=list)
    """The ids of commands and sessions that are not."""
    outputs: dict[str, tuple[Output, ...]] = field(default_factory=dict)
    """What was read of commands, by their ids. The caller puts it back."""


def take_for_store(
    sandbox: ServedSandbox,
    held: Sequence[Started],
    in_use: Iterable[Started],
    *,
    is_last: bool,
    requires_silence: bool,
) -> TakenState:
    """The state of a sandbox now. No request uses the commands in `held`. Raises `StateError` if a
    session runs a request, unless this `is_last`; and, with `requires_silence`, if anything runs or
    a session cannot be stored."""
    taken = _Taking(sandbox, is_last, requires_silence)
    taken.look_at_commands(held)
    taken.lost += [started.id for started in in_use]
    return taken.take()


class _Taking:
    def __init__(self, sandbox: ServedSandbox, is_last: bool, requires_silence: bool) -> None:
        self._sandbox = sandbox
        self._backend: Backend = sandbox.backend
        self._is_last = is_last
        self._requires_silence = requires_silence
        self._sessions: list[Started] = []
        self._ended: dict[str, Ended] = {}
        self._outputs: dict[str, tuple[Output, ...]] = {}
        self.lost: list[str] = []

    def look_at_commands(self, held: Sequence[Started]) -> None:
        for started in held:
            ended = started.process.wait(0)
            if ended is not None:
                self._ended[started.id] = ended
                self._outputs[started.id] = _drained(started.process)
            elif started.session is None:
                self.lost.append(started.id)
            else:
                self._sessions.append(started)

    def take(self) -> TakenState:
        backend, sandbox = self._backend, self._sandbox
        own = sandbox.sandbox.sessions
        pids = {each.pid for each in own} | {each.process.pid for each in self._sessions}
        if self._requires_silence:
            require_silence(backend, pids)
        saved: list[SavedSession] = []
        kept: set[str] = set()
        names = sandbox.sessions.names()
        with ExitStack() as still:
            for session in own:
                try:
                    still.enter_context(session._still(_STILL_SECONDS))
                except StateError:
                    if not self._is_last and not session.closed:
                        raise
                    self._lose(names.get(session.identity))
                    continue
                try:
                    captured = session._capture(backend)
                except StateError:
                    self._lose(names.get(session.identity), is_known_to_fail=True)
                    continue
                saved.append(SavedSession(session.kind, session.identity, captured))
            for started in self._sessions:
                try:
                    captured = self._captured(started)
                except StateError:
                    self._lose(started.id, is_known_to_fail=True)
                    continue
                kept.add(started.id)
                saved.append(SavedSession(PROGRAM, started.id, captured))
            is_silent = all(process.command_pid in pids for process in backend.processes())
            machine = backend.take_state([each.captured for each in saved])
        state = SandboxState(sandbox.options, backend, machine, tuple(saved))
        return TakenState(state, is_silent, self._ended, kept, self.lost, self._outputs)

    def _lose(self, identity: str | None, *, is_known_to_fail: bool = False) -> None:
        if is_known_to_fail and self._requires_silence:
            raise StateError(f"the session {identity} cannot be stored: it has started something")
        if identity is not None:
            self.lost.append(identity)

    def _captured(self, started: Started) -> object:
        """The program of a session that a client drives."""
        assert started.session is not None
        process = started.process
        # If output waits already, leave the rest: otherwise a program could fill the server's
        # memory, bit by bit.
        takes_output = not started.waiting
        if started.session.kind == "shell":
            if takes_output:
                self._outputs[started.id] = _output_now(process)
            return capture_shell(self._sandbox.attachment, process)
        captured = self._backend.capture(process)
        if takes_output:
            self._outputs[started.id] = _output_now(process)
        return captured


def _output_now(process: BackendProcess) -> tuple[Output, ...]:
    try:
        return process.read(0)
    except TimeoutError:
        return ()


def _drained(process: BackendProcess) -> tuple[Output, ...]:
    """The rest of the output of a command that has ended."""
    outputs: list[Output] = []
    size = 0
    while size < _DRAIN_MAX and (read := _output_now(process)):
        outputs += read
        size += sum(len(each.data) for each in read)
    return tuple(outputs)


class EndedCommand:
    """A command that had ended when its sandbox was stored, as a `BackendProcess`. Its output is
    served by `Started`."""

    def __init__(self, pid: int, ended: Ended) -> None:
        self._pid = pid
        self._ended = ended

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._pid

    def now(self) -> float:
        """See `BackendProcess`."""
        return 0.0

    def uncounted_seconds(self) -> float:
        """See `BackendProcess`."""
        return 0.0

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        return ()

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...] | None:
        """See `BackendProcess`."""
        return None

    def write(self, data: bytes, fd: int = 0, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`."""
        raise CommandError("EPIPE: the command has ended", "EPIPE")

    def close_input(self, fd: int = 0) -> None:
        """See `BackendProcess`."""

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        return self._ended

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`."""
        return ()

    def kill(self) -> None:
        """See `BackendProcess`."""


class BoundedWriter:
    """A stream to the store that accepts a number of bytes."""

    def __init__(self, stream: IO[bytes], most: int, refusal: ApiFailure) -> None:
        self._stream = stream
        self._left = most
        self._refusal = refusal

    def write(self, data: bytes) -> int:
        """Raises the refusal."""
        self._left -= len(data)
        if self._left < 0:
            raise self._refusal
        return self._stream.write(data)

    def flush(self) -> None:
        """See `IO`."""
        self._stream.flush()


def close_quietly(state: SandboxState) -> None:
    """End the sandbox of a state that nobody uses."""
    try:
        state.backend.close()
    except SandboxError:
        pass
