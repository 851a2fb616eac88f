"""Sandboxes from saved files.

Rules: a file may come from anybody and grants nothing: limits and network come from the request,
within what the token may have. With isolation, the sandbox's own process reads the file.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal

import msgspec
from msgspec import UnsetType

from wasmsand.http.copy_messages import CopiedSandbox
from wasmsand.http.failures import ApiFailure
from wasmsand.http.handlers.copies import describe_copy
from wasmsand.http.handlers.sandboxes import check_limits, options_of, register
from wasmsand.http.life_messages import LoadSandbox
from wasmsand.http.messages import CreateSandbox, SessionTag, option_fields
from wasmsand.http.network_ceilings import within_ceiling
from wasmsand.http.registry import Entry
from wasmsand.http.routing import Call
from wasmsand.http.served import ServedSandbox
from wasmsand.sdk.client_programs import sandbox_of_state
from wasmsand.sdk.opening import load_backend
from wasmsand.sdk.state import PROGRAM, SandboxState
from wasmsand.wire import strict_json

_FROM_FILE = ("env", "cwd")


async def load(call: Call[LoadSandbox, bytes]) -> CopiedSandbox:
    """`POST /v1/sandboxes/load`"""
    service, settings, query = call.service, call.service.settings, call.query
    wanted = _wanted(query.options)
    options = options_of(wanted, settings)
    check_limits(options, settings)
    if options.network is not None:
        options = replace(options, network=within_ceiling(options.network, service, call.owner))
    isolation = settings.isolation_of(call.owner)
    tags: dict[str, SessionTag] = {}

    def make() -> ServedSandbox:
        state = load_backend(io.BytesIO(call.body), options, isolation, only_files=query.only_files)
        if query.as_commands:
            state = _as_commands(state, tags)
        return ServedSandbox(
            state.options, settings.max_command_seconds, copied=sandbox_of_state(state)
        )

    answers: list[CopiedSandbox] = []

    def note(entry: Entry) -> None:
        programs = entry.sandbox.begin_anew({}, tags)
        answers.append(describe_copy(call, entry, programs))

    await register(call, wanted, options, make, note)
    return answers[0]


def _wanted(text: str) -> CreateSandbox:
    try:
        wanted = msgspec.convert(strict_json.decode(text.encode()), CreateSandbox)
    except (strict_json.BadJson, msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ApiFailure(400, "invalid_value", f"options: {error}") from None
    for name, _, _ in option_fields():
        if name in _FROM_FILE and not isinstance(getattr(wanted, name), UnsetType):
            raise ValueError(f"the file has its own {name}; leave it out")
    if wanted.snapshot is not None:
        raise ValueError("give either a snapshot or a file, not both")
    return wanted


def _as_commands(state: SandboxState, tags: dict[str, SessionTag]) -> SandboxState:
    """The state with sessions that the client drives itself."""
    for number, saved in enumerate(state.sessions):
        if saved.kind != PROGRAM:
            kind: Literal["shell", "python"] = "shell" if saved.kind == "shell" else "python"
            tags[str(number)] = SessionTag(kind=kind, identity=saved.identity)
    programs = [
        replace(saved, kind=PROGRAM, identity=str(number))
        for number, saved in enumerate(state.sessions)
    ]
    return replace(state, sessions=tuple(programs))
