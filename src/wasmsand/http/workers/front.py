"""What all requests of the front process share.

Owns `Front`: admission, the ledger, the workers, the store, telemetry. Rules: used on the event
loop only. What is stored belongs to a slot, chosen by the id of its sandbox. A request whose worker
dies is repeated only if that is safe, and at most `TRIES` times in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from wasmsand.http.failures import ApiFailure
from wasmsand.http.host_gate import HostGate
from wasmsand.http.metrics import Metrics
from wasmsand.http.quotas import Quotas
from wasmsand.http.routing import AnyRoute
from wasmsand.http.settings import Settings
from wasmsand.http.store import ServerStore
from wasmsand.http.telemetry import telemetry_of
from wasmsand.http.token_watch import watch_tokens
from wasmsand.http.tokens import SERVER, Token, TokenTable
from wasmsand.http.workers.crew import Crew
from wasmsand.http.workers.forwarding import fetch, head_of
from wasmsand.http.workers.frames import RequestHead
from wasmsand.http.workers.ledger import Ledger
from wasmsand.http.workers.merging import merged_metrics
from wasmsand.http.workers.slot import Slot, WorkerLost
from wasmsand.http.workers.store_service import StoreService
from wasmsand.serving.pages import read_pages
from wasmsand.serving.shares import Shares

Result = TypeVar("Result")
TRIES: Final = 3
"""How often a request is sent, if workers die and it is safe to repeat."""
_SETTLE_STEPS: Final = 100
_SETTLE_STEP_SECONDS: Final = 0.01
_METRICS_SECONDS: Final = 10.0
"""How often the metrics of the workers are collected for OpenTelemetry."""


class Refused(Exception):
    """A worker refused a request."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.response = Response(body, status, media_type="application/json")


class Front:
    """A server whose sandboxes are in other processes."""

    def __init__(self, settings: Settings) -> None:
        """Raises `StoreError` if the store cannot be used, `PagesMissing` if there is no page."""
        self.settings = settings
        self.tokens = TokenTable(settings.tokens)
        self.quotas = Quotas(settings.max_sandboxes, gate=HostGate.of(settings))
        self.metrics = Metrics()
        self.telemetry = telemetry_of(settings)
        self._last_metrics = b""
        self.page_files = read_pages(settings.playground)
        self.draining = False
        self.drop_tenants: Callable[[Collection[str]], None] = lambda tenants: None
        """Closes the connections of tokens that were revoked."""
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

    def _worker_died(self, lost: int) -> None:
        self._deaths.inc()
        self._losses.inc(lost)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the workers until the block ends."""
        if self.store is not None:
            self._settle_stored(self.store)
        self.crew.start()
        tasks: list[asyncio.Task[None]] = []
        if self.settings.otel:
            tasks.append(asyncio.create_task(self._export_metrics()))
        if self.settings.tokens_file is not None:
            watch = watch_tokens(self.settings.tokens_file, self.use_tokens)
            tasks.append(asyncio.create_task(watch))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await self.crew.stop()
            if self.store is not None:
                self.store.close()
            self.telemetry.close()

    async def _export_metrics(self) -> None:
        """Keep the metrics of all workers for OpenTelemetry, which asks on a thread."""
        is_first = True
        while True:
            self._last_metrics = await self.all_metrics()
            if is_first:
                self.telemetry.export_metrics(lambda: self._last_metrics)
                is_first = False
            await asyncio.sleep(_METRICS_SECONDS)

    async def all_metrics(self) -> bytes:
        """The metrics of this process and all workers. A worker that has just died is left out."""
        head = RequestHead("GET", "/metrics", b"/metrics", b"", [], SERVER.name, False)
        texts = [self.metrics.text()]
        for slot in self.crew:
            if slot.ready.is_set():
                try:
                    texts.append(await self.asked(slot, head))
                except (WorkerLost, ApiFailure):
                    pass
        return merged_metrics(texts)

    async def use_tokens(self, tokens: Sequence[Token]) -> None:
        """Use other tokens from now on. Workers learn new ones before requests can show them.
        Raises `TokensRejected`."""
        TokenTable(tokens)
        await self.crew.use_tokens(tokens)
        self.drop_tenants(self.tokens.replace(tokens))

    def _settle_stored(self, store: StoreService) -> None:
        """Assign what is stored to slots; a snapshot goes where its sandbox goes."""

        def slot_of(owner: str, sandbox: str) -> Slot | None:
            if self.tokens.is_open:
                name = None if owner else ""
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
                exit_status=lost.exit_status,
            )

    async def alive(self, slot: Slot) -> int:
        """Wait until the slot has a worker; returns how many it had before. Raises `ApiFailure`."""
        self.crew.ensure(slot)
        await slot.wait_ready()
        return slot.deaths

    async def settle_loss(self, slot: Slot, deaths: int) -> None:
        """After a worker was lost before which its slot had `deaths`: wait until its end is
        settled. If that takes long, go on: then it is not known what is lost, and the client has to
        ask again."""
        for _ in range(_SETTLE_STEPS):
            if slot.deaths > deaths:
                return
            await asyncio.sleep(_SETTLE_STEP_SECONDS)

    async def repeated(self, slot: Slot, ask: Callable[[], Awaitable[Result]]) -> Result:
        """What `ask` returns, which asks the worker of `slot` something that is safe to repeat.
        Raises what it raises; `WorkerLost` only if several workers died one after the other."""
        for _ in range(TRIES - 1):
            deaths = await self.alive(slot)
            try:
                return await ask()
            except WorkerLost:
                await self.settle_loss(slot, deaths)
        return await ask()

    async def ask_all(self, owner: Token, scope: Scope, query: dict[str, str]) -> list[bytes]:
        """The responses of all workers of a token to a request without a body, which is safe to
        repeat. Raises `ApiFailure`, `WorkerLost`."""
        head = head_of(scope, owner.name, frozenset({b"authorization"}))
        head = msgspec.structs.replace(head, query=urlencode(query).encode(), has_body=False)
        slots = [slot for slot in self.crew.slots_of(owner.name) if slot.starts]
        asked = [self.repeated(slot, partial(self.asked, slot, head)) for slot in slots]
        return list(await asyncio.gather(*asked))

    async def asked(self, slot: Slot, head: RequestHead) -> bytes:
        """The response of one worker. Raises `ApiFailure`, `WorkerLost`."""
        answer, body = await fetch(slot, head)
        if answer.status >= 400:
            raise Refused(answer.status, body)
        return body

    @property
    def buffered(self) -> Shares:
        """Bodies of requests for new sandboxes, which decide about the worker."""
        return self._buffered
