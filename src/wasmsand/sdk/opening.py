"""Chooses the backend of a sandbox.

Rules: this module knows backends of higher layers by name only, and imports them when they are
needed. So the SDK works without them and their dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import IO, TYPE_CHECKING, Final, cast

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.options import Isolation, Mode, SandboxOptions

if TYPE_CHECKING:
    from wasmsand.sdk.results import SandboxInfo
    from wasmsand.sdk.state import SandboxState

_PROCESS_BACKEND: Final = ("wasmsand.rpc.backend", "open_process_backend")
"""`(options: SandboxOptions) -> Backend`: a sandbox in a separate process."""
_PROCESS_SPARES: Final = ("wasmsand.rpc.backend", "keep_process_spares")
"""`(count: int) -> None`: keep `count` processes ready for such sandboxes."""
_PROCESS_LOADER: Final = ("wasmsand.rpc.process_loading", "load_process_state")
"""`(stream: IO[bytes], options: SandboxOptions | None, *, only_files: bool) -> SandboxState`"""
_V86_BACKEND: Final = ("wasmsand.v86.backend", "open_v86_backend")
"""`(options: SandboxOptions) -> Backend`: a Linux in an emulator."""
_HTTP_BACKEND: Final = ("wasmsand.http.backend", "open_http_backend")
"""`(url: str, token: str | None, options: SandboxOptions, life: ServedLife) -> Backend`: a
server's sandbox."""
_HTTP_FINDER: Final = ("wasmsand.http.finding", "find_sandbox")
"""`(url: str, token: str | None, id: str, options: SandboxOptions | None) -> SandboxState`"""
_HTTP_LOADER: Final = ("wasmsand.http.finding", "load_sandbox")
"""`(url, token, stream: IO[bytes], options: SandboxOptions | None, *, only_files: bool) ->
SandboxState`"""
_HTTP_LIST: Final = ("wasmsand.http.finding", "list_infos")
"""`(url, token, metadata: Mapping[str, str], state: str | None) -> list[SandboxInfo]`"""
_HTTP_END: Final = ("wasmsand.http.finding", "kill_sandbox")
"""`(url, token, id: str) -> bool`"""


@dataclass(frozen=True, slots=True)
class ServedLife:
    """What a server has to know of a new sandbox besides its options."""

    metadata: Mapping[str, str] = field(default_factory=dict)
    lifetime_seconds: float | None = None


def open_backend(
    options: SandboxOptions, isolation: Isolation = "none", mode: Mode = "simple"
) -> Backend:
    """A new sandbox on this machine."""
    if mode == "v86":
        _check_isolation(isolation)  # the emulator always has a process of its own
        return cast("Callable[[SandboxOptions], Backend]", _load(_V86_BACKEND))(options)
    if mode != "simple":
        raise ValueError(f"mode must be 'simple' or 'v86', not {mode!r}")
    options = _with_variables(options)
    if isolation == "none":
        # The machine: a program that connects to a server does not need it.
        from wasmsand.sdk.local import LocalBackend

        return LocalBackend(options)
    _check_isolation(isolation)
    make = cast("Callable[[SandboxOptions], Backend]", _load(_PROCESS_BACKEND))
    return make(options)


def load_backend(
    stream: IO[bytes],
    options: SandboxOptions | None,
    isolation: Isolation = "none",
    *,
    only_files: bool = False,
    trusts_limits: bool = False,
) -> SandboxState:
    """A sandbox on this machine from a saved one: its backend, and the sessions that it has. With
    `isolation="process"` the other process reads the file. `trusts_limits`: see `read_local`.
    Raises `StateError`."""
    if isolation == "none":
        from wasmsand.sdk.local_files import read_local

        state, _ = read_local(stream, options, only_files=only_files, trusts_limits=trusts_limits)
        return state
    _check_isolation(isolation)
    load = cast("Callable[..., SandboxState]", _load(_PROCESS_LOADER))
    return load(stream, options, only_files=only_files)


def _check_isolation(isolation: str) -> None:
    if isolation not in ("none", "process"):
        raise ValueError(f"isolation must be 'none' or 'process', not {isolation!r}")


def keep_spare_processes(count: int) -> None:
    """Keep processes ready, so that `open_backend(..., "process")` is fast; 0 ends them. The
    processes take memory; this is meant for servers, which create many sandboxes."""
    cast("Callable[[int], None]", _load(_PROCESS_SPARES))(count)


def connect_backend(
    url: str, token: str | None, options: SandboxOptions, life: ServedLife | None = None
) -> Backend:
    """Create a sandbox on a server."""
    make = cast("Callable[..., Backend]", _load(_HTTP_BACKEND))
    return make(url, token, _with_variables(options), life)


def find_on_server(
    url: str, token: str | None, identity: str, options: SandboxOptions | None
) -> SandboxState:
    """A sandbox that a server has already. Raises `SandboxClosedError`."""
    find = cast("Callable[..., SandboxState]", _load(_HTTP_FINDER))
    return find(url, token, identity, options)


def list_on_server(
    url: str, token: str | None, metadata: Mapping[str, str], state: str | None
) -> list[SandboxInfo]:
    """The sandboxes of a server."""
    found = cast("Callable[..., list[SandboxInfo]]", _load(_HTTP_LIST))
    return found(url, token, metadata, state)


def end_on_server(url: str, token: str | None, identity: str) -> bool:
    """Kill a sandbox of a server."""
    return cast("Callable[..., bool]", _load(_HTTP_END))(url, token, identity)


def load_anywhere(
    stream: IO[bytes],
    options: SandboxOptions | None,
    isolation: Isolation,
    url: str | None,
    token: str | None,
    *,
    only_files: bool,
) -> SandboxState:
    """A sandbox from a saved one, on this machine or on the server at `url`."""
    if url is None:
        return load_backend(stream, options, isolation, only_files=only_files)
    if isolation != "none":
        raise ValueError("the server chooses the isolation of its sandboxes; leave out isolation")
    load = cast("Callable[..., SandboxState]", _load(_HTTP_LOADER))
    return load(url, token, stream, options, only_files=only_files)


def _with_variables(options: SandboxOptions) -> SandboxOptions:
    """The options, with variables by which programs find the sandbox's certificates if the bridge
    ends TLS for some hosts."""
    if options.network is None:
        return options
    from wasmsand.sdk.network import variables_for

    return replace(options, env={**variables_for(options.network), **options.env})


def _load(place: tuple[str, str]) -> object:
    module, name = place
    return getattr(import_module(module), name)
