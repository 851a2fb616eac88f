"""Reads and writes the store for `Keeping`: records, quotas, and sandboxes made of stored states.

Rules: what is written is bounded by the token's and the server's `max_stored_bytes`; a failed write
leaves the old state. Sandboxes and snapshots of tokens that the server does not know stay in the
store, unseen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Final, TypeVar, cast

import msgspec

from wasmsand.http.failures import ApiFailure
from wasmsand.http.messages import OutputPiece, piece
from wasmsand.http.records import (
    SandboxRecord,
    SnapshotRecord,
    StoredCommand,
    decoded,
    encoded,
    read_options,
    stored_options,
    stored_owner,
)
from wasmsand.http.registry import Entry
from wasmsand.http.served import ServedSandbox
from wasmsand.http.snapshots import ServedSnapshot
from wasmsand.http.started import Started, command_end
from wasmsand.http.store import Kind, StateStore, StoredState, StoreTotals
from wasmsand.http.stored_state import BoundedWriter, EndedCommand, TakenState
from wasmsand.http.tokens import ANYBODY, Token
from wasmsand.sdk.backend import Ended, Output
from wasmsand.sdk.client_programs import sandbox_of_state, take_programs
from wasmsand.sdk.errors import StoreError
from wasmsand.sdk.network import Network
from wasmsand.sdk.opening import load_backend
from wasmsand.sdk.saving import save_state
from wasmsand.sdk.state import SandboxState

if TYPE_CHECKING:
    from wasmsand.http.service import Service

Result = TypeVar("Result")
_PIECE: Final = 1 << 20
log = logging.getLogger("wasmsand.http")


class StoreWork:
    """The store of one server."""

    def __init__(self, service: Service, store: StateStore) -> None:
        self._service = service
        self._store = store

    async def in_thread(self, call: Callable[[], Result]) -> Result:
        """Run a call that waits for a sandbox or the disk, on a thread of its own."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def tell(set_: Callable[..., None], value: object) -> None:
            if not done.done():
                set_(value)

        def work() -> None:
            try:
                outcome: tuple[Callable[..., None], object] = (done.set_result, call())
            except BaseException as error:
                outcome = (done.set_exception, error)
            try:
                loop.call_soon_threadsafe(tell, *outcome)
            except RuntimeError:
                pass  # the server has ended

        self._service.start_thread(work)
        return await done

    # Reading.

    def load(self) -> None:
        """Register everything that the store has. What cannot be used is reported."""
        store = self._store
        if store.leftovers:
            log.info("removed %d files of unfinished writes from the store", store.leftovers)
        for name in store.foreign:
            log.error("the store has a file that is not ours: states/%s", ascii(name))
        unknown = 0
        for stored in store.all():
            try:
                unknown += not self._register(stored)
            except StoreError as error:
                log.error("%s in the store is not usable: %s", ascii(stored.id), error)
        for identity in store.damaged:
            log.error("%s in the store is not usable: damaged index", ascii(identity))
        if unknown:
            log.error("the store has %d sandboxes and snapshots of unknown tokens", unknown)

    def _register(self, stored: StoredState) -> bool:
        """Register a state. False if its owner is unknown."""
        service = self._service
        if stored.kind == "snapshot":
            record = decoded(stored.record, SnapshotRecord)
            owner = self._owner(record.owner)
            if owner is not None:
                kept = _snapshot(stored, record)
                service.registry.orphans[kept.id] = (owner, kept)
            return owner is not None
        sandbox = decoded(stored.record, SandboxRecord)
        owner = self._owner(sandbox.owner)
        if owner is None:
            return False
        options = replace(read_options(sandbox.options), cwd=sandbox.cwd)
        wall, now = time.time(), time.monotonic()
        service.registry.add(
            Entry(
                id=stored.id,
                owner=owner,
                live=None,
                options=options,
                idle_seconds=sandbox.idle_seconds,
                created=sandbox.created,
                ends=now + sandbox.ends - wall,
                last_used=now + min(0.0, sandbox.used - wall),
                metadata=sandbox.metadata,
                stored_changes=1,
                stored_bytes=stored.size + len(stored.record),
                missing_secrets=tuple(sandbox.options.secret_hosts),
                network=options.network,
            )
        )
        return True

    def _owner(self, name: str) -> Token | None:
        tokens = self._service.tokens
        if tokens.is_open:
            return ANYBODY if not name else None
        return tokens.named(name)

    def loaded(
        self, entry: Entry, network: Network | None, *, only_files: bool = False
    ) -> SandboxState:
        """The sandbox of a stored state. Call it on a thread. Raises `StateError`."""
        options = replace(entry.options, network=network)
        isolation = self._service.settings.isolation_of(entry.owner)
        with self._store.open(entry.id) as stream:
            return load_backend(
                stream, options, isolation, only_files=only_files, trusts_limits=True
            )

    def opened(self, owner: Token, kept: ServedSnapshot, network: Network | None) -> ServedSandbox:
        """A sandbox from a stored snapshot. Call it on a thread. Raises `StateError`."""
        settings = self._service.settings
        options = replace(kept.options, network=network)
        with self._store.open(kept.id) as stream:
            state = load_backend(stream, options, settings.isolation_of(owner), trusts_limits=True)
        sandbox = sandbox_of_state(state)
        return ServedSandbox(state.options, settings.max_command_seconds, copied=sandbox)

    def copy_file(self, kept: ServedSnapshot, target: IO[bytes]) -> None:
        """Write the file of a stored snapshot to `target`. Raises `StoreError`."""
        with self._store.open(kept.id) as stream:
            while data := stream.read(_PIECE):
                target.write(data)

    def revived(self, state: SandboxState, record: SandboxRecord) -> ServedSandbox:
        """The sandbox of a state that was loaded, with its sessions and commands."""
        sandbox = sandbox_of_state(state)
        served = ServedSandbox(
            state.options, self._service.settings.max_command_seconds, copied=sandbox
        )
        programs = take_programs(sandbox)
        commands: list[Started] = []
        lost = set(record.lost)
        for each in record.commands:
            waiting = tuple(Output(item.fd, _bytes(item)) for item in each.waiting)
            process = programs.pop(each.id, None)
            if each.end is not None:
                ended = Ended(
                    each.end.exit_code,
                    each.end.timed_out,
                    each.end.execution_time_ms / 1000,
                    tuple(each.end.notices),
                )
                process = EndedCommand(each.pid, ended)
            if process is None:
                lost.add(each.id)
            else:
                commands.append(Started.resumed(each.id, process, each.session, waiting, each.last))
        alive = {session.identity for session in sandbox.sessions}
        lost |= {name for identity, name in record.sessions.items() if identity not in alive}
        served.go_on(record.sessions, commands, lost)
        return served

    # Writing.

    async def network_of(self, entry: Entry) -> Network | None:
        """The network of a live sandbox as it is now, without the token's ceiling."""
        network = entry.sandbox.options.network
        if network is None:
            return None
        rules = await self.in_thread(entry.sandbox.backend.network_rules)
        return replace(network, allow=rules.allow, deny=rules.deny, ceiling=None, on_event=None)

    async def write(self, entry: Entry, taken: TakenState, network: Network | None) -> None:
        """Store a state with its record. Raises `StoreError`, `quota_exceeded`."""
        record = encoded(self._record(entry, taken, network))
        size = await self._write(entry.owner, entry.id, record, taken.state, entry.stored_bytes)
        entry.stored_bytes = size

    async def write_record(self, entry: Entry) -> None:
        """Store what may have changed without the state: the end of a sandbox. Raises
        `StoreError`."""
        now, wall = time.monotonic(), time.time()

        def write() -> None:
            record = self.record(entry)
            record.ends = wall + entry.ends - now
            record.used = wall + entry.last_used - now
            self._store.write_record(entry.id, encoded(record))

        await self.in_thread(write)

    def record(self, entry: Entry) -> SandboxRecord:
        """The stored record of a sandbox. Call it on a thread. Raises `StoreError`."""
        return decoded(self._store.record(entry.id), SandboxRecord)

    async def write_snapshot(self, owner: Token, kept: ServedSnapshot) -> None:
        """Store a snapshot. Raises `StoreError`, `quota_exceeded`."""
        snapshot = kept.snapshot
        if snapshot is None or kept.stored_bytes is not None:
            return
        record = encoded(
            SnapshotRecord(
                owner=stored_owner(owner),
                sandbox=kept.sandbox,
                name=kept.name,
                created=kept.created,
                kinds=kept.kinds,
                size_bytes=kept.size_bytes,
                options=stored_options(kept.options, kept.options.network),
                sessions=dict(kept.sessions),
                tags=dict(kept.tags),
            )
        )
        kept.stored_bytes = await self._write(owner, kept.id, record, snapshot.state, 0)

    async def _write(
        self, owner: Token, identity: str, record: bytes, state: SandboxState, before: int
    ) -> int:
        """Returns the size of what is stored."""
        settings, totals = self._service.settings, await self._totals(owner)
        own = owner.quota.max_stored_bytes - totals.own_bytes
        left = settings.max_stored_bytes - totals.bytes
        refusal = _no_room(owner, is_own=own <= left)
        most = min(own, left) + before - len(record)

        def write(stream: IO[bytes]) -> None:
            bounded = cast("IO[bytes]", BoundedWriter(stream, most, refusal))
            save_state(state, bounded)

        kind: Kind = "snapshot" if identity.startswith("snap-") else "sandbox"
        size = await self.in_thread(lambda: self._store.write(identity, kind, record, write))
        return size + len(record)

    def _record(self, entry: Entry, taken: TakenState, network: Network | None) -> SandboxRecord:
        sandbox, now, wall = entry.sandbox, time.monotonic(), time.time()
        commands = []
        for started in sandbox.all_started():
            ended = taken.ended.get(started.id)
            if ended is not None or started.id in taken.kept:
                commands.append(
                    StoredCommand(
                        id=started.id,
                        pid=started.process.pid,
                        session=started.session,
                        end=None if ended is None else command_end(ended),
                        waiting=[piece(each.fd, each.data) for each in started.waiting],
                        last=started.last,
                    )
                )
        return SandboxRecord(
            owner=stored_owner(entry.owner),
            created=entry.created,
            ends=wall + entry.ends - now,
            used=wall + entry.last_used - now,
            idle_seconds=entry.idle_seconds,
            metadata=dict(entry.metadata),
            options=stored_options(sandbox.options, network),
            cwd=sandbox.options.cwd,
            sessions=sandbox.sessions.names(),
            commands=commands,
            lost=taken.lost,
        )

    async def _totals(self, owner: Token) -> StoreTotals:
        """What the store has. Other workers of the server may use it too."""
        if self._store.is_shared:
            return await self.in_thread(lambda: self._store.totals(stored_owner(owner)))
        registry = self._service.registry
        return StoreTotals(
            own_bytes=registry.count_stored_bytes(owner),
            own_sandboxes=len(registry.owned(owner)),
            own_snapshots=len(registry.snapshots_of(owner)),
            bytes=registry.count_stored_bytes(),
            sandboxes=len(registry),
        )

    async def check_room(self, owner: Token) -> None:
        """Raises `quota_exceeded`."""
        totals = await self._totals(owner)
        most = owner.quota.max_stored_sandboxes
        if totals.own_sandboxes >= most:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"{most} sandboxes are in the store already; kill one, or raise "
                f"max_stored_sandboxes of {owner.name}",
            )
        if totals.sandboxes >= self._service.settings.max_stored_sandboxes:
            raise ApiFailure(
                503,
                "server_full",
                f"the store has {totals.sandboxes} sandboxes; start the server with a larger "
                "--max-stored-sandboxes",
                retry_after=5,
            )

    async def check_snapshots(self, owner: Token) -> None:
        """Raises `quota_exceeded`."""
        most = owner.quota.max_stored_sandboxes
        if (await self._totals(owner)).own_snapshots >= most:
            raise ApiFailure(
                429,
                "quota_exceeded",
                f"there are {most} snapshots already; delete one, or raise max_stored_sandboxes "
                f"of {owner.name}",
            )

    async def delete(self, identity: str) -> None:
        """Remove a state. Raises `StoreError`."""
        await self.in_thread(lambda: self._store.delete(identity))

    def close(self) -> None:
        """Let another server have the store."""
        self._store.close()


def _snapshot(stored: StoredState, record: SnapshotRecord) -> ServedSnapshot:
    return ServedSnapshot(
        id=stored.id,
        sandbox=record.sandbox,
        name=record.name,
        created=record.created,
        kinds=record.kinds,
        size_bytes=record.size_bytes,
        options=read_options(record.options),
        sessions=record.sessions,
        tags=record.tags,
        stored_bytes=stored.size + len(stored.record),
        secret_hosts=tuple(record.options.secret_hosts),
    )


def _bytes(item: OutputPiece) -> bytes:
    if item.base64 is not msgspec.UNSET:
        return item.base64
    return b"" if item.text is msgspec.UNSET else item.text.encode()


def _no_room(owner: Token, *, is_own: bool) -> ApiFailure:
    if is_own and owner is not ANYBODY:
        return ApiFailure(
            429,
            "quota_exceeded",
            f"the store may hold {owner.quota.max_stored_bytes} bytes of {owner.name}; remove "
            "files, kill sandboxes, delete snapshots, or raise max_stored_bytes of the token",
        )
    return ApiFailure(
        507,
        "store_failed",
        "the server's store is full; start the server with a larger --max-stored-bytes",
    )
