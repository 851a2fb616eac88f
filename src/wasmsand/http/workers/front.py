"""The application of the front process: admits a request, chooses its worker, forwards it.

Owns `Front`, and which worker gets which request. Rules: the checks are those of `app.admit`; the
server's token goes no further. A new sandbox goes to the worker with the least load. A request for
a sandbox that died with its worker is 410 `sandbox_crashed`; one that was running at that moment
and whose sandbox is stored is 503 `worker_lost`, because it may have been done or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wasmsand.http.app import admit, failure_for, not_routed, routed
from wasmsand.http.failures import ApiFailure
from wasmsand.http.handlers import commands, copies, loading, python, sandboxes, server, shells
from wasmsand.http.host_gate import HostGate
from wasmsand.http.messages import Health
from wasmsand.http.metrics import CONTENT_TYPE, Metrics
from wasmsand.http.proxying import TOKEN_HEADER
from wasmsand.http.quotas import Quotas
from wasmsand.http.responses import failure_response, json_response
from wasmsand.http.routing import AnyRoute
from wasmsand.http.settings import Settings
from wasmsand.http.store import ServerStore
from wasmsand.http.tokens import Token, TokenTable
from wasmsand.http.websocket import BEARER_PREFIX
from wasmsand.http.workers.crew import Crew
from wasmsand.http.workers.forwarding import WorkerLost, fetch, forward, head_of
from wasmsand.http.workers.frames import RequestHead
from wasmsand.http.workers.ledger import Ledger
from wasmsand.http.workers.merging import after, items_of, merged_metrics, oldest_first
from wasmsand.http.workers.slot import Slot
from wasmsand.http.workers.store_service import StoreService
from wasmsand.serving.connections import BoundedConnection, connection_of
from wasmsand.serving.shares import Shares

_RUNS: Final = frozenset({commands.run, python.run, shells.run})
"""Handlers whose requests wait for a command."""
_PAGE: Final = 1000


class _Peeked(msgspec.Struct):
    """The part of a request for a new sandbox that decides where it goes."""

    snapshot: str | None = None


class Front:
    """A server whose sandboxes are in other processes."""

    def __init__(self, settings: Settings) -> None:
        """Raises `StoreError` if the store cannot be used."""
        self.settings = settings
        self.tokens = TokenTable(settings.tokens)
        self.quotas = Quotas(settings.max_sandboxes, HostGate.of(settings))
        self.metrics = Metrics()
        self.draining = False
        store = None if settings.store is None else StoreService(ServerStore(settings.store))
        self.store = store
        self.ledger = Ledger(self.quotas, self.tokens)
        self.crew = Crew(settings, self.ledger, store, self._worker_died)
        self._buffered = Shares(settings.max_buffered_bytes, settings.tenants)
        self._deaths = self.metrics.counter(
            "wasmsand_worker_deaths", "Workers that ended without being told to."
        )
        self._losses = self.metrics.counter(
            "wasmsand_sandboxes_lost", "Sandboxes that ended with their worker."
        )
        self.metrics.gauge("wasmsand_workers", "Workers that serve.", self._count_ready)

    def _count_ready(self) -> int:
        return sum(slot.ready.is_set() for slot in self.crew)

    def _worker_died(self, _slot: Slot, _status: int, lost: int) -> None:
        self._deaths.inc()
        self._losses.inc(lost)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the workers until the block ends."""
        if self.store is not None:
            self._settle_stored(self.store)
        self.crew.start()
        try:
            yield
        finally:
            await self.crew.stop()
            if self.store is not None:
                self.store.close()

    def _settle_stored(self, store: StoreService) -> None:
        """Assign what is stored to slots; a snapshot goes where its sandbox goes."""

        def slot_of(owner: str, sandbox: str) -> Slot | None:
            if self.tokens.is_open:
                name = "" if owner else None
            else:
                name = owner if self.tokens.named(owner) is not None else None
            if name is None:
                return None
            slots = self.crew.slots_of(name)
            return slots[int(sandbox[-8:], 16) % len(slots)]

        for identity, owner in store.load(slot_of):
            slot = store.slot_of(identity)
            assert isinstance(slot, Slot)
            self.ledger.settle(slot.account, identity, owner or "anybody")
        store.report()

    async def kill_all(self) -> None:
        """End all running requests."""
        await self.crew.drain()

    # Requests.

    def choose(self, route: AnyRoute, request: Request, owner: Token) -> Slot:
        """The worker for a request about an existing sandbox or snapshot, or about none."""
        for name in ("sandbox", "snapshot"):
            if name in request.path_params:
                identity = str(request.path_params[name])
                self.check_lost(owner, identity)
                return self.crew.slot_of(identity, owner.name)
        return self.crew.least_loaded(owner.name)

    def check_lost(self, owner: Token, identity: str) -> None:
        """Raises `sandbox_crashed` if the sandbox died with its worker."""
        lost = self.ledger.lost(owner, identity)
        if lost is not None:
            raise ApiFailure(
                410,
                "sandbox_crashed",
                f"the worker process of sandbox {identity} has ended (status {lost.exit_status}), "
                "and the sandbox was not stored; create a new one, or start the server with "
                "--store",
            )

    async def settle_loss(self, slot: Slot, process: object) -> None:
        """After a worker was lost: wait until its death is known."""
        for _ in range(100):
            if slot.process is not process:
                return
            await asyncio.sleep(0.01)

    async def ask_all(self, owner: Token, scope: Scope, query: dict[str, str]) -> list[bytes]:
        """The responses of all workers of a token to a request without a body. Raises
        `ApiFailure`."""
        head = head_of(scope, owner.name, frozenset({b"authorization"}))
        head = msgspec.structs.replace(head, query=urlencode(query).encode(), has_body=False)
        slots = [slot for slot in self.crew.slots_of(owner.name) if slot.starts]
        return list(await asyncio.gather(*(self.asked(slot, head) for slot in slots)))

    async def asked(self, slot: Slot, head: RequestHead) -> bytes:
        """The response of one worker. Raises `ApiFailure`, `WorkerLost`."""
        answer, body = await fetch(slot, head)
        if answer.status >= 400:
            raise _Refused(answer.status, body)
        return body

    @property
    def buffered(self) -> Shares:
        """Bodies of requests for new sandboxes, which decide about the worker."""
        return self._buffered


class _Refused(Exception):
    """A worker refused a request."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.response = Response(body, status, media_type="application/json")


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
        self._own = {
            server.health: self._health,
            server.metrics: self._metrics,
            sandboxes.listing: self._list_sandboxes,
            copies.listing_all: self._list_snapshots,
        }.get(route.handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        front, route, request = self._front, self._route, Request(scope, receive)
        try:
            owner = admit(front, route, request)
            if self._own is None:
                await self._forward(owner, request, send)
                return
            response = await self._own(owner, request)
        except ClientDisconnect:
            return
        except _Refused as refused:
            response = refused.response
        except WorkerLost:
            failure = ApiFailure(503, "worker_lost", "a worker has ended; try again", retry_after=1)
            response = failure_response(front, failure)
        except Exception as error:
            response = failure_response(front, failure_for(error, route))
        if front.draining:
            response.headers["Connection"] = "close"
        front.metrics.requests.labels(route.method, route.path, response.status_code).inc()
        await response(scope, receive, send)

    async def _forward(self, owner: Token, request: Request, send: Send) -> None:
        front, route, scope = self._front, self._route, request.scope
        client = connection_of(scope)
        assert isinstance(client, BoundedConnection)
        head = head_of(scope, owner.name, self._dropped(request))
        with ExitStack() as held:
            body: bytes | None = None
            if route.handler is sandboxes.create and head.has_body:
                body = await self._received(owner, request, held)
                slot = self._slot_for_new(owner, body)
            elif route.handler is loading.load:
                slot = front.crew.least_loaded(owner.name)
            else:
                slot = front.choose(route, request, owner)
            if route.handler in _RUNS:
                sandbox = str(request.path_params["sandbox"])
                held.enter_context(front.quotas.running_command(owner, sandbox))
            front.crew.ensure(slot)
            process = slot.process
            try:
                await forward(
                    slot,
                    head,
                    client,
                    request.receive,
                    send,
                    body=body,
                    closes=lambda: front.draining,
                )
            except WorkerLost:
                await front.settle_loss(slot, process)
                raise self._lost(owner, request) from None

    def _lost(self, owner: Token, request: Request) -> ApiFailure:
        """The failure of a request that was running when its worker ended."""
        identity = str(request.path_params.get("sandbox", ""))
        self._front.check_lost(owner, identity)
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

    async def _health(self, _owner: Token, _request: Request) -> Response:
        status = "draining" if self._front.draining else "ok"
        return json_response(Health(status=status, version=self._front.settings.version))

    async def _metrics(self, owner: Token, request: Request) -> Response:
        front = self._front
        texts = await front.ask_all(owner, request.scope, {})
        metrics = front.metrics
        own = metrics.text() if owner.all_metrics else metrics.own_text(owner.name, {})
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
                items += await self._pages(owner, request.scope, slot, query)
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
