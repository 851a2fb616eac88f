"""The ASGI application: checks a request, calls its handler, sends the response.

Owns the order of the checks: origin and host of the request, its token, connection limit,
shutdown, rate limit, query, sandbox, body. Rules: every error has the JSON form of
`failures.py`; a bug is logged here, and the client learns nothing about it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from typing import Any, Protocol
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.metrics import Metrics
from wasmsand.http.proxying import TOKEN_HEADER
from wasmsand.http.quotas import Quotas
from wasmsand.http.responses import Counting, failure_response, json_response
from wasmsand.http.route_index import index_routes
from wasmsand.http.routing import AnyRoute, Call
from wasmsand.http.service import Service, log
from wasmsand.http.telemetry import Span
from wasmsand.http.tokens import PUBLIC, Token, TokenTable
from wasmsand.http.websocket import offered_token
from wasmsand.serving.connections import connection_of
from wasmsand.serving.hosts import foreign_host, foreign_page
from wasmsand.wire import strict_json

_JSON = "application/json"
_MAX_PARAMETERS = 16
_MAX_VALUES = 200_000
"""Most values in a JSON body: more than a program can have arguments and variables."""
_DECODED_AT_ONCE = 64 * 1024
"""A JSON body up to this size is decoded on the event loop, a larger one on a thread."""


Identify = Callable[[Request], Token]


class Gate(Protocol):
    """What the admission of a request needs of a server."""

    tokens: TokenTable
    quotas: Quotas
    metrics: Metrics
    draining: bool


def application(
    service: Service, routes: Sequence[AnyRoute], identify: Identify | None = None
) -> Starlette:
    """The server's application. `identify`: who sends a request, if another process has admitted
    it already."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    async def unknown(_request: Request, error: Exception) -> Response:
        return not_routed(service, error)

    return routed(routes, lambda route: _endpoint(service, route, identify), lifespan, unknown)


def routed(
    routes: Sequence[AnyRoute],
    endpoint: Callable[[AnyRoute], Any],
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
    unknown: Callable[[Request, Exception], Awaitable[Response]],
) -> Starlette:
    """An application with these routes."""
    app = Starlette(
        routes=[
            StarletteRoute(
                route.path.replace("{path}", "{path:path}"),
                endpoint(route),
                methods=[route.method],
            )
            for route in routes
        ],
        lifespan=lifespan,
        exception_handlers={404: unknown, 405: unknown},
    )
    index_routes(app.router)
    return app


def not_routed(service: Counting, error: Exception) -> Response:
    """The response to a request that has no route."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        failure = ApiFailure(
            405,
            "method_not_allowed",
            "this method is not allowed for this path; see /docs or /openapi.json",
        )
    else:
        failure = ApiFailure(404, "no_such_route", "unknown path; see /docs or /openapi.json")
    headers = error.headers if isinstance(error, HTTPException) else None
    service.metrics.requests.labels("-", "unknown", status).inc()
    return failure_response(service, failure, headers)


def _endpoint(
    service: Service, route: AnyRoute, identify: Identify | None
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        with service.telemetry.request(route.method, route.path, request.headers) as span:
            return await answer_in(span, request)

    async def answer_in(span: Span, request: Request) -> Response:
        began = time.perf_counter()
        code = None
        try:
            owner = admit(service, route, request) if identify is None else identify(request)
            note_request(span, owner, request)
            response = await _answer(service, route, request, owner)
        except ClientDisconnect:
            response = Response(status_code=499)  # only for the metrics: the client has gone
        except Exception as error:
            failure = failure_for(error, route)
            code = failure.code
            response = failure_response(service, failure)
        span.answered(response.status_code, code)
        if service.draining:
            response.headers["Connection"] = "close"
        service.metrics.requests.labels(route.method, route.path, response.status_code).inc()
        service.metrics.request_seconds.labels(route.method, route.path).observe(
            time.perf_counter() - began
        )
        return response

    return answer


def note_request(span: Span, owner: Token, request: Request) -> None:
    """Tell a span whose request it is, and for which sandbox."""
    span.note("wasmsand.token", owner.name)
    if "sandbox" in request.path_params:
        span.note("wasmsand.sandbox", str(request.path_params["sandbox"])[:64])


async def _answer(service: Service, route: AnyRoute, request: Request, owner: Token) -> Response:
    query = None if route.passes_through else parameters(route, request)
    with ExitStack() as held:
        # Find the sandbox before reading the body: an upload to a killed one fails at once.
        entry = None
        if route.has_sandbox:
            entry = service.registry.find(owner, request.path_params["sandbox"])
            changes = route.wakes and (request.method != "GET" or route.passes_through)
            if route.wakes or request.method != "GET":  # looking at a sandbox is no use of it
                held.enter_context(service.registry.use(entry, changes=changes))
            if route.wakes and service.keeping is not None:
                await service.keeping.wake(entry)
        body = None
        if route.body is not None:
            grow = held.enter_context(service.buffer(owner))
            body = await _body(service, route, request, owner, grow)
        value = await route.handler(Call(service, request, owner, query, body, entry))
    return value if isinstance(value, Response) else json_response(value, route.status)


def admit(service: Gate, route: AnyRoute, request: Request) -> Token:
    """The token that the request shows. Raises `ApiFailure` if the request is refused."""
    if service.tokens.is_open:
        _refuse_browsers(request)
    owner = service.tokens.authenticate(_authorization(route, request))
    if owner is None:
        if not route.public:
            raise ApiFailure(
                401,
                "unauthorized",
                "the token is missing or unknown; send `Authorization: Bearer TOKEN` (Python: "
                "Sandbox.connect(url, token=...))",
            )
        return PUBLIC
    connection = connection_of(request.scope)
    if connection is not None and not connection.belongs_to(owner.name):
        raise ApiFailure(
            429,
            "too_many_connections",
            "too many connections; reuse open ones, or start the server with a larger "
            "--max-connections",
            retry_after=1,
        )
    if service.draining and not route.public:
        raise ApiFailure(
            503, "shutting_down", "the server is shutting down; use another", retry_after=5
        )
    if not route.public:
        service.metrics.token_requests.labels(owner.name).inc()
        service.quotas.count_request(owner)
    return owner


def _authorization(route: AnyRoute, request: Request) -> str | None:
    """The header with the server's token. `Authorization` may be for a program in the sandbox."""
    given = None
    if route.passes_through:
        given = request.headers.get(TOKEN_HEADER.decode("ascii"))
    elif route.is_websocket and "authorization" not in request.headers:
        given = offered_token(request.scope["headers"])
    return request.headers.get("authorization") if given is None else f"Bearer {given}"


def _refuse_browsers(request: Request) -> None:
    """Keep web pages away from a server without tokens. A page's request has an Origin, or,
    after DNS rebinding, a Host that is not ours."""
    headers = request.scope["headers"]
    reason = foreign_host(headers) or foreign_page(headers)
    if reason is not None:
        raise ApiFailure(
            403,
            "forbidden",
            "a server without tokens answers only local programs, not web pages or other host "
            f"names (the request has {reason}); start it with --tokens-file",
        )


def parameters(route: AnyRoute, request: Request) -> Any:
    """The query of a request, converted to the route's type. Raises `ApiFailure`."""
    text = request.scope["query_string"].decode("latin-1")
    try:
        # File names may contain bytes that are not UTF-8; surrogateescape preserves them.
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            errors="surrogateescape",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise ApiFailure(400, "bad_request", "too many parameters") from None
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ApiFailure(400, "invalid_value", "a parameter is given twice")
    if route.query is None:
        if values:
            raise ApiFailure(400, "invalid_value", f"unknown parameter {next(iter(values))[:64]!r}")
        return None
    return _converted(values, route.query, strict=False)


async def _body(
    service: Service,
    route: AnyRoute,
    request: Request,
    owner: Token,
    grow: Callable[[int], None],
) -> Any:
    settings = service.settings
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise ApiFailure(
            415, "unsupported_media_type", f"a body must not be encoded ({encoding[:64]})"
        )
    if route.body is bytes:
        return await _received(request, settings.max_upload_bytes, "max-upload-bytes", grow)
    data = await _received(request, settings.max_json_bytes, "max-json-bytes", grow)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and kind != _JSON:
        found = f", not {kind[:64]}" if kind else "; the header Content-Type is missing"
        raise ApiFailure(415, "unsupported_media_type", f"the body must be {_JSON}{found}")
    if len(data) <= _DECODED_AT_ONCE:
        return _decoded(data, route.body)
    return await service.in_file_thread(owner, "-", lambda: _decoded(data, route.body))


def _decoded(data: bytes, kind: Any) -> Any:
    try:
        value = strict_json.decode(data, _MAX_VALUES) if data else {}
    except strict_json.BadJson as error:
        raise ApiFailure(400, "bad_json", str(error)) from None
    return _converted(value, kind, strict=True)


async def _received(
    request: Request, limit: int, option: str, grow: Callable[[int], None]
) -> bytes:
    """The whole body, of at most `limit` bytes. The connection enforces the time limit."""
    too_large = ApiFailure(
        413,
        "body_too_large",
        f"the body is larger than {limit} bytes; send less, or start the server with a larger "
        f"--{option}",
    )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise too_large
        grow(len(piece))
        pieces.append(piece)
    return b"".join(pieces)


def _converted(value: object, kind: Any, *, strict: bool) -> Any:
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ApiFailure(400, "invalid_value", str(error)) from None


def failure_for(error: Exception, route: AnyRoute) -> ApiFailure:
    """The response for an error; a bug is logged."""
    failure = failure_of(error)
    if failure is None:
        log.error("bug in %s %s", route.method, route.path, exc_info=error)
        failure = ApiFailure(500, "internal", "bug in the server; see its log")
    return failure
