"""Chooses the backend of a sandbox.

Rules: this module knows backends of higher layers by name only, and imports them when they are
needed. So the SDK works without them and their dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Final, cast

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import Isolation, SandboxOptions

_PROCESS_BACKEND: Final = ("wasmsand.rpc.backend", "open_process_backend")
"""`(options: SandboxOptions) -> Backend`: a sandbox in a separate process."""
_PROCESS_SPARES: Final = ("wasmsand.rpc.backend", "keep_process_spares")
"""`(count: int) -> None`: keep `count` processes ready for such sandboxes."""
_HTTP_BACKEND: Final = ("wasmsand.http.backend", "open_http_backend")
"""`(url: str, token: str | None, options: SandboxOptions) -> Backend`: a server's sandbox."""


def open_backend(options: SandboxOptions, isolation: Isolation = "none") -> Backend:
    """A new sandbox on this machine."""
    options = _with_variables(options)
    if isolation == "none":
        return LocalBackend(options)
    if isolation == "process":
        make = cast("Callable[[SandboxOptions], Backend]", _load(_PROCESS_BACKEND))
        return make(options)
    raise ValueError(f"isolation must be 'none' or 'process', not {isolation!r}")


def keep_spare_processes(count: int) -> None:
    """Keep processes ready, so that `open_backend(..., "process")` is fast; 0 ends them. The
    processes take memory; this is meant for servers, which create many sandboxes."""
    cast("Callable[[int], None]", _load(_PROCESS_SPARES))(count)


def connect_backend(url: str, token: str | None, options: SandboxOptions) -> Backend:
    """Create a sandbox on a server."""
    make = cast("Callable[[str, str | None, SandboxOptions], Backend]", _load(_HTTP_BACKEND))
    return make(url, token, _with_variables(options))


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
