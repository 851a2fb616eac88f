"""Checks that a request must pass before the package `mcp` gets it.

Owns access control, the limits of request bodies, and the assignment of connections to sessions.
Rules: without a token, the server listens only on this machine, accepts only its names in `Host`,
and refuses pages of other origins; a token is compared in constant time; a body is received
completely, within its own limit and the limit of all bodies together.
"""

from __future__ import annotations

import hmac
import json

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wasmsand.mcp.sessions import Sessions
from wasmsand.serving.connections import connection_of
from wasmsand.serving.hosts import foreign_host, is_local_origin
from wasmsand.serving.shares import Shares

SESSION_HEADER = "mcp-session-id"
MAX_REQUEST_BYTES = 16 * 1024 * 1024
MAX_BUFFERED_BYTES = 16 * MAX_REQUEST_BYTES
"""Bodies of all requests in progress."""
_NEW = "-"
"""The tenant of requests without a known session."""


class Gate:
    """The outermost ASGI application."""

    def __init__(
        self,
        app: ASGIApp,
        sessions: Sessions,
        *,
        path: str,
        token: str | None,
        max_sessions: int,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._path = path
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._buffered = Shares(MAX_BUFFERED_BYTES, max_sessions + 1)
        self._max_sessions = max_sessions
        self._known: dict[str, None] = {}
        """Known sessions, least recently used first, so that ended ones are forgotten first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # our connections never send other types
        refusal = self._refusal(scope)
        if refusal is not None:
            refusal.headers["Connection"] = "close"
            await refusal(scope, receive, send)
            return
        name = header_of(scope, SESSION_HEADER)
        tenant = _NEW
        if name is not None and name in self._known:
            tenant = name
            self._know(name)
        connection = connection_of(scope)
        if connection is not None and not connection.belongs_to(tenant):
            await _busy("this session has too many connections")(scope, receive, send)
            return
        await self._serve(scope, receive, send, name, tenant)

    def _refusal(self, scope: Scope) -> Response | None:
        if self._expected is not None:
            given = (header_of(scope, "authorization") or "").encode("latin-1")
            if hmac.compare_digest(given, self._expected):
                return None
            return PlainTextResponse(
                "the token is missing or wrong; send Authorization: Bearer TOKEN\n",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        foreign = foreign_host(scope["headers"])
        if foreign is not None:
            return PlainTextResponse(
                f"a server without a token accepts only local requests, not {foreign}\n", 421
            )
        origin = header_of(scope, "origin")
        if origin is not None and not is_local_origin(origin):
            return PlainTextResponse("web pages of other origins cannot use this server\n", 403)
        return None

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, name: str | None, tenant: str
    ) -> None:
        status, made = 0, None

        async def watch(message: Message) -> None:
            nonlocal status, made
            if message["type"] == "http.response.start":
                status = message["status"]
                made = header_of(message, SESSION_HEADER)
                if made is not None and status < 400:
                    self._know(made)
            await send(message)

        body = _Body(self._buffered, tenant)
        try:
            refusal = await body.receive(receive) if scope["method"] == "POST" else None
            if refusal is not None:
                refusal.headers["Connection"] = "close"
                await refusal(scope, receive, send)
                return
            replay = body.replay(receive) if scope["method"] == "POST" else receive
            if name is None or scope["path"] != self._path:
                await self._app(scope, replay, watch)
                return
            with self._sessions.request(name):
                await self._app(scope, replay, watch)
        finally:
            body.release()
        if status == 404 or (scope["method"] == "DELETE" and status < 400):
            self._sessions.end(name)
            self._known.pop(name, None)

    def _know(self, name: str) -> None:
        self._known.pop(name, None)
        self._known[name] = None
        if len(self._known) > self._max_sessions:
            del self._known[next(iter(self._known))]


class _Body:
    """The body of one request."""

    def __init__(self, buffered: Shares, tenant: str) -> None:
        self._buffered = buffered
        self._tenant = tenant
        self._held = 0
        self._content: bytes | None = None
        self._gone = False

    async def receive(self, receive: Receive) -> Response | None:
        """Receive the whole body. Returns an error response if it is too large. The connection
        enforces the time limit."""
        pieces, more = [], True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._gone = True
                break
            piece: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            if self._held + len(piece) > MAX_REQUEST_BYTES:
                return PlainTextResponse("the request is too large\n", 413)
            if piece and not self._buffered.take(self._tenant, len(piece)):
                return _busy("too many large requests at once")
            self._held += len(piece)
            pieces.append(piece)
        self._content = b"".join(pieces)
        return None

    def replay(self, receive: Receive) -> Receive:
        """A `receive` function that gives the body to the application."""

        async def again() -> Message:
            content, self._content = self._content, None
            if self._gone:
                return {"type": "http.disconnect"}
            if content is not None:
                return {"type": "http.request", "body": content, "more_body": False}
            return await receive()

        return again

    def release(self) -> None:
        """Free the body."""
        if self._held:
            self._buffered.give(self._tenant, self._held)
            self._held = 0


def _busy(message: str) -> Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": message}}
    return Response(
        json.dumps(error), 503, {"Retry-After": "1", "Connection": "close"}, "application/json"
    )


def header_of(scope: Scope | Message, name: str) -> str | None:
    """A header of a request or response; None if it is missing."""
    wanted = name.encode("ascii")
    for key, value in scope.get("headers", ()):
        if key == wanted:
            return bytes(value).decode("latin-1")
    return None
