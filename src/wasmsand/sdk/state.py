"""Copies of whole sandboxes: snapshots, restore, fork.

Owns `Snapshot`, `Snapshots`, and how the state of a sandbox with its sessions is taken and used.
Rules: a state never changes and depends on no sandbox. It contains files, variables, working
directory, options, and the live sessions at rest, with their memory. What runs besides is refused
(`StateError` names it) or, with `running="drop"`, left out. A session keeps its identity: after
`restore`, the session objects that the snapshot contains go on from there.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, ClassVar, Final, Literal, Protocol

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.errors import StateError
from wasmsand.sdk.options import SandboxOptions

if TYPE_CHECKING:
    from wasmsand.sdk.attachment import Attachment

Running = Literal["refuse", "drop"]
FileOrStream = str | os.PathLike[str] | IO[bytes]
"""A path of the host, or an open binary stream."""
PROGRAM: Final = "program"
"""The kind of a session that a client of a server drives itself (`client_programs`)."""
_NAME_MAX: Final = 255
_numbers: Final = itertools.count(1)


class Part(Protocol):
    """What is copied with a sandbox: a session, or a program of a client."""

    kind: ClassVar[str]

    @property
    def identity(self) -> str:
        """See `Session`."""

    @property
    def pid(self) -> int:
        """Its process in the sandbox."""

    def _still(self) -> AbstractContextManager[None]:
        """See `Session`."""

    def _capture(self, backend: Backend, /) -> object:
        """See `Session`."""


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session in a state."""

    kind: str
    """"shell", "python" or `PROGRAM`."""
    identity: str
    """By which the session is known again."""
    captured: object
    """What the backend has captured."""


@dataclass(frozen=True, slots=True)
class KeptByClient:
    """What a client of a server keeps on its side."""

    variables: Mapping[str, str]
    cwd: str


@dataclass(frozen=True, slots=True)
class SandboxState:
    """A sandbox at one moment."""

    options: SandboxOptions
    backend: Backend = field(repr=False)
    """The backend that took it, which can make others of its kind."""
    machine: object = field(repr=False)
    """What the backend needs for that."""
    sessions: tuple[SavedSession, ...] = ()
    kept: KeptByClient | None = None
    """If given, it counts instead of what the machine has."""

    @property
    def size_bytes(self) -> int:
        """How many bytes it holds at most; what it shares with others counts too."""
        sizes = [self.backend.size_of(session.captured) for session in self.sessions]
        return self.backend.size_of(self.machine) + sum(sizes)


def take_state(
    attachment: Attachment, sessions: Sequence[Part], running: Running, *, to_save: bool = False
) -> SandboxState:
    """The state of a sandbox now. `to_save`: sessions that cannot be saved cannot be part of it.
    Raises `StateError`."""
    checked_running(running)
    backend = attachment.backend
    saved: list[SavedSession] = []
    with ExitStack() as held:
        for number, session in enumerate(sessions):
            try:
                held.enter_context(session._still())
                captured = session._capture(backend)
                if to_save:
                    # Imported here, because most programs save nothing.
                    from wasmsand.sdk.local_files import require_savable

                    require_savable(captured)
            except StateError as error:
                if running == "refuse":
                    kind = session.kind
                    raise StateError(
                        f"session {number} ({kind}) cannot be copied: {error}"
                    ) from None
            else:
                saved.append(SavedSession(session.kind, session.identity, captured))
        if running == "refuse":
            require_silence(backend, {session.pid for session in sessions})
        machine = backend.take_state([session.captured for session in saved])
        return SandboxState(attachment.options, backend, machine, tuple(saved))


def require_silence(backend: Backend, sessions: set[int]) -> None:
    """Raise `StateError` if anything runs besides the sessions."""
    for process in backend.processes():
        if process.command_pid not in sessions:
            shown = " ".join(process.argv)
            raise StateError(
                f"a command runs (pid {process.pid}: {shown[:100]}); wait for it, kill it, or use "
                'running="drop", which leaves it out'
            )


class Snapshot:
    """A sandbox at one moment, from `sandbox.snapshot()`. It never changes, and stays usable after
    its sandbox has ended.

    Example:
        before = sandbox.snapshot("before the upgrade")
        sandbox.commands.run("pip install -U thing")
        sandbox.restore(before)
    """

    def __init__(self, state: SandboxState, name: str | None) -> None:
        self._state = state
        self.id = f"snapshot-{next(_numbers)}"
        """A name that no other snapshot of this process has."""
        self.name = name or self.id
        """The name that was given to `snapshot`, or the ID."""
        self.created = time.time()
        """When it was taken, in seconds since 1970."""

    @property
    def state(self) -> SandboxState:
        """What it contains."""
        return self._state

    def save(self, target: FileOrStream) -> None:
        """Write the snapshot to a file, or to a binary stream; see `Sandbox.save`.

        Example:
            sandbox.snapshot().save("machine.wsand")
        """
        # Imported here, because most programs save nothing.
        from wasmsand.sdk.saving import save_state

        save_state(self._state, target, self.name)

    @classmethod
    def load(cls, source: FileOrStream, *, options: SandboxOptions | None = None) -> Snapshot:
        """Read a snapshot from a file, or from a binary stream; see `Sandbox.load`.

        Example:
            sandbox.restore(Snapshot.load("machine.wsand"))
        """
        from wasmsand.sdk.saving import load_state

        return cls(*load_state(source, options))

    @property
    def size_bytes(self) -> int:
        """How many bytes of files and memory it holds at most. It shares most of them with its
        sandbox and with other snapshots, so less is freed if it is deleted."""
        return self._state.size_bytes

    @property
    def sessions(self) -> list[str]:
        """The kinds of the sessions that it contains, in the order in which they were opened."""
        return [session.kind for session in self._state.sessions]

    def __repr__(self) -> str:
        return f"<Snapshot {self.name!r}, {len(self._state.sessions)} sessions>"


class Snapshots:
    """The snapshots of one sandbox: `sandbox.snapshots`.

    Example:
        [snapshot.name for snapshot in sandbox.snapshots.list()]
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Snapshot] = {}

    def list(self) -> list[Snapshot]:
        """The snapshots, oldest first."""
        return [*self._by_id.values()]

    def get(self, name: str) -> Snapshot:
        """The newest snapshot with this name or ID. Raises `StateError`."""
        for snapshot in reversed(self._by_id.values()):
            if name in (snapshot.name, snapshot.id):
                return snapshot
        known = ", ".join(repr(snapshot.name) for snapshot in self._by_id.values()) or "none"
        raise StateError(f"no snapshot has the name {name!r}; there are: {known}")

    def delete(self, snapshot: Snapshot | str) -> None:
        """Forget a snapshot. What nobody else uses of it is freed. Raises `StateError`."""
        found = self.get(snapshot) if isinstance(snapshot, str) else snapshot
        if self._by_id.pop(found.id, None) is None:
            raise StateError(f"{found.name!r} is not a snapshot of this sandbox")

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        self._by_id[snapshot.id] = snapshot

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self._by_id)


def new_sandbox_id() -> str:
    """The id of a sandbox that is not on a server."""
    return f"sbx-{os.urandom(12).hex()}"


def checked_running(running: Running) -> Running:
    """What to do with what runs. Raises `ValueError`."""
    if running not in ("refuse", "drop"):
        raise ValueError(f'running must be "refuse" or "drop", not {running!r}')
    return running


def checked_name(name: str | None) -> str | None:
    """A name for a snapshot. Raises `TypeError`, `ValueError`."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, not {type(name).__name__}")
    if not name or "/" in name or "\0" in name or len(name) > _NAME_MAX:
        raise ValueError(f"a name has 1 to {_NAME_MAX} characters, without '/': not {name[:80]!r}")
    return name
