"""Snapshots of a server's sandboxes: in memory, in the store, or both.

Rules: used on the event loop only. Without a store a snapshot ends with its sandbox. With one it is
written to the store soon after it was taken, and stays there until it is deleted.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from wasmsand.http.messages import SessionTag
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.state import Snapshot


@dataclass(slots=True, kw_only=True, eq=False)
class ServedSnapshot:
    """A snapshot of a client."""

    id: str
    sandbox: str
    """The id of its sandbox, which may have ended."""
    name: str
    created: float
    """Wall-clock time."""
    kinds: list[str]
    """The kinds of its sessions."""
    size_bytes: int
    """What it holds at most."""
    options: SandboxOptions
    sessions: Mapping[str, str]
    """The ids of the sessions that the server drives, by their identity."""
    tags: Mapping[str, SessionTag] = field(default_factory=dict)
    """The sessions that clients drive, by the ids of their commands."""
    snapshot: Snapshot | None = None
    """Its content in memory."""
    stored_bytes: int | None = None
    """The size of its file in the store; None if it is not stored."""
    secret_hosts: tuple[str, ...] = ()
    """Hosts whose secrets were not stored with it."""
    cannot_store: bool = False
    """Whether storing it has failed."""

    @classmethod
    def of(
        cls,
        sandbox: str,
        snapshot: Snapshot,
        sessions: Mapping[str, str],
        tags: Mapping[str, SessionTag],
    ) -> ServedSnapshot:
        """A snapshot with a new id."""
        identity = f"snap-{secrets.token_hex(12)}"
        return cls(
            id=identity,
            sandbox=sandbox,
            name=identity if snapshot.name == snapshot.id else snapshot.name,
            created=snapshot.created,
            kinds=snapshot.sessions,
            size_bytes=snapshot.size_bytes,
            options=snapshot.state.options,
            sessions=sessions,
            tags=tags,
            snapshot=snapshot,
        )

    @property
    def held_bytes(self) -> int:
        """What it holds in memory at most."""
        return 0 if self.snapshot is None else self.size_bytes
