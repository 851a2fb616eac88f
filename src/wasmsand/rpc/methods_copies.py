"""Methods that copy a sandbox: snapshots, restore, fork; and the list of its sessions.

Rules: a copy is a sandbox of the same connection, with a number; every method takes `sandbox`. In a
copy and after `snapshot.restore`, shells and interpreters that were taken along have the numbers
that they had before. A started command is taken along only if the client has captured it
(`commands.capture`) and names it: that is for clients that speak with an interpreter themselves.
"""

from __future__ import annotations

import io
from typing import Final

from wasmsand.rpc.family import KeptSnapshot
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params, invalid
from wasmsand.rpc.session import RpcSession, captured_identity
from wasmsand.rpc.transfers import Outgoing
from wasmsand.sdk.client_programs import SeenByClient, snapshot_with, take_programs
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.saving import save_state
from wasmsand.sdk.state import KeptByClient, Running, Snapshot

_COPIES_MAX: Final = 64
_PIECE: Final = 1 << 20


def _running(params: Params) -> Running:
    text = params.text("running") if params.has("running") else "refuse"
    if text == "refuse":
        return "refuse"
    if text == "drop":
        return "drop"
    raise invalid(f'running must be "refuse" or "drop", not {text[:80]!r}')


def _take(session: RpcSession, params: Params, name: str | None = None) -> KeptSnapshot:
    """The sandbox now, with its sessions and the commands that the client names."""
    running = _running(params)
    programs = session.captures.take(map(captured_identity, params.integers("commands")))
    snapshot = snapshot_with(session.sandbox, name, running, programs)
    return KeptSnapshot(snapshot, session.numbers())


def _create(session: RpcSession, params: Params) -> Result:
    kept = _take(session, params, params.optional(Params.text, "name"))
    session.family.keep(kept)
    return _snapshot_out(kept.snapshot)


def _snapshot_out(snapshot: Snapshot) -> Result:
    return {
        "snapshot": snapshot.id,
        "name": snapshot.name,
        "created": snapshot.created,
        "sessions": snapshot.sessions,
        "sizeBytes": snapshot.size_bytes,
    }


def _list(session: RpcSession, _: Params) -> Result:
    return {"snapshots": [_snapshot_out(kept) for kept in session.family.snapshots()]}


def _delete(session: RpcSession, params: Params) -> Result:
    session.family.delete(params.text("snapshot"))
    return OK


def _restore(session: RpcSession, params: Params) -> Result:
    kept = session.family.snapshot(params.text("snapshot"))
    session.restore(kept.snapshot, kept.numbers)
    return contents(session)


def _open(session: RpcSession, params: Params) -> Result:
    return _copy(session, session.family.snapshot(params.text("snapshot")))


def _fork(session: RpcSession, params: Params) -> Result:
    count = params.integer("count", 1)
    if not 1 <= count <= _COPIES_MAX:
        raise invalid(f"count must be from 1 to {_COPIES_MAX}, not {count}")
    kept = _take(session, params)
    made: list[Result] = []
    try:
        for _ in range(count):
            made.append(_copy(session, kept))
    except BaseException:
        for copy in made:
            session.family.find(int(str(copy["sandbox"]))).end()
        raise
    return {"sandboxes": made}


def _copy(session: RpcSession, kept: KeptSnapshot) -> Result:
    copy = session.family.add(lambda: Sandbox.from_snapshot(kept.snapshot))
    copy.number_sessions(kept.numbers)
    return {"sandbox": copy.number, **contents(copy)}


def contents(session: RpcSession) -> Result:
    """What a client has to know of a copy, or of a loaded sandbox: its sessions, and its captured
    commands."""
    commands = []
    for identity, process in take_programs(session.sandbox).items():
        number = session.commands.add(process)
        commands.append({"was": int(identity), "command": number, "pid": process.pid})
    return {**_sessions(session, Params({})), "commands": commands}


def _save(session: RpcSession, params: Params) -> Result:
    snapshot = session.family.snapshot(params.text("snapshot")).snapshot
    kept = None
    if params.has("variables"):
        kept = KeptByClient(params.variables("variables"), params.text("cwd"))
    items = params.objects("sessions") if params.has("sessions") else []
    seen = SeenByClient(
        {
            captured_identity(item.integer("was")): (item.text("kind"), item.text("identity"))
            for item in items
        },
        kept,
        params.optional(Params.number, "timeoutMs"),
    )
    written = io.BytesIO()
    save_state(seen.applied(snapshot.state), written, snapshot.name)
    written.seek(0)
    pieces = iter(lambda: written.read(_PIECE), b"")
    return {"stream": session.transfers.add(Outgoing(pieces))}


def _sessions(session: RpcSession, _: Params) -> Result:
    numbers = session.numbers()
    return {
        "sessions": [
            {"kind": kept.kind, kept.kind: numbers[kept.identity], "pid": kept.pid}
            for kept in session.sandbox.sessions
            if kept.identity in numbers
        ]
    }


def _capture(session: RpcSession, params: Params) -> Result:
    number = params.integer("command")
    process, identity = session.commands.get(number), captured_identity(number)
    if params.flag("atFork"):
        session.captures.arm(session.backend, identity, process)
    else:
        session.captures.capture(session.backend, identity, process)
    return OK


def _captured(session: RpcSession, params: Params) -> Result:
    number = params.integer("command")
    process = session.commands.get(number)
    session.captures.finish(session.backend, captured_identity(number), process)
    return OK


COPY_METHODS: Final = (
    Method("snapshot.create", _create, (), ("name", "running", "commands"), waits=True),
    Method("snapshot.list", _list),
    Method("snapshot.delete", _delete, ("snapshot",)),
    Method("snapshot.restore", _restore, ("snapshot",), waits=True),
    Method("snapshot.open", _open, ("snapshot",), waits=True),
    Method(
        "snapshot.save",
        _save,
        ("snapshot",),
        ("sessions", "variables", "cwd", "timeoutMs"),
        waits=True,
    ),
    Method("fork", _fork, (), ("count", "running", "commands"), waits=True),
    Method("sessions", _sessions),
    Method("commands.capture", _capture, ("command",), ("atFork",), waits=True),
    Method("commands.captured", _captured, ("command",), waits=True),
)
