"""The sandboxes of a server: list them, find one by its id, kill one, load one from a file.

Owns what `Sandbox.list`, `Sandbox.connect(id=...)`, `Sandbox.kill_by_id` and
`Sandbox.load(url=...)` call. Rules: a sandbox that is found has the sessions that clients of ours
have opened in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import IO, Any, Final
from urllib.parse import quote, urlencode

from wasmsand.http.answers import object_of
from wasmsand.http.backend import HttpBackend, options_out, plain_network_of
from wasmsand.http.client_copies import CapturedCommand
from wasmsand.http.client_life import info_of
from wasmsand.http.reaching import all_transports, transport_for_new, transport_to
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.sdk.options import SETTINGS, SandboxOptions
from wasmsand.sdk.results import SandboxInfo
from wasmsand.sdk.state import SandboxState, SavedSession

_PAGE: Final = 1000
_LOAD_SECONDS: Final = 180.0
_IN_FILE: Final = ("env", "cwd", "timeout_ms")
_LIMITS: Final = tuple(option.name for option in SETTINGS if option.is_limit)


def list_infos(
    url: str, token: str | None, metadata: Mapping[str, str], state: str | None
) -> list[SandboxInfo]:
    """The token's sandboxes, oldest first."""
    return [info_of(each) for each in list_sandboxes(url, token, metadata, state)]


def list_sandboxes(
    url: str,
    token: str | None,
    metadata: Mapping[str, str] | None = None,
    state: str | None = None,
) -> list[dict[str, Any]]:
    """The token's sandboxes, as `GET /v1/sandboxes` describes them."""
    query: dict[str, object] = {"limit": _PAGE}
    if metadata:
        query["metadata"] = urlencode(metadata)
    if state is not None:
        query["state"] = state
    found: list[dict[str, Any]] = []
    for transport in all_transports(url, token):
        with closing(transport):
            found += _pages(transport, query)
    return sorted(found, key=lambda each: float(each["created_at"]))


def _pages(transport: Transport, query: Mapping[str, object]) -> list[dict[str, Any]]:
    """All pages of one server's list."""
    found: list[dict[str, Any]] = []
    wanted = dict(query)
    while True:
        page = object_of(transport.ask("GET", "/v1/sandboxes", query=wanted))["sandboxes"]
        found += page
        if len(page) < _PAGE:
            return found
        wanted["after"] = page[-1]["id"]


def kill_sandbox(url: str, token: str | None, identity: str) -> bool:
    """Kill a sandbox. False if there is none with this id."""
    try:
        with closing(transport_to(url, token, identity)) as transport:
            transport.ask("DELETE", _path(identity))
            return True
    except SandboxClosedError as error:
        if type(error) is not SandboxClosedError:  # the server does not answer
            raise
        return False


def find_sandbox(
    url: str, token: str | None, identity: str, options: SandboxOptions | None
) -> SandboxState:
    """A sandbox with its sessions. It is resumed if it is paused. Raises `SandboxClosedError` if
    there is none with this id."""
    transport = transport_to(url, token, identity)
    try:
        path = _path(identity)
        wanted: dict[str, object] = {}
        if options is not None and options.network is not None:
            wanted["network"] = plain_network_of(options.network)
        state = object_of(
            transport.ask("POST", f"{path}/resume", value=wanted, seconds=_LOAD_SECONDS)
        )
        variables = object_of(transport.ask("GET", f"{path}/env"))["set"]
        sessions = object_of(transport.ask("GET", f"{path}/sessions"))["sessions"]
        chosen = SandboxOptions(
            **{name: int(state["limits"][name]) for name in _LIMITS},  # type: ignore[arg-type] # limits are numbers
            timeout_ms=state["timeout_ms"] if options is None else options.timeout_ms,
            env=variables,
            cwd=str(state["cwd"]),
            network=None if options is None else options.network,
        )
        longest = float(state["max_command_seconds"])
        backend = HttpBackend(transport, str(state["id"]), longest, chosen, is_found=True)
    except BaseException:
        transport.close()
        raise
    return _with_sessions(backend, chosen, sessions)


def load_sandbox(
    url: str,
    token: str | None,
    stream: IO[bytes],
    options: SandboxOptions | None,
    *,
    only_files: bool,
) -> SandboxState:
    """A new sandbox from a saved one. Raises `StateError`."""
    given = options or SandboxOptions()
    wanted = {name: value for name, value in options_out(given).items() if name not in _IN_FILE}
    query: dict[str, object] = {
        "options": json.dumps(wanted),
        "only_files": "true" if only_files else "false",
        "as_commands": "true",
    }
    transport = transport_for_new(url, token)
    try:
        state = object_of(
            transport.ask(
                "POST",
                "/v1/sandboxes/load",
                query=query,
                content=stream.read(),
                seconds=_LOAD_SECONDS,
            )
        )
        path = _path(str(state["id"]))
        variables = object_of(transport.ask("GET", f"{path}/env"))["set"]
        chosen = SandboxOptions(
            **{name: int(state["limits"][name]) for name in _LIMITS},  # type: ignore[arg-type] # limits are numbers
            timeout_ms=given.timeout_ms,
            packages=given.packages,
            env=variables,
            cwd=str(state["cwd"]),
            network=given.network,
        )
        longest = float(state["max_command_seconds"])
        backend = HttpBackend(transport, str(state["id"]), longest, chosen)
    except BaseException:
        transport.close()
        raise
    return _with_sessions(backend, chosen, state["sessions"])


def _with_sessions(
    backend: HttpBackend, options: SandboxOptions, sessions: list[dict[str, Any]]
) -> SandboxState:
    """The state of a sandbox whose sessions are started commands."""
    driven = [each for each in sessions if each["identity"]]
    backend.adopt_later({each["id"]: (each["id"], each["pid"], each["batch"]) for each in driven})
    saved = [
        SavedSession(str(each["kind"]), str(each["identity"]), CapturedCommand(str(each["id"])))
        for each in driven
    ]
    return SandboxState(options, backend, None, tuple(saved))


def _path(identity: str) -> str:
    return f"/v1/sandboxes/{quote(identity, safe='')}"
