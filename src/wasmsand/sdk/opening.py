"""Which backend a sandbox gets.

Rules: a backend that stands in a layer above this one is known here by name only, and its
module is loaded when somebody asks for it. So the SDK needs neither it nor what it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from wasmsand.sdk.backend import Backend
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import Isolation, SandboxOptions

_PROCESS_BACKEND: Final = ("wasmsand.rpc.backend", "open_process_backend")
"""`(options: SandboxOptions) -> Backend`: a sandbox in a process of its own."""
_PROCESS_SPARES: Final = ("wasmsand.rpc.backend", "keep_process_spares")
"""`(count: int) -> None`: keep so many processes ready for such sandboxes."""
_HTTP_BACKEND: Final = ("wasmsand.http.backend", "open_http_backend")
"""`(url: str, token: str | None, options: SandboxOptions) -> Backend`: a server's sandbox."""


def open_backend(options: SandboxOptions, isolation: Isolation = "none") -> Backend:
    """A new sandbox on this machine."""
    if isolation == "none":
        return LocalBackend(options)
    if isolation == "process":
        make = cast("Callable[[SandboxOptions], Backend]", _load(_PROCESS_BACKEND))
        return make(options)
    raise ValueError(f"isolation must be 'none' or 'process', not {isolation!r}")


def keep_spare_processes(count: int) -> None:
    """Keep processes ready, so that `open_backend(..., "process")` is quick; 0 ends them. They
    take memory: for servers, which make many sandboxes."""
    cast("Callable[[int], None]", _load(_PROCESS_SPARES))(count)


def connect_backend(url: str, token: str | None, options: SandboxOptions) -> Backend:
    """A new sandbox of a server."""
    make = cast("Callable[[str, str | None, SandboxOptions], Backend]", _load(_HTTP_BACKEND))
    return make(url, token, options)


def _load(place: tuple[str, str]) -> object:
    module, name = place
    return getattr(import_module(module), name)
