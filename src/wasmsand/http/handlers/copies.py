"""Copies of sandboxes: snapshots, restore, fork; and the list of sessions.

Rules: a copy counts as a sandbox against the token's quota, and a snapshot's size counts against
its memory. Without a store, a snapshot ends with its sandbox; only the sandbox's owner can use it.
Sandboxes are copied on threads; what the server knows of them changes on the event loop.
"""

from __future__ import annotations

import io
from contextlib import ExitStack
from typing import Any

import msgspec
from msgspec import UnsetType

from wasmsand.http import copy_messages as m
from wasmsand.http.failures import NO_SNAPSHOT, ApiFailure
from wasmsand.http.handlers.describing import describe
from wasmsand.http.handlers.sandboxes import register
from wasmsand.http.messages import CreateSandbox, Done
from wasmsand.http.registry import Entry
from wasmsand.http.routing import Call
from wasmsand.http.served import ServedSandbox, check_variables
from wasmsand.http.snapshots import ServedSnapshot
from wasmsand.http.started import Started
from wasmsand.http.streaming import Emit, Streaming
from wasmsand.sdk import arguments
from wasmsand.sdk.client_programs import SeenByClient
from wasmsand.sdk.errors import StateError
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.saving import save_state
from wasmsand.sdk.state import KeptByClient

SAVED = "application/octet-stream"
_SAVE_SECONDS = 120.0
_PIECE = 256 * 1024
_COPY_SECONDS = 15.0
"""Longest time for a copy: a program may need a moment until it can be captured."""


async def take(call: Call[None, m.TakeSnapshot]) -> m.SnapshotState:
    """`POST /v1/sandboxes/{sandbox}/snapshots`"""
    service, entry = call.service, call.entry
    if service.keeping is not None:
        await service.keeping.check_snapshots(call.owner)
    with entry.taking_snapshot(service.settings.max_snapshots):
        kept = await _taken(call, call.body, call.body.name)
        service.registry.find(call.owner, entry.id)  # it may have ended meanwhile
        await service.quotas.reserve_snapshot(call.owner, kept.size_bytes, kept.id)
        entry.snapshots[kept.id] = kept
    return state_of(kept)


async def _taken(call: Call[Any, Any], wanted: m.CopySandbox, name: str | None) -> ServedSnapshot:
    sandbox = call.entry.sandbox
    with call.running_command():
        names = sandbox.sessions.names()
        tags = {each.id: each.session for each in sandbox.all_started() if each.session is not None}
        snapshot = await call.in_command_thread(
            lambda: sandbox.take(name, wanted.running, wanted.commands), _COPY_SECONDS
        )
    return ServedSnapshot.of(call.entry.id, snapshot, names, tags)


async def listing(call: Call[None, None]) -> m.SnapshotList:
    """`GET /v1/sandboxes/{sandbox}/snapshots`"""
    kept = [
        *(each for each in call.service.registry.orphans_of(call.owner) if _is_of(call, each)),
        *call.entry.snapshots.values(),
    ]
    return m.SnapshotList(snapshots=[state_of(snapshot) for snapshot in kept])


async def listing_all(call: Call[None, None]) -> m.SnapshotList:
    """`GET /v1/snapshots`"""
    kept = call.service.registry.snapshots_of(call.owner)
    return m.SnapshotList(snapshots=[state_of(snapshot) for snapshot in kept])


async def delete(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/snapshots/{snapshot}`, `DELETE /v1/snapshots/{snapshot}`"""
    service, kept = call.service, find_snapshot(call, call.part("snapshot"))
    service.registry.orphans.pop(kept.id, None)
    for entry in service.registry.owned(call.owner):
        entry.snapshots.pop(kept.id, None)
    service.quotas.release_bytes(call.owner, kept.held_bytes)
    kept.snapshot = None if kept.stored_bytes is not None else kept.snapshot
    if service.keeping is None:
        service.quotas.forget(kept.id)
    else:
        await service.keeping.forget_snapshot(kept)
    return Done()


async def save(call: Call[None, m.SaveSnapshot]) -> Streaming:
    """`POST /v1/sandboxes/{sandbox}/snapshots/{snapshot}/save`, `POST /v1/snapshots/…/save`"""
    kept_snapshot = find_snapshot(call, call.part("snapshot"))
    wanted, options = call.body, kept_snapshot.options
    kept = None
    if wanted.variables is not None:
        arguments.variables("variables", wanted.variables)
        check_variables(wanted.variables)
        cwd = options.cwd if wanted.cwd is None else wanted.cwd
        kept = KeptByClient(wanted.variables, cwd)
    timeout = wanted.timeout_ms
    seen = SeenByClient(
        {each.was: (each.kind, each.identity) for each in wanted.sessions},
        kept,
        options.timeout_ms if isinstance(timeout, UnsetType) else timeout,
    )
    written = BoundedBuffer(call.service.settings.max_upload_bytes)
    snapshot, keeping = kept_snapshot.snapshot, call.service.keeping

    def work() -> None:
        if snapshot is not None:
            save_state(seen.applied(snapshot.state), written, kept_snapshot.name)
        elif kept is not None or wanted.sessions or keeping is None:
            raise StateError("the snapshot is only in the store; create a sandbox from it first")
        else:
            keeping.copy_file(kept_snapshot, written)

    with call.running_command():
        await call.in_command_thread(work, _SAVE_SECONDS)
    content = written.getvalue()

    async def send(emit: Emit) -> None:
        for begin in range(0, len(content), _PIECE):
            await emit(content[begin : begin + _PIECE])

    with ExitStack() as held:
        held.enter_context(call.service.buffer(call.owner))(len(content))
        if call.found is not None:
            held.enter_context(call.service.registry.use(call.found, changes=False))
        return Streaming(send, SAVED, held=held.pop_all())


class BoundedBuffer(io.BytesIO):
    """A saved sandbox in memory, up to a size."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, data: Any, /) -> int:
        """Raises `too_large`."""
        if self.tell() + len(data) > self._most:
            raise ApiFailure(
                413,
                "too_large",
                f"the saved sandbox has more than {self._most} bytes; remove files, or start the "
                "server with a larger --max-upload-bytes",
            )
        return super().write(data)


async def restore(call: Call[None, m.RestoreSandbox]) -> m.CopiedSandbox:
    """`POST /v1/sandboxes/{sandbox}/restore`"""
    kept, sandbox = find_snapshot(call, call.body.snapshot), call.entry.sandbox
    if limits(kept.options) != limits(sandbox.options):
        raise ValueError(
            "the snapshot is of a sandbox with other limits; create a sandbox from it instead"
        )
    snapshot, service = kept.snapshot, call.service
    with call.running_command():
        if snapshot is not None:
            await call.in_command_thread(lambda: sandbox.sandbox.restore(snapshot), _COPY_SECONDS)
        else:
            assert service.keeping is not None, "only a store has such snapshots"
            made = service.keeping.opener(call.owner, kept)
            served = await call.in_command_thread(made, _COPY_SECONDS)
            call.entry.live, before = served, call.entry.sandbox
            service.endings.run(before.kill)
    return note_copy(call, call.entry, kept)


async def fork(call: Call[None, m.ForkSandbox]) -> m.CopiedSandboxes:
    """`POST /v1/sandboxes/{sandbox}/fork`"""
    wanted = call.body
    kept = await _taken(call, wanted, None)
    made: list[Entry] = []
    answers: list[m.CopiedSandbox] = []
    settings = CreateSandbox(
        idle_seconds=wanted.idle_seconds or call.entry.idle_seconds,
        lifetime_seconds=wanted.lifetime_seconds,
        metadata=dict(call.entry.metadata) if wanted.metadata is None else wanted.metadata,
    )
    try:
        for _ in range(wanted.count):
            entry, answer = await open_copy(call, kept, settings)
            made.append(entry)
            answers.append(answer)
    except BaseException:
        for entry in made:
            if call.service.registry.take(entry):
                call.service.end(entry, "killed")
        raise
    return m.CopiedSandboxes(sandboxes=answers)


async def open_copy(
    call: Call[Any, Any], kept: ServedSnapshot, wanted: CreateSandbox
) -> tuple[Entry, m.CopiedSandbox]:
    """A new sandbox from a snapshot, within the quota."""
    settings, keeping = call.service.settings, call.service.keeping
    snapshot = kept.snapshot
    if snapshot is not None:

        def make() -> ServedSandbox:
            return ServedSandbox(
                snapshot.state.options,
                settings.max_command_seconds,
                copied=Sandbox.from_snapshot(snapshot),
            )
    else:
        assert keeping is not None, "only a store has such snapshots"
        make = keeping.opener(call.owner, kept)
    answers: list[m.CopiedSandbox] = []
    entry = await register(
        call, wanted, kept.options, make, lambda new: answers.append(note_copy(call, new, kept))
    )
    return entry, answers[0]


async def create_from(call: Call[None, CreateSandbox]) -> m.CopiedSandbox:
    """`POST /v1/sandboxes` with `snapshot`."""
    wanted = call.body
    given = msgspec.structs.asdict(wanted)
    for name in ("snapshot", "idle_seconds", "lifetime_seconds", "metadata"):
        del given[name]
    others = [name for name, value in given.items() if value is not msgspec.UNSET]
    if others:
        raise ValueError(f"a sandbox from a snapshot has its options; leave out {others[0]}")
    assert wanted.snapshot is not None
    kept = find_snapshot(call, wanted.snapshot)
    return (await open_copy(call, kept, wanted))[1]


def note_copy(call: Call[Any, Any], entry: Entry, kept: ServedSnapshot) -> m.CopiedSandbox:
    """Take note of what a copied or restored sandbox contains, and describe it."""
    return describe_copy(call, entry, entry.sandbox.begin_anew(kept.sessions, kept.tags))


def describe_copy(
    call: Call[Any, Any], entry: Entry, programs: list[tuple[str, Started]]
) -> m.CopiedSandbox:
    """Describe a sandbox with its sessions and commands."""
    commands = [
        m.CopiedCommand(was=was, id=started.id, pid=started.process.pid)
        for was, started in programs
    ]
    state = msgspec.structs.asdict(describe(call.service, entry))
    return m.CopiedSandbox(**state, sessions=_sessions(entry.sandbox), commands=commands)


def find_snapshot(call: Call[Any, Any], name: str) -> ServedSnapshot:
    """A snapshot of the sandbox, by name or id, or of another sandbox of the owner, by id. Raises
    `snapshot_not_found`."""
    registry = call.service.registry
    if call.found is not None:
        own = [*(each for each in registry.orphans_of(call.owner) if _is_of(call, each))]
        for kept in reversed([*own, *call.found.snapshots.values()]):
            if name in (kept.id, kept.name):
                return kept
    for kept in registry.snapshots_of(call.owner):
        if name == kept.id:
            return kept
    raise ApiFailure(
        404,
        NO_SNAPSHOT,
        f"no snapshot {name[:64]!r}: it was deleted, or its sandbox has ended and the server has "
        "no store",
    )


def _is_of(call: Call[Any, Any], kept: ServedSnapshot) -> bool:
    return kept.sandbox == call.entry.id


async def sessions(call: Call[None, None]) -> m.SessionList:
    """`GET /v1/sandboxes/{sandbox}/sessions`"""
    return m.SessionList(sessions=_sessions(call.entry.sandbox))


def _sessions(sandbox: ServedSandbox) -> list[m.SessionState]:
    """Sessions that the server drives, and those of our own clients."""
    driven = [
        m.SessionState(
            id=each.id,
            kind=each.session.kind,
            pid=each.process.pid,
            identity=each.session.identity,
            batch=each.last.number,
        )
        for each in sandbox.all_started()
        if each.session is not None
    ]
    return [
        m.SessionState(id=served.id, kind=served.kind, pid=served.session.pid)
        for served in sandbox.sessions.live()
    ] + driven


async def capture(call: Call[None, m.CaptureCommand]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/commands/{command}/capture`"""
    sandbox, started = call.entry.sandbox, call.entry.sandbox.find_started(call.part("command"))
    begin = sandbox.captures.arm if call.body.at_fork else sandbox.captures.capture
    with call.running_command():
        async with started.use() as process:
            await call.in_command_thread(
                lambda: begin(sandbox.backend, started.id, process), _COPY_SECONDS
            )
    return Done()


async def captured(call: Call[None, None]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/commands/{command}/captured`"""
    sandbox, started = call.entry.sandbox, call.entry.sandbox.find_started(call.part("command"))
    with call.running_command():
        await call.in_command_thread(
            lambda: sandbox.captures.finish(sandbox.backend, started.id, started.process),
            _COPY_SECONDS,
        )
    return Done()


def limits(options: Any) -> tuple[object, ...]:
    """What a quota or the server's settings have allowed."""
    return (
        options.memory_limit_bytes,
        options.fs_limit_bytes,
        options.max_inodes,
        options.max_processes,
        options.max_open_files,
        options.max_output_bytes,
    )


def state_of(kept: ServedSnapshot) -> m.SnapshotState:
    """Describe a snapshot."""
    return m.SnapshotState(
        id=kept.id,
        sandbox=kept.sandbox,
        name=kept.name,
        created_at=kept.created,
        sessions=kept.kinds,
        size_bytes=kept.size_bytes,
        is_stored=kept.stored_bytes is not None,
    )
