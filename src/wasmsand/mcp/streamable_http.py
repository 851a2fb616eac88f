"""Serves many clients over streamable HTTP, with one sandbox per session.

Owns the lifetime and the number of sessions; `gate` controls access. Rules: the transport creates
a session with an unguessable `Mcp-Session-Id`, and the sandbox ends with its session; `serving`
implements connections, their timers and shutdown.

A sandbox has state, so it needs a session. Revision 2026-07-28 of the protocol has no sessions over
HTTP: the server tells its clients the revisions that have sessions, and they fall back to those.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import ASGIApp

from wasmsand.mcp.gate import MAX_REQUEST_BYTES, SESSION_HEADER, Gate
from wasmsand.mcp.server import Context, Lifespan, make_server
from wasmsand.mcp.sessions import CALLS_AT_ONCE, Sessions
from wasmsand.serving.connections import connection_class
from wasmsand.serving.crowd import ConnectionLimits
from wasmsand.serving.hosts import is_loopback
from wasmsand.serving.listening import allow_descriptors, listen
from wasmsand.serving.shutdown import GracefulServer, leave_process

PATH = "/mcp"
SHORTEST_TOKEN = 16
_CONNECTIONS_PER_SESSION = 2 * CALLS_AT_ONCE
_OTHER_CONNECTIONS = 64
"""Connections in addition to those that sessions need."""
_OTHER_DESCRIPTORS = 256
_GRACE_SECONDS = 5.0
"""After SIGTERM, requests may take this long until their sandboxes are killed."""
_SECONDS_AFTER_IDLE = 5.0
"""How long after its session an idle sandbox is killed, so that it never ends before."""


class UnsafeOptions(ValueError):
    """Other machines could use the server: there is no token, or it is too short."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The settings of the HTTP server."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    idle_seconds: float = 1800.0
    max_sessions: int = 64
    header_seconds: float = 10.0
    body_seconds: float = 120.0
    body_idle_seconds: float = 20.0
    keep_alive_seconds: float = 75.0
    unread_seconds: float = 60.0

    def connection_limits(self) -> ConnectionLimits:
        """The limits for `serving.connections`."""
        return ConnectionLimits(
            max_connections=self.max_sessions * _CONNECTIONS_PER_SESSION + _OTHER_CONNECTIONS,
            tenants=self.max_sessions + 1,
            header_seconds=self.header_seconds,
            body_seconds=self.body_seconds,
            body_idle_seconds=self.body_idle_seconds,
            keep_alive_seconds=self.keep_alive_seconds,
            unread_seconds=self.unread_seconds,
        )

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise UnsafeOptions(
                f"other machines can reach {self.host}: set a token, or use 127.0.0.1"
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise UnsafeOptions(f"a token must have at least {SHORTEST_TOKEN} characters")


def serve_http(sessions: Sessions, version: str, options: HttpOptions) -> None:
    """Serve until SIGINT or SIGTERM. Prints the address to standard error."""
    limits = options.connection_limits()
    allow_descriptors(limits.max_connections + _OTHER_DESCRIPTORS)
    listener = listen(options.host, options.port)
    # It warns about invalid requests, so any client could fill the log.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    config = uvicorn.Config(
        make_app(sessions, version, options),
        http=connection_class(limits),
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="on",
    )
    server = GracefulServer(
        config, grace_seconds=_GRACE_SECONDS, begin=lambda: None, kill_all=sessions.end_all
    )
    _announce(listener, options.host)
    server.run_until_signal(listener)
    if sessions.busy_threads:  # they wait for sandboxes that hang; do not wait for them
        leave_process()


def make_app(sessions: Sessions, version: str, options: HttpOptions) -> ASGIApp:
    """The ASGI application."""
    lifespan = _ending_idle(sessions, options.idle_seconds)
    server = make_server(sessions, _session_name, version, lifespan)
    server.middleware.append(_refuse_without_session)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=options.idle_seconds,
        max_sessions=options.max_sessions,
        max_request_body_size=MAX_REQUEST_BYTES,
        host=options.host,
    )
    return Gate(app, sessions, path=PATH, token=options.token, max_sessions=options.max_sessions)


def _session_name(context: Context) -> str:
    # The transport has checked that the session exists.
    assert isinstance(context.request, Request)
    return context.request.headers[SESSION_HEADER]


async def _refuse_without_session(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(
            UNSUPPORTED_PROTOCOL_VERSION,
            f"a sandbox needs a session, but {ctx.protocol_version} has no sessions over HTTP",
            {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ctx.protocol_version},
        )
    return await call_next(ctx)


def _ending_idle(sessions: Sessions, idle_seconds: float) -> Lifespan:
    @asynccontextmanager
    async def lifespan(_server: Server[Any]) -> AsyncIterator[None]:
        async def end_idle_sessions() -> None:
            while True:
                await anyio.sleep(min(idle_seconds, _SECONDS_AFTER_IDLE))
                sessions.end_idle(idle_seconds + _SECONDS_AFTER_IDLE)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_idle_sessions)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await sessions.end_all()

    return lifespan


def _announce(listener: socket.socket, host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    port = listener.getsockname()[1]
    print(f"wasmsand mcp: listening on http://{shown}:{port}{PATH}", file=sys.stderr, flush=True)
