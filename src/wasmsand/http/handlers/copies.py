"""Copies of sandboxes: snapshots, restore, fork; and the list of sessions.

Rules: a copy counts as a sandbox against the token's quota, and a snapshot's size counts against
its memory. A snapshot belongs to its sandbox and ends with it; only the sandbox's owner can use it.
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
from wasmsand.http.messages import CreateSandbox, Done
from wasmsand.http.registry import Entry
from wasmsand.http.routing import Call
from wasmsand.http.served import ServedSandbox, ServedSnapshot, check_variables
from wasmsand.http.streaming import Emit, Streaming
from wasmsand.sdk import arguments
from wasmsand.sdk.client_programs import SeenByClient
from wasmsand.sdk.saving import save_state
from wasmsand.sdk.state import KeptByClient

SAVED = "application/octet-stream"
_SAVE_SECONDS = 120.0
_PIECE = 256 * 1024
_COPY_SECONDS = 15.0
"""Longest time for a copy: a program may need a moment until it can be captured."""


async def take(call: Call[None, m.TakeSnapshot]) -> m.SnapshotState:
    """`POST /v1/sandboxes/{sandbox}/snapshots`"""
    service, sandbox = call.service, call.entry.sandbox
    with sandbox.taking_snapshot(service.settings.max_snapshots):
        kept = await _taken(call, call.body, call.body.name)
        service.registry.find(call.owner, call.entry.id)  # it may have ended meanwhile
        service.quotas.reserve_bytes(call.owner, kept.size_bytes)
        sandbox.snapshots[kept.id] = kept
    return _state(kept)


async def _taken(call: Call[Any, Any], wanted: m.CopySandbox, name: str | None) -> ServedSnapshot:
    sandbox = call.entry.sandbox
    with call.running_command():
        names = sandbox.interpreter_names()
        snapshot = await call.in_command_thread(
            lambda: sandbox.take(name, wanted.running, wanted.commands), _COPY_SECONDS
        )
    return ServedSnapshot.of(snapshot, names)


async def listing(call: Call[None, None]) -> m.SnapshotList:
    """`GET /v1/sandboxes/{sandbox}/snapshots`"""
    kept = call.entry.sandbox.snapshots.values()
    return m.SnapshotList(snapshots=[_state(snapshot) for snapshot in kept])


async def delete(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/snapshots/{snapshot}`"""
    snapshots = call.entry.sandbox.snapshots
    kept = snapshots.pop(_of_sandbox(call.entry, call.part("snapshot")).id)
    call.service.quotas.release_bytes(call.owner, kept.size_bytes)
    return Done()


async def save(call: Call[None, m.SaveSnapshot]) -> Streaming:
    """`POST /v1/sandboxes/{sandbox}/snapshots/{snapshot}/save`"""
    snapshot = _of_sandbox(call.entry, call.part("snapshot")).snapshot
    wanted, options, most = call.body, call.entry.sandbox.options, call.service.settings
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
    written = BoundedBuffer(most.max_upload_bytes)

    def work() -> None:
        save_state(seen.applied(snapshot.state), written, snapshot.name)

    with call.running_command():
        await call.in_command_thread(work, _SAVE_SECONDS)
    content = written.getvalue()

    async def send(emit: Emit) -> None:
        for begin in range(0, len(content), _PIECE):
            await emit(content[begin : begin + _PIECE])

    with ExitStack() as held:
        held.enter_context(call.service.buffer(call.owner))(len(content))
        held.enter_context(call.service.registry.use(call.entry))
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
    if limits(kept.snapshot.state.options) != limits(sandbox.options):
        raise ValueError(
            "the snapshot is of a sandbox with other limits; create a sandbox from it instead"
        )
    with call.running_command():
        await call.in_command_thread(lambda: sandbox.sandbox.restore(kept.snapshot), _COPY_SECONDS)
    return note_copy(call, call.entry, kept)


async def fork(call: Call[None, m.ForkSandbox]) -> m.CopiedSandboxes:
    """`POST /v1/sandboxes/{sandbox}/fork`"""
    wanted = call.body
    kept = await _taken(call, wanted, None)
    made: list[Entry] = []
    answers: list[m.CopiedSandbox] = []
    try:
        for _ in range(wanted.count):
            idle = wanted.idle_seconds or call.entry.idle_seconds
            made.append(await open_copy(call, kept, idle, wanted.lifetime_seconds))
            answers.append(note_copy(call, made[-1], kept))
    except BaseException:
        for entry in made:
            if call.service.registry.take(entry):
                call.service.end(entry, "killed")
        raise
    return m.CopiedSandboxes(sandboxes=answers)


async def open_copy(
    call: Call[Any, Any],
    kept: ServedSnapshot,
    idle_seconds: float | None,
    lifetime_seconds: float | None,
) -> Entry:
    """A new sandbox from a snapshot, within the quota."""
    service, settings = call.service, call.service.settings

    def make() -> ServedSandbox:
        return ServedSandbox.of_snapshot(kept, settings.max_command_seconds)

    options = kept.snapshot.state.options
    entry = await service.registry.create(
        call.owner,
        lambda: call.in_file_thread(make),
        reserved_bytes=options.memory_limit_bytes + options.fs_limit_bytes,
        idle_seconds=min(idle_seconds or settings.idle_seconds, settings.idle_seconds),
        lifetime_seconds=min(
            lifetime_seconds or settings.lifetime_seconds, settings.lifetime_seconds
        ),
    )
    service.metrics.sandboxes_created.labels(call.owner.name).inc()
    return entry


async def create_from(call: Call[None, CreateSandbox]) -> m.CopiedSandbox:
    """`POST /v1/sandboxes` with `snapshot`."""
    wanted = call.body
    given = msgspec.structs.asdict(wanted)
    for name in ("snapshot", "idle_seconds", "lifetime_seconds"):
        del given[name]
    others = [name for name, value in given.items() if value is not msgspec.UNSET]
    if others:
        raise ValueError(f"a sandbox from a snapshot has its options; leave out {others[0]}")
    assert wanted.snapshot is not None
    kept = find_snapshot(call, wanted.snapshot)
    entry = await open_copy(call, kept, wanted.idle_seconds, wanted.lifetime_seconds)
    return note_copy(call, entry, kept)


def note_copy(call: Call[Any, Any], entry: Entry, kept: ServedSnapshot) -> m.CopiedSandbox:
    """Take note of what a copied or restored sandbox contains, and describe it."""
    sandbox = entry.sandbox
    commands = [
        m.CopiedCommand(was=was, id=started.id, pid=started.process.pid)
        for was, started in sandbox.begin_anew(kept.interpreters)
    ]
    state = msgspec.structs.asdict(describe(call.service, entry))
    return m.CopiedSandbox(**state, sessions=_sessions(sandbox), commands=commands)


def find_snapshot(call: Call[Any, Any], name: str) -> ServedSnapshot:
    """A snapshot of the sandbox, by name or id, or of another sandbox of the owner, by id. Raises
    `snapshot_not_found`."""
    if call.found is not None:
        try:
            return _of_sandbox(call.found, name)
        except ApiFailure:
            pass  # perhaps it is of another sandbox
    for entry in call.service.registry.owned(call.owner):
        if name in entry.sandbox.snapshots:
            return entry.sandbox.snapshots[name]
    raise _missing(name)


def _of_sandbox(entry: Entry, name: str) -> ServedSnapshot:
    for kept in reversed(entry.sandbox.snapshots.values()):
        if name in (kept.id, kept.snapshot.name):
            return kept
    raise _missing(name)


def _missing(name: str) -> ApiFailure:
    return ApiFailure(
        404,
        NO_SNAPSHOT,
        f"no snapshot {name[:64]!r}: it was deleted, or its sandbox has ended",
    )


async def sessions(call: Call[None, None]) -> m.SessionList:
    """`GET /v1/sandboxes/{sandbox}/sessions`"""
    return m.SessionList(sessions=_sessions(call.entry.sandbox))


def _sessions(sandbox: ServedSandbox) -> list[m.SessionState]:
    return [
        m.SessionState(id=interpreter.id, kind="python", pid=interpreter.session.pid)
        for interpreter in sandbox.interpreters()
    ]


async def capture(call: Call[None, m.CaptureCommand]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/commands/{command}/capture`"""
    sandbox, started = call.entry.sandbox, call.entry.sandbox.find_started(call.part("command"))
    captures, process = sandbox.captures, started.process
    begin = captures.arm if call.body.at_fork else captures.capture
    with call.running_command():
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


def _state(kept: ServedSnapshot) -> m.SnapshotState:
    snapshot = kept.snapshot
    return m.SnapshotState(
        id=kept.id,
        name=kept.id if snapshot.name == snapshot.id else snapshot.name,
        created_at=snapshot.created,
        sessions=snapshot.sessions,
        size_bytes=kept.size_bytes,
    )
