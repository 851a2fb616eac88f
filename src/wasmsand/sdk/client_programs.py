"""Programs that a client of a server drives itself, in copies of the server's sandbox.

A client of our own (`isolation="process"`, `Sandbox.connect`) keeps its sessions on its side; for
the server they are started commands. Owns how the server copies such commands with the sandbox.
Rules: a command is captured first (`Captures`), and then becomes part of the next copy that names
it; in the copy it has another `BackendProcess`, which is found by its identity. A command has at
most one capture, and unused ones are dropped with the command.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend, BackendProcess
from wasmsand.sdk.errors import StateError
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.state import (
    PROGRAM,
    KeptByClient,
    Running,
    SandboxState,
    Snapshot,
    checked_name,
)

CAPTURES_MAX: Final = 64
"""Captured commands of one sandbox that no copy has used."""
_MEMORY_SHARES: Final = 4
_KINDS: Final = ("shell", "python", PROGRAM)
_IDENTITY_MAX: Final = 64


class CapturedProgram:
    """A captured command, as part of a sandbox's state."""

    kind: ClassVar[str] = PROGRAM

    def __init__(self, identity: str, pid: int, captured: object) -> None:
        self.identity = identity
        self.pid = pid
        self._captured = captured

    def _still(self) -> AbstractContextManager[None]:
        """See `Session`. The client makes no requests meanwhile."""
        return nullcontext()

    def _capture(self, _backend: Backend) -> object:
        """See `Session`."""
        return self._captured


class Captures:
    """The captured commands of one sandbox. Used from any thread."""

    def __init__(self, memory_limit_bytes: int) -> None:
        """`memory_limit_bytes` is that of the sandbox: programs that live at the same time have not
        much more, because only a part of their address space counts."""
        self._max_bytes = _MEMORY_SHARES * memory_limit_bytes
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._kept: dict[str, CapturedProgram] = {}
        self._armed: dict[str, Callable[[], object]] = {}

    def capture(self, backend: Backend, identity: str, process: BackendProcess) -> None:
        """Capture a command that waits for a request. Raises `StateError`."""
        self.drop(identity)
        with self._lock:
            self._check_room()
        self._keep(backend, CapturedProgram(identity, process.pid, backend.capture(process)))

    def arm(self, backend: Backend, identity: str, process: BackendProcess) -> None:
        """Capture a command at its next fork, for `finish`. Raises `StateError`."""
        self.drop(identity)
        with self._lock:
            self._check_room()
        take = backend.capture_at_fork(process)
        with self._lock:
            self._armed[identity] = take

    def finish(self, backend: Backend, identity: str, process: BackendProcess) -> None:
        """The command has forked. Raises `StateError` if it was not captured."""
        with self._lock:
            take = self._armed.pop(identity, None)
        if take is None:
            raise StateError("nobody has begun to capture it")
        self._keep(backend, CapturedProgram(identity, process.pid, take()))

    def _keep(self, backend: Backend, program: CapturedProgram) -> None:
        with self._lock:
            programs = (*self._kept.values(), program)
            size = sum(backend.size_of(kept._capture(backend)) for kept in programs)
            if size > self._max_bytes:
                raise StateError(
                    f"captured commands would hold {size} bytes of memory, more than "
                    f"{self._max_bytes}; make a copy of those that are captured already"
                )
            self._kept[program.identity] = program

    def _check_room(self) -> None:
        if len(self._kept) + len(self._armed) >= CAPTURES_MAX:
            raise StateError(f"{CAPTURES_MAX} commands are captured already; make a copy of them")

    def take(self, identities: Iterable[str]) -> list[CapturedProgram]:
        """The captures of these commands, which are no longer kept. Raises `StateError`."""
        wanted = [*dict.fromkeys(identities)]
        with self._lock:
            for identity in wanted:
                if identity not in self._kept:
                    raise StateError(f"{identity} was not captured")
            return [self._kept.pop(identity) for identity in wanted]

    def drop(self, identity: str) -> None:
        """Forget the capture of a command, if there is one."""
        with self._lock:
            self._kept.pop(identity, None)
            take = self._armed.pop(identity, None)
        if take is not None:
            _ignore(take)

    def drop_all(self) -> None:
        """Forget all captures."""
        with self._lock:
            self._kept.clear()
            armed, self._armed = list(self._armed.values()), {}
        for take in armed:
            _ignore(take)


def _ignore(take: Callable[[], object]) -> None:
    try:
        take()
    except StateError:
        pass  # it has not forked, or has ended


def attachment_of(sandbox: Sandbox) -> Attachment:
    """What the parts of the sandbox share."""
    return sandbox._attachment


def add_session(sandbox: Sandbox, session: Shell | PythonSession) -> None:
    """A session that the server has opened is one of the sandbox."""
    sandbox._sessions.append(session)


def backend_of(sandbox: Sandbox) -> Backend:
    """The sandbox's backend. Raises `SandboxClosedError`."""
    return sandbox._attachment.backend


def snapshot_with(
    sandbox: Sandbox,
    name: str | None = None,
    running: Running = "refuse",
    programs: Iterable[CapturedProgram] = (),
) -> Snapshot:
    """`Sandbox.snapshot`, with captured commands; the sandbox does not keep the snapshot."""
    checked = checked_name(name)
    return Snapshot(sandbox._taken(running, programs), checked)


@dataclass(frozen=True, slots=True)
class SeenByClient:
    """How a client sees a state, which the server has to know to save it."""

    sessions: Mapping[str, tuple[str, str]]
    """Kind and identity of its sessions, by the identities of their programs on the server."""
    kept: KeptByClient | None
    timeout_ms: float | None

    def applied(self, state: SandboxState) -> SandboxState:
        """The state as the client sees it. Raises `ValueError`."""
        for kind, identity in self.sessions.values():
            if kind not in _KINDS or not 0 < len(identity) <= _IDENTITY_MAX:
                raise ValueError(f"a session is of the kind shell or python, not {kind[:80]!r}")
        sessions = [
            replace(
                saved,
                kind=self.sessions[saved.identity][0],
                identity=self.sessions[saved.identity][1],
            )
            if saved.kind == PROGRAM and saved.identity in self.sessions
            else saved
            for saved in state.sessions
        ]
        options = replace(state.options, timeout_ms=self.timeout_ms)
        kept = self.kept or state.kept
        return replace(state, sessions=tuple(sessions), kept=kept, options=options)


def capture_shell(attachment: Attachment, process: BackendProcess) -> object:
    """Capture a shell that a client drives, and that waits for its next request. A server may do so
    without the client. Raises `StateError`."""
    others = [
        each
        for each in attachment.backend.processes()
        if each.command_pid == process.pid and each.pid != process.pid
    ]
    if others:  # ask nothing of the shell: the answer could be mixed with their output
        raise StateError(f"it has started what still runs: {others[0].argv[:1]}")
    shell = Shell._continued(attachment, process, "")
    with shell._still():
        return shell._capture(attachment.backend)


def sandbox_of_state(state: SandboxState) -> Sandbox:
    """A sandbox from a state that was read from a file, on the backend that has it already."""
    return Sandbox._on_backend(state, state.backend, is_last=True)


def take_programs(sandbox: Sandbox) -> dict[str, BackendProcess]:
    """The commands that came into the sandbox with the last copy, by their identity in the original
    sandbox. They are returned once."""
    programs, sandbox._programs = sandbox._programs, {}
    return programs
