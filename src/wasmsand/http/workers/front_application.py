"""The application of the front process: admits a request, chooses its worker, forwards it.

Owns `front_application`, and which requests the front process answers itself: public pages, metrics
and lists. Rules: the checks are those of `app.admit`; the server's token goes no further. A request
without a token reaches no worker, so it cannot start one. A new sandbox goes to the worker with the
least load. A request for a sandbox that died with its worker is 410 `sandbox_crashed`. One that was
running at that moment and whose sandbox is stored is 503 `worker_lost`, because it may have been
done or not; but if it is safe to repeat (`_REPEATED`), the next worker of the slot gets it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wasmsand.http.app import admit, failure_for, not_routed, note_request, parameters, routed
from wasmsand.http.failures import ApiFailure
from wasmsand.http.handlers import commands, copies, loading, python, sandboxes, server, shells
from wasmsand.http.messages import Done, Killed
from wasmsand.http.metrics import CONTENT_TYPE
from wasmsand.http.proxying import TOKEN_HEADER
from wasmsand.http.responses import failure_response, json_response
from wasmsand.http.routing import AnyRoute, PublicCall, PublicHandler
from wasmsand.http.telemetry import Span
from wasmsand.http.tokens import Token
from wasmsand.http.websocket import BEARER_PREFIX
from wasmsand.http.workers.forwarding import fetch, forward, head_of
from wasmsand.http.workers.frames import RequestHead
from wasmsand.http.workers.front import TRIES, Front, Refused
from wasmsand.http.workers.merging import after, items_of, merged_metrics, oldest_first
from wasmsand.http.workers.slot import NothingSent, Slot, WorkerLost
from wasmsand.serving.connections import BoundedConnection, connection_of

_RUNS: Final = frozenset({commands.run, python.run, shells.run})
"""Handlers whose requests wait for a command."""
_DELETIONS: Final[dict[Any, Killed | Done]] = {sandboxes.kill: Killed(), copies.delete: Done()}
"""Handlers that delete something, with what they answer. If the worker dies and the next one does
not have what was to be deleted, the first one has deleted it."""
_REPEATED: Final = frozenset({sandboxes.state, sandboxes.resume, copies.listing, *_DELETIONS})
"""Handlers whose requests have the same effect if they are done twice."""
_PAGE: Final = 1000


class _Peeked(msgspec.Struct):
    """The part of a request for a new sandbox that decides where it goes."""

    snapshot: str | None = None


def front_application(front: Front, routes: Sequence[AnyRoute]) -> Starlette:
    """The application of the front process."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with front.running():
            yield

    async def unknown(_request: Request, error: Exception) -> Response:
        return not_routed(front, error)

    return routed(routes, lambda route: FrontEndpoint(front, route), lifespan, unknown)


class FrontEndpoint:
    """Answers the requests of one route."""

    def __init__(self, front: Front, route: AnyRoute) -> None:
        self._front = front
        self._route = route
        own = {
            server.metrics: self._metrics,
            sandboxes.listing: self._list_sandboxes,
            copies.listing_all: self._list_snapshots,
        }
        self._own = self._public if route.public else own.get(route.handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        front, route, request = self._front, self._route, Request(scope, receive)
        with front.telemetry.request(route.method, route.path, request.headers) as span:
            response = await self._answer(span, request, send)
        if response is None:
            return
        if front.draining:
            response.headers["Connection"] = "close"
        front.metrics.requests.labels(route.method, route.path, response.status_code).inc()
        await response(scope, receive, send)

    async def _answer(self, span: Span, request: Request, send: Send) -> Response | None:
        """The response; None if it was sent already."""
        front, route = self._front, self._route
        try:
            owner = admit(front, route, request)
            note_request(span, owner, request)
            if self._own is None:
                span.answered(await self._forward(owner, request, send))
                return None
            response = await self._own(owner, request)
            code = None
        except ClientDisconnect:
            span.answered(499)
            return None
        except Refused as refused:
            response, code = refused.response, "refused"
        except Exception as error:
            if isinstance(error, WorkerLost):
                error = ApiFailure(503, "worker_lost", "a worker ended; try again", retry_after=1)
            failure = failure_for(error, route)
            response, code = failure_response(front, failure), failure.code
        span.answered(response.status_code, code)
        return response

    async def _forward(self, owner: Token, request: Request, send: Send) -> int:
        """Returns the status of the response."""
        front, route, scope = self._front, self._route, request.scope
        client = connection_of(scope)
        assert isinstance(client, BoundedConnection)
        head = head_of(scope, owner.name, self._dropped(request))
        repeats = route.handler in _REPEATED and (not head.has_body or route.body is not None)
        with ExitStack() as held:
            body: bytes | None = None
            if head.has_body and (route.handler is sandboxes.create or repeats):
                body = await self._received(owner, request, held)
            if route.handler in _RUNS:
                sandbox = str(request.path_params["sandbox"])
                held.enter_context(front.quotas.running_command(owner, sandbox))
            was_sent = False
            for _ in range(TRIES):
                slot = self._slot_for(owner, request, body)
                deaths = await front.alive(slot)
                self._check_lost(owner, request)  # it may have waited for the next worker
                try:
                    if was_sent and route.handler in _DELETIONS:
                        response = await self._deleted_again(slot, head)
                        await response(scope, request.receive, send)
                        return response.status_code
                    return await forward(
                        slot,
                        head,
                        client,
                        request.receive,
                        send,
                        body=body,
                        closes=lambda: front.draining,
                    )
                except NothingSent:
                    await front.settle_loss(slot, deaths)
                except WorkerLost:
                    await front.settle_loss(slot, deaths)
                    was_sent = True
                    if not repeats:
                        break
            raise self._lost(owner, request)

    def _slot_for(self, owner: Token, request: Request, body: bytes | None) -> Slot:
        """The worker for a request. Raises `sandbox_crashed`."""
        front, handler = self._front, self._route.handler
        if handler is sandboxes.create and body is not None:
            return self._slot_for_new(owner, body)
        if handler is loading.load:
            return front.crew.least_loaded(owner.name)
        return front.choose(self._route, request, owner)

    async def _deleted_again(self, slot: Slot, head: RequestHead) -> Response:
        """The response to a deletion whose first worker died. Raises `WorkerLost`, `ApiFailure`."""
        answer, body = await fetch(slot, head)
        if answer.status == 404:
            return json_response(_DELETIONS[self._route.handler])
        return Response(body, answer.status, media_type="application/json")

    def _check_lost(self, owner: Token, request: Request) -> None:
        """Raises `sandbox_crashed`."""
        self._front.check_lost(owner, str(request.path_params.get("sandbox", "")))

    def _lost(self, owner: Token, request: Request) -> ApiFailure:
        """The failure of a request that was running when its worker ended."""
        self._check_lost(owner, request)
        return ApiFailure(
            503,
            "worker_lost",
            "the worker process of the sandbox has ended while it worked on the request, which may "
            "have been done or not; a stored sandbox comes back as it was stored last",
            retry_after=1,
        )

    def _dropped(self, request: Request) -> frozenset[bytes]:
        """The headers that contain the server's token."""
        route, headers = self._route, request.headers
        if route.passes_through and TOKEN_HEADER.decode("ascii") in headers:
            # Its presence tells the worker that `Authorization` is for the guest.
            request.scope["headers"] = [
                (name, b"-" if name == TOKEN_HEADER else value)
                for name, value in request.scope["headers"]
            ]
            return frozenset()
        if route.is_websocket:
            request.scope["headers"] = [
                (name, _without_token(value) if name == b"sec-websocket-protocol" else value)
                for name, value in request.scope["headers"]
            ]
        return frozenset({b"authorization"})

    async def _received(self, owner: Token, request: Request, held: ExitStack) -> bytes:
        """The body of a request for a new sandbox."""
        front, most = self._front, self._front.settings.max_json_bytes
        pieces, size = [], 0
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise ApiFailure(
                    413,
                    "body_too_large",
                    f"the body is larger than {most} bytes; send less, or start the server with a "
                    "larger --max-json-bytes",
                )
            if not front.buffered.take(owner.name, len(piece)):
                raise ApiFailure(
                    503,
                    "busy",
                    "the server is overloaded (max_buffered_bytes); try again later",
                    retry_after=1,
                )
            held.callback(front.buffered.give, owner.name, len(piece))
            pieces.append(piece)
        return b"".join(pieces)

    def _slot_for_new(self, owner: Token, body: bytes) -> Slot:
        crew = self._front.crew
        try:
            snapshot = msgspec.json.decode(body, type=_Peeked).snapshot
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            snapshot = None  # the worker says what is wrong
        if snapshot is not None:
            return crew.slot_of(snapshot, owner.name)
        return crew.least_loaded(owner.name)

    # Answers of the front process itself.

    async def _public(self, _owner: Token, request: Request) -> Response:
        route = self._route
        parameters(route, request)
        handler = cast("PublicHandler", route.handler)
        value = await handler(PublicCall(self._front, request))
        return value if isinstance(value, Response) else json_response(value, route.status)

    async def _metrics(self, owner: Token, request: Request) -> Response:
        front = self._front
        if owner.all_metrics:
            return Response(await front.all_metrics(), media_type=CONTENT_TYPE)
        texts = await front.ask_all(owner, request.scope, {})
        own = front.metrics.own_text(owner.name, {})
        return Response(merged_metrics([own, *texts]), media_type=CONTENT_TYPE)

    async def _list_sandboxes(self, owner: Token, request: Request) -> Response:
        pairs = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        query = dict(pairs)
        if len(query) != len(pairs):
            raise ApiFailure(400, "invalid_value", "a parameter is given twice")
        identity, limit = query.pop("after", None), query.pop("limit", str(_PAGE))
        if not limit.isdecimal() or not 1 <= int(limit) <= _PAGE:
            query["limit"] = limit  # a worker says what is wrong
        items: list[dict[str, Any]] = []
        for slot in self._front.crew.slots_of(owner.name):
            if slot.starts:
                pages = partial(self._pages, owner, request.scope, slot, query)
                items += await self._front.repeated(slot, pages)
        page = after(oldest_first(items), identity, int(limit))
        return json_response({"sandboxes": page})

    async def _pages(
        self, owner: Token, scope: Scope, slot: Slot, query: dict[str, str]
    ) -> list[dict[str, Any]]:
        """All sandboxes of one worker."""
        head = head_of(scope, owner.name, frozenset({b"authorization"}))
        items: list[dict[str, Any]] = []
        query = {"limit": str(_PAGE), **query}
        while True:
            raw = urlencode(query).encode()
            body = await self._front.asked(slot, msgspec.structs.replace(head, query=raw))
            page = items_of(body, "sandboxes")
            items += page
            if len(page) < _PAGE:
                return items
            query["after"] = page[-1]["id"]

    async def _list_snapshots(self, owner: Token, request: Request) -> Response:
        bodies = await self._front.ask_all(owner, request.scope, {})
        items = [item for body in bodies for item in items_of(body, "snapshots")]
        return json_response({"snapshots": oldest_first(items)})


def _without_token(value: bytes) -> bytes:
    """Subprotocols of a WebSocket, without the one that contains the token."""
    words = [word.strip() for word in value.split(b",")]
    return b", ".join(word for word in words if not word.startswith(BEARER_PREFIX.encode("ascii")))
