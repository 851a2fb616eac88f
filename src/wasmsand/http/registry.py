"""The live sandboxes, their owners and their expiry.

Owns every sandbox of the server, from `create` to its end. Rules: used on the event loop
only, so there is no lock; a token cannot see the sandboxes of another one; a sandbox in use
does not expire for idleness, but it does for its age.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wasmsand.http.failures import ApiFailure
from wasmsand.http.quotas import Quotas
from wasmsand.http.served import ServedSandbox
from wasmsand.http.tokens import Token


@dataclass(slots=True)
class Entry:
    """One sandbox, its owner and its expiry."""

    id: str
    owner: Token
    sandbox: ServedSandbox
    reserved_bytes: int
    idle_seconds: float
    created: float
    """Wall-clock time."""
    ends: float
    """Monotonic time at which the sandbox is killed for its age."""
    last_used: float
    uses: int = 0
    """Requests that use it now."""

    def expires_in(self, now: float) -> float:
        """Seconds until the sandbox is killed if it is not used again."""
        idle_end = now + self.idle_seconds if self.uses else self.last_used + self.idle_seconds
        return max(0.0, min(idle_end, self.ends) - now)


class Registry:
    """All sandboxes of a server."""

    def __init__(self, quotas: Quotas, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas = quotas
        self._clock = clock
        self._entries: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def create(
        self,
        owner: Token,
        make: Callable[[], Awaitable[ServedSandbox]],
        *,
        reserved_bytes: int,
        idle_seconds: float,
        lifetime_seconds: float,
    ) -> Entry:
        """Register a new sandbox, which `make` creates. Raises `quota_exceeded` or
        `server_full`."""
        self._quotas.reserve_sandbox(owner, reserved_bytes)
        try:
            sandbox = await make()
        except BaseException:
            self._quotas.release_sandbox(owner, reserved_bytes)
            raise
        now = self._clock()
        entry = Entry(
            id=f"sbx-{secrets.token_hex(12)}",
            owner=owner,
            sandbox=sandbox,
            reserved_bytes=reserved_bytes,
            idle_seconds=idle_seconds,
            created=time.time(),
            ends=now + lifetime_seconds,
            last_used=now,
        )
        self._entries[entry.id] = entry
        return entry

    def owned(self, owner: Token) -> list[Entry]:
        """The sandboxes of `owner`, oldest first."""
        return [entry for entry in self._entries.values() if entry.owner.name == owner.name]

    def _counted(self, owner: Token | None) -> list[Entry]:
        return list(self._entries.values()) if owner is None else self.owned(owner)

    def count_snapshots(self, owner: Token | None = None) -> int:
        """The snapshots of `owner`, or of all."""
        return sum(len(entry.sandbox.snapshots) for entry in self._counted(owner))

    def count_snapshot_bytes(self, owner: Token | None = None) -> int:
        """What the snapshots of `owner`, or of all, hold at most."""
        return sum(entry.sandbox.snapshot_bytes for entry in self._counted(owner))

    def find(self, owner: Token, identity: str) -> Entry:
        """A sandbox by its id. Raises `sandbox_not_found`."""
        entry = self._entries.get(identity)
        if entry is None or entry.owner.name != owner.name:
            raise ApiFailure(
                404,
                "sandbox_not_found",
                f"no sandbox {identity[:64]!r}: it was killed, it expired, or the server was "
                "restarted; create a new one",
            )
        return entry

    @contextmanager
    def use(self, entry: Entry) -> Iterator[None]:
        """Count a request that uses the sandbox: meanwhile the sandbox is not idle."""
        entry.uses += 1
        try:
            yield
        finally:
            entry.uses -= 1
            entry.last_used = self._clock()

    def seconds_left(self, entry: Entry) -> float:
        """Seconds until the sandbox is killed if it is not used again."""
        return entry.expires_in(self._clock())

    def take(self, entry: Entry) -> bool:
        """Remove a sandbox. True: the caller must kill it and then give its quota back. False:
        it was removed before."""
        return self._entries.pop(entry.id, None) is not None

    def take_expired(self) -> list[Entry]:
        """Remove expired sandboxes, which the caller must kill."""
        now = self._clock()
        over = [entry for entry in self._entries.values() if entry.expires_in(now) <= 0]
        for entry in over:
            self.take(entry)
        return over

    def take_all(self) -> list[Entry]:
        """Remove all sandboxes, which the caller must kill."""
        entries = list(self._entries.values())
        for entry in entries:
            self.take(entry)
        return entries
