"""Methods that begin the client's sandbox with a saved one.

Rules: `load` takes the place of `create`. The client writes the file to the stream that `load`
returns, finishes it, and calls `loaded`. The file is read here, so that a damaged or hostile one is
read by the process that the sandbox is confined to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import IO, Final, cast

from wasmsand.rpc import values
from wasmsand.rpc.method import Method, Result
from wasmsand.rpc.methods_copies import contents
from wasmsand.rpc.methods_network import with_events
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession, captured_identity
from wasmsand.rpc.transfers import Incoming, PieceStream
from wasmsand.sdk.client_programs import sandbox_of_state
from wasmsand.sdk.options import SETTINGS, SandboxOptions
from wasmsand.sdk.saving import load_state
from wasmsand.sdk.state import PROGRAM, SandboxState, SavedSession

_ABOUT: Final = ("onlyFiles", "savedOptions", "asCommands", "networkEvents")


def _load(session: RpcSession, params: Params) -> Result:
    session.check_can_begin()
    options = None
    if not params.flag("savedOptions"):
        options = SandboxOptions(**values.options_in(params))
        if params.flag("networkEvents"):
            options = with_events(session, options)
    session.family.allow_memory(options or SandboxOptions())
    only_files, as_commands = params.flag("onlyFiles"), params.flag("asCommands")

    def read(pieces: Iterable[bytes]) -> None:
        stream = cast("IO[bytes]", PieceStream(pieces))
        state, _ = load_state(stream, options, only_files=only_files)
        try:
            session.check_can_begin()
        except BaseException:
            state.backend.close()
            raise
        session.loaded = state.sessions if as_commands else ()
        session.use(sandbox_of_state(_as_programs(state) if as_commands else state))
        session.number_sessions(
            {kept.identity: number for number, kept in enumerate(session.sandbox.sessions, 1)}
        )

    return {"stream": session.transfers.add(Incoming(read))}


def _as_programs(state: SandboxState) -> SandboxState:
    """The state with sessions that the client drives itself."""
    programs = [
        SavedSession(PROGRAM, captured_identity(number), saved.captured)
        for number, saved in enumerate(state.sessions)
    ]
    return replace(state, sessions=tuple(programs))


def _loaded(session: RpcSession, _: Params) -> Result:
    options = session.sandbox.options
    saved, session.loaded = session.loaded, ()
    return {
        **contents(session),
        "saved": [{"kind": each.kind, "identity": each.identity} for each in saved],
        "limits": [
            {"name": each.name, "value": getattr(options, each.name)}
            for each in SETTINGS
            if each.is_limit
        ],
        "timeoutMs": options.timeout_ms,
        "packages": list(options.packages),
        "variables": session.sandbox.env.chosen(),
        "cwd": options.cwd,
    }


LOADING_METHODS: Final = (
    Method("load", _load, (), (*(option.json_name for option in values.options_of()), *_ABOUT)),
    Method("loaded", _loaded),
)
