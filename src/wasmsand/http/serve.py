"""Starts the server and waits for its end.

Rules: without tokens the server listens on loopback addresses only. `serving.shutdown`
implements shutdown.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import uvicorn
from starlette.applications import Starlette

from wasmsand.http.app import application
from wasmsand.http.routes import ROUTES
from wasmsand.http.service import Service
from wasmsand.http.settings import Settings
from wasmsand.sdk.errors import StateError
from wasmsand.serving.connections import connection_class
from wasmsand.serving.hosts import is_loopback
from wasmsand.serving.listening import allow_descriptors, listen, url_of
from wasmsand.serving.pages import PagesMissing
from wasmsand.serving.shutdown import GracefulServer, leave_process

Made = TypeVar("Made")

_DESCRIPTORS_PER_SANDBOX = 8
"""Pipes to the sandbox's process, and its files."""
_DESCRIPTORS_PER_PORT_CONNECTION = 2
"""Both ends of a connection to a server in a sandbox, besides the client's connection."""
_OTHER_DESCRIPTORS = 256
"""For compiled programs and other files."""


class CannotServe(Exception):
    """The server cannot start with these settings; the message names what to change."""


def serve(settings: Settings, on_listening: Callable[[str], None] | None = None) -> None:
    """Serve until a signal arrives. Calls `on_listening` with the URL. Raises `CannotServe`."""
    listener = _listen(settings)
    if settings.has_front:
        # Imported here: one process needs none of it.
        from wasmsand.http.workers.front import Front
        from wasmsand.http.workers.front_application import front_application

        front = _started(lambda: Front(settings))
        application_ = front_application(front, ROUTES)
        if on_listening is not None:
            on_listening(url_of(listener))
        _server(settings, application_, front).run_until_signal(listener)
        return
    service = _started(lambda: Service(settings))
    if on_listening is not None:
        on_listening(url_of(listener))
    _server(settings, application(service, ROUTES), service).run_until_signal(listener)
    if service.busy_threads:  # they wait for sandboxes that hang; do not wait for them
        leave_process()


@contextmanager
def running_server(settings: Settings) -> Iterator[str]:
    """Run a server on a thread of this process; yields its URL."""
    listener = _listen(settings)
    service = _started(lambda: Service(settings))
    server = _server(settings, application(service, ROUTES), service)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="wasmsand-serve"
    )
    thread.start()
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join()


def _started(make: Callable[[], Made]) -> Made:
    try:
        return make()
    except (StateError, PagesMissing) as error:
        raise CannotServe(str(error)) from None


class _Ending(Protocol):
    """A server that can be shut down."""

    draining: bool
    drop_tenants: Callable[[Collection[str]], None]

    async def kill_all(self) -> None:
        """End all running requests."""


def _server(settings: Settings, app: Starlette, service: _Ending) -> GracefulServer:
    connections = connection_class(
        settings.connection_limits(), waits_for_others=settings.has_front
    )
    service.drop_tenants = connections.crowd.drop_tenants
    config = uvicorn.Config(
        app,
        http=connections,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
    )

    def begin() -> None:
        service.draining = True

    return GracefulServer(
        config, grace_seconds=settings.grace_seconds, begin=begin, kill_all=service.kill_all
    )


def check_address(settings: Settings) -> None:
    """Raises `CannotServe` if other machines could connect without a token."""
    if settings.tokens or is_loopback(settings.host):
        return
    raise CannotServe(
        f"refusing to listen on {settings.host} without tokens: anyone who can connect could run "
        "commands; set tokens with --tokens-file or WASMSAND_TOKENS, or leave out --host"
    )


def _listen(settings: Settings) -> socket.socket:
    check_address(settings)
    allow_descriptors(descriptors_of(settings))
    try:
        return listen(settings.host, settings.port)
    except OSError as error:
        raise CannotServe(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; "
            "choose another address with --host and --port"
        ) from None


def descriptors_of(settings: Settings) -> int:
    """How many descriptors a server or a worker may need."""
    return (
        settings.max_connections
        + settings.max_port_connections * _DESCRIPTORS_PER_PORT_CONNECTION
        + settings.max_sandboxes * _DESCRIPTORS_PER_SANDBOX
        + _OTHER_DESCRIPTORS
    )
