"""The sandboxes, their owners and their expiry.

Owns every sandbox of the server, from `create` to its end, and snapshots whose sandbox has ended.
Rules: used on the event loop only, so there is no lock; a token cannot see the sandboxes of another
one; a sandbox in use does not expire for idleness, but it does for its age. A paused sandbox has no
`live` part, and no quota of memory.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from wasmsand.http.failures import ApiFailure
from wasmsand.http.metrics import Metrics
from wasmsand.http.quotas import Quotas
from wasmsand.http.served import ServedSandbox
from wasmsand.http.snapshots import ServedSnapshot
from wasmsand.http.tokens import Token
from wasmsand.sdk.network import Network
from wasmsand.sdk.options import SandboxOptions


@dataclass(slots=True)
class Account:
    """What a sandbox has used since this process has it. The sums over all sandboxes of a token
    are the token's metrics."""

    commands: int = 0
    """Ended commands, of sessions too."""
    command_seconds: float = 0.0
    seconds: float = 0.0
    """Time in memory, up to `since`."""
    since: float | None = None
    """Monotonic time since which it is in memory; None while it is paused."""

    def begin(self, now: float) -> None:
        """The sandbox is in memory from now on."""
        self.end(now)
        self.since = now

    def end(self, now: float) -> None:
        """The sandbox is no longer in memory."""
        self.seconds = self.seconds_until(now)
        self.since = None

    def seconds_until(self, now: float) -> float:
        """Time in memory."""
        return self.seconds + (0.0 if self.since is None else now - self.since)


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """One sandbox, its owner and its expiry."""

    id: str
    owner: Token
    live: ServedSandbox | None
    """None while it is paused."""
    options: SandboxOptions
    idle_seconds: float
    created: float
    """Wall-clock time."""
    ends: float
    """Monotonic time at which the sandbox is killed for its age."""
    last_used: float
    metadata: Mapping[str, str] = field(default_factory=dict)
    uses: int = 0
    """Requests that use it now."""
    snapshots: dict[str, ServedSnapshot] = field(default_factory=dict)
    """By their ids, oldest first."""
    taking: int = 0
    """Snapshots that are being taken."""
    account: Account = field(default_factory=Account)

    # For a store.
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the sandbox is stored, paused or resumed."""
    pausing: asyncio.Future[None] | None = None
    """Done when the pause that is under way has ended. Meanwhile, requests wait."""
    has_ended: bool = False
    changes: int = 1
    """Grows with each request that may change the sandbox."""
    stored_changes: int = 0
    """What `changes` was when the stored state was taken."""
    stored_bytes: int = 0
    next_store: float = 0.0
    """Monotonic time before which the sandbox is not stored again."""
    failures: int = 0
    """Attempts to store it that failed, since the last that did not."""
    missing_secrets: tuple[str, ...] = ()
    """Hosts whose secrets have to be given again before it can be resumed."""
    network: Network | None = None
    """The network of a paused sandbox, as it was last, without the token's ceiling."""

    @property
    def sandbox(self) -> ServedSandbox:
        """The sandbox, which is not paused."""
        assert self.live is not None, "the route does not wake the sandbox"
        return self.live

    @property
    def reserved_bytes(self) -> int:
        """What it may take of the quota of memory, while it is not paused."""
        return self.options.memory_limit_bytes + self.options.fs_limit_bytes

    @property
    def held_bytes(self) -> int:
        """What its snapshots hold in memory at most."""
        return sum(kept.held_bytes for kept in self.snapshots.values())

    def count_command(
        self, metrics: Metrics, exit_code: int, timed_out: bool, seconds: float
    ) -> None:
        """Count a command that has ended, for the sandbox, its token and the server."""
        self.account.commands += 1
        self.account.command_seconds += seconds
        metrics.count_command(self.owner.name, exit_code, timed_out, seconds)

    def expires_in(self, now: float) -> float:
        """Seconds until the sandbox is killed if it is not used again."""
        idle_end = now + self.idle_seconds if self.uses else self.last_used + self.idle_seconds
        return max(0.0, min(idle_end, self.ends) - now)

    @contextmanager
    def taking_snapshot(self, most: int) -> Iterator[None]:
        """Reserve room for a snapshot. Raises `too_many_snapshots`."""
        if len(self.snapshots) + self.taking >= most:
            raise ApiFailure(
                429,
                "too_many_snapshots",
                f"the sandbox has {most} snapshots; delete one, or start the server with a larger "
                "--max-snapshots",
            )
        self.taking += 1
        try:
            yield
        finally:
            self.taking -= 1


class Registry:
    """All sandboxes of a server."""

    def __init__(self, quotas: Quotas, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas = quotas
        self._clock = clock
        self._entries: dict[str, Entry] = {}
        self.orphans: dict[str, tuple[Token, ServedSnapshot]] = {}
        """Stored snapshots whose sandbox has ended, with their owners."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    async def create(
        self,
        owner: Token,
        make: Callable[[], Awaitable[ServedSandbox]],
        options: SandboxOptions,
        reserve: Callable[[Token, int, str], Awaitable[None]],
        *,
        idle_seconds: float,
        lifetime_seconds: float,
        metadata: Mapping[str, str] | None = None,
    ) -> Entry:
        """Register a new sandbox, which `make` creates after `reserve` has reserved its quota.
        Raises `quota_exceeded` or `server_full`."""
        reserved_bytes = options.memory_limit_bytes + options.fs_limit_bytes
        identity = f"sbx-{secrets.token_hex(12)}"
        try:
            await reserve(owner, reserved_bytes, identity)
        except BaseException:
            self._quotas.forget(identity)
            raise
        try:
            sandbox = await make()
        except BaseException:
            self._quotas.release_sandbox(owner, reserved_bytes)
            self._quotas.forget(identity)
            raise
        now = self._clock()
        entry = Entry(
            id=identity,
            owner=owner,
            live=sandbox,
            options=sandbox.options,
            idle_seconds=idle_seconds,
            created=time.time(),
            ends=now + lifetime_seconds,
            last_used=now,
            metadata=dict(metadata or {}),
        )
        entry.account.begin(now)
        self._entries[entry.id] = entry
        return entry

    def add(self, entry: Entry) -> None:
        """Register a sandbox of the store, which is paused."""
        self._entries[entry.id] = entry

    def owned(self, owner: Token) -> list[Entry]:
        """The sandboxes of `owner`, oldest first."""
        return [entry for entry in self._entries.values() if entry.owner.name == owner.name]

    def _counted(self, owner: Token | None) -> list[Entry]:
        return list(self._entries.values()) if owner is None else self.owned(owner)

    def count_paused(self, owner: Token | None = None) -> int:
        """The paused sandboxes of `owner`, or of all."""
        return sum(entry.live is None for entry in self._counted(owner))

    def count_snapshots(self, owner: Token | None = None) -> int:
        """The snapshots of `owner`, or of all."""
        return sum(len(entry.snapshots) for entry in self._counted(owner)) + len(
            self.orphans_of(owner)
        )

    def count_snapshot_bytes(self, owner: Token | None = None) -> int:
        """What the snapshots of `owner`, or of all, hold in memory at most."""
        return sum(entry.held_bytes for entry in self._counted(owner))

    def count_stored_bytes(self, owner: Token | None = None) -> int:
        """What `owner`, or all, have in the store."""
        entries = self._counted(owner)
        snapshots = [kept for entry in entries for kept in entry.snapshots.values()]
        snapshots += self.orphans_of(owner)
        return sum(entry.stored_bytes for entry in entries) + sum(
            kept.stored_bytes or 0 for kept in snapshots
        )

    def orphans_of(self, owner: Token | None) -> list[ServedSnapshot]:
        """The snapshots of `owner`, or of all, whose sandbox has ended."""
        return [
            kept
            for token, kept in self.orphans.values()
            if owner is None or token.name == owner.name
        ]

    def snapshots_of(self, owner: Token) -> list[ServedSnapshot]:
        """All snapshots of `owner`: of its sandboxes, and of those that have ended."""
        kept = [each for entry in self.owned(owner) for each in entry.snapshots.values()]
        return self.orphans_of(owner) + kept

    def find(self, owner: Token, identity: str) -> Entry:
        """A sandbox by its id. Raises `sandbox_not_found`."""
        entry = self._entries.get(identity)
        if entry is None or entry.owner.name != owner.name:
            raise ApiFailure(
                404,
                "sandbox_not_found",
                f"no sandbox {identity[:64]!r}: it was killed, it expired, or the server was "
                "restarted without a store; create a new one",
            )
        return entry

    def has(self, entry: Entry) -> bool:
        """Whether the sandbox has not ended."""
        return entry.id in self._entries

    @contextmanager
    def use(self, entry: Entry, *, changes: bool = True) -> Iterator[None]:
        """Count a request that uses the sandbox: meanwhile the sandbox is not idle."""
        entry.uses += 1
        entry.changes += changes
        try:
            yield
        finally:
            entry.uses -= 1
            entry.changes += changes
            entry.last_used = self._clock()

    def seconds_in_memory(self, entry: Entry) -> float:
        """How long the sandbox has been in memory."""
        return entry.account.seconds_until(self._clock())

    def seconds_left(self, entry: Entry) -> float:
        """Seconds until the sandbox is killed if it is not used again."""
        return entry.expires_in(self._clock())

    def end_after(self, entry: Entry, seconds: float) -> None:
        """Kill the sandbox in `seconds` from now, even in use."""
        entry.ends = self._clock() + seconds

    def take(self, entry: Entry) -> bool:
        """Remove a sandbox. True: the caller must kill it and then give its quota back. False:
        it was removed before."""
        entry.has_ended = True
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
