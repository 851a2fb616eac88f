"""Many clients over streamable HTTP: a sandbox for each session.

Owns who may come in, how long a session lives and how many there are. Rules: bound to
this machine unless a token guards it; the token is compared in constant time; a session is
the one that the transport made, named by an unguessable `Mcp-Session-Id`, and its sandbox
ends with it.

A sandbox has a state, so it needs a session. Revision 2026-07-28 of the protocol has none
over HTTP: its clients are told the revisions that have one, and fall back to them.
"""

from __future__ import annotations

import hmac
import ipaddress
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
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wasmsand.mcp.server import Context, Lifespan, make_server
from wasmsand.mcp.sessions import CALLS_AT_ONCE, Sessions

PATH = "/mcp"
SHORTEST_TOKEN = 16
MAX_REQUEST_BYTES = 16 * 1024 * 1024
_SESSION_HEADER = "mcp-session-id"
_CONNECTIONS_PER_SESSION = 2 * CALLS_AT_ONCE
_OTHER_CONNECTIONS = 64
"""Connections beyond those that sessions need; more are answered with 503."""
_SECONDS_AFTER_IDLE = 5.0
"""A sandbox ends a little after its session, never before it."""


class UnsafeOptions(ValueError):
    """Others could come in: there is no token, or one that can be guessed."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How to serve."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    idle_seconds: float = 1800.0
    max_sessions: int = 64

    def __post_init__(self) -> None:
        if self.token is None and not _is_loopback(self.host):
            raise UnsafeOptions(
                f"{self.host} can be reached from other machines: set a token, or use 127.0.0.1"
            )
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise UnsafeOptions(f"a token must have at least {SHORTEST_TOKEN} characters")


def serve_http(sessions: Sessions, version: str, options: HttpOptions) -> None:
    """Serve until SIGINT or SIGTERM. The address is printed to standard error."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.create_server((options.host, options.port), family=family)
    app = make_app(sessions, version, options)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        limit_concurrency=options.max_sessions * _CONNECTIONS_PER_SESSION + _OTHER_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    _announce(listener, options.host)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        sessions.end_all()


def make_app(sessions: Sessions, version: str, options: HttpOptions) -> ASGIApp:
    """The ASGI application."""
    lifespan = _ending_idle(sessions, options.idle_seconds)
    server = make_server(sessions, _session_name, version, lifespan)
    server.middleware.append(_refuse_without_session)
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=options.idle_seconds,
        max_sessions=options.max_sessions,
        max_request_body_size=MAX_REQUEST_BYTES,
        host=options.host,
    )
    app = _SessionWatch(app, sessions)
    return app if options.token is None else _TokenGuard(app, options.token)


def _session_name(context: Context) -> str:
    # The transport has checked that this session is there.
    assert isinstance(context.request, Request)
    return context.request.headers[_SESSION_HEADER]


async def _refuse_without_session(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise MCPError(
            UNSUPPORTED_PROTOCOL_VERSION,
            f"a sandbox needs a session, which {ctx.protocol_version} has not over HTTP",
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
                sessions.end_all()

    return lifespan


class _SessionWatch:
    """Tells `Sessions` which requests are under way, and which sessions have ended."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = _header(scope, _SESSION_HEADER)
        if name is None or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._sessions.request(name):
            await self._app(scope, receive, watch)
        if status == 404 or (scope["method"] == "DELETE" and status < 400):
            self._sessions.end(name)


class _TokenGuard:
    """Lets only those in who know the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = (_header(scope, "authorization") or "").encode("latin-1")
            if not hmac.compare_digest(given, self._expected):
                refusal = PlainTextResponse(
                    "a token is needed: Authorization: Bearer TOKEN\n",
                    401,
                    {"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _header(scope: Scope, name: str) -> str | None:
    wanted = name.encode("ascii")
    for key, value in scope.get("headers", ()):
        if key == wanted:
            return bytes(value).decode("latin-1")
    return None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _announce(listener: socket.socket, host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    port = listener.getsockname()[1]
    print(f"wasmsand mcp: listening on http://{shown}:{port}{PATH}", file=sys.stderr, flush=True)
