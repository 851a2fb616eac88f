"""Types of JSON requests and responses about copies of sandboxes. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from wasmsand.http.message_types import Milliseconds, RequestMessage, ResponseMessage, Seconds
from wasmsand.http.messages import Metadata, SandboxState

CommandIds = Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(max_length=64)]
SnapshotName = Annotated[str, Meta(max_length=255)]
COPIES_MAX = 64
"""Copies that one request makes."""


class CopySandbox(RequestMessage):
    """How to copy a sandbox."""

    running: Literal["refuse", "drop"] = "refuse"
    """What to do if a command runs, or a session cannot be copied: refuse, or leave it out."""
    commands: CommandIds = []
    """Started commands that `POST .../capture` has captured and that the copy contains."""


class TakeSnapshot(CopySandbox):
    """How to take a snapshot."""

    name: SnapshotName | None = None


class ForkSandbox(CopySandbox):
    """How to copy a sandbox to new sandboxes."""

    count: Annotated[int, Meta(ge=1, le=COPIES_MAX)] = 1
    idle_seconds: Seconds | None = None
    """As for a new sandbox; null is that of the original."""
    lifetime_seconds: Seconds | None = None
    """As for a new sandbox; null is the server's maximum."""
    metadata: Metadata | None = None
    """As for a new sandbox; null is that of the original."""


class RestoreSandbox(RequestMessage):
    """Which snapshot to restore."""

    snapshot: SnapshotName
    """The id or name of a snapshot of this sandbox, or the id of one of another of yours."""


class SeenSession(RequestMessage):
    """A session that the client drives itself, through a captured command."""

    was: Annotated[str, Meta(max_length=64)]
    """The id of the command."""
    kind: Literal["shell", "python"]
    identity: Annotated[str, Meta(min_length=1, max_length=64)]


class SaveSnapshot(RequestMessage):
    """How to save a snapshot as a file. Clients without sessions of their own send `{}`."""

    sessions: Annotated[list[SeenSession], Meta(max_length=64)] = []
    variables: dict[str, str] | None = None
    """Saved instead of the sandbox's variables."""
    cwd: str | None = None
    """With `variables`: saved instead of the sandbox's working directory."""
    timeout_ms: Milliseconds | UnsetType | None = UNSET


class CaptureCommand(RequestMessage):
    """How to capture a started command for a copy."""

    at_fork: bool = False
    """Capture the program at its next fork, which the client causes, and then sends
    `POST .../captured`. Otherwise the program must wait for a request."""


class SnapshotState(ResponseMessage):
    """A snapshot."""

    id: str
    sandbox: str
    """The id of its sandbox, which may have ended."""
    name: str
    created_at: float
    """Seconds since 1970."""
    sessions: list[str]
    """The kinds of its sessions: "python", or "program" for a captured command."""
    size_bytes: int
    """What it holds at most. Most of it is shared with its sandbox."""
    is_stored: bool
    """Whether it is in the server's store, so that it outlives its sandbox and the server."""


class SnapshotList(ResponseMessage):
    """The snapshots of one sandbox, oldest first."""

    snapshots: list[SnapshotState]


class SessionState(ResponseMessage):
    """A live session."""

    id: str
    """Of a session that the server drives (`py-…`, `sh-…`), or of the command of a session that a
    client drives (`cmd-…`)."""
    kind: str
    """"shell" or "python"."""
    pid: int
    identity: str = ""
    """For a session that a client drives: the name that the client gave it."""
    batch: int = 0
    """For a session that a client drives: the number of the last batch of its output."""


class SessionList(ResponseMessage):
    """The live sessions of one sandbox, in the order in which they were opened."""

    sessions: list[SessionState]


class CopiedCommand(ResponseMessage):
    """A started command of a copy."""

    was: str
    """Its id in the original."""
    id: str
    pid: int


class CopiedSandbox(SandboxState):
    """A sandbox that was copied or restored."""

    sessions: list[SessionState]
    """Their ids are those of the original."""
    commands: list[CopiedCommand]


class CopiedSandboxes(ResponseMessage):
    """New copies of a sandbox."""

    sandboxes: list[CopiedSandbox]
