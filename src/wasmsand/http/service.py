"""State that all requests of a server share.

Owns the registry, the threads, the budget of buffered bodies, the metrics, and shutdown:
while `draining` is set, new requests are refused; `kill_all` kills every sandbox and so
ends every running command. Rules: calls that can wait for a sandbox run on the lanes'
threads, everything else on the event loop; each token has its share of threads, queues and
buffers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from wasmsand.engine.freed_memory import FreedMemory, c_library
from wasmsand.http.failures import ApiFailure
from wasmsand.http.host_gate import HostGate
from wasmsand.http.keeping import Keeping
from wasmsand.http.metrics import Metrics
from wasmsand.http.quotas import Quotas
from wasmsand.http.registry import Entry, Registry
from wasmsand.http.served import ServedSandbox
from wasmsand.http.settings import Settings
from wasmsand.http.snapshots import ServedSnapshot
from wasmsand.http.store import ServerStore, StateStore
from wasmsand.http.telemetry import telemetry_of
from wasmsand.http.token_watch import watch_tokens
from wasmsand.http.tokens import ANYBODY, Token, TokenTable
from wasmsand.sdk.errors import StoreError
from wasmsand.sdk.opening import keep_spare_processes
from wasmsand.serving.daemons import Daemons
from wasmsand.serving.endings import Endings
from wasmsand.serving.lanes import QUEUE_SECONDS, Lane, LaneFull
from wasmsand.serving.pages import read_pages
from wasmsand.serving.shares import Shares

Result = TypeVar("Result")

_REAP_SECONDS = 1.0
_END_SECONDS = 30.0
"""If a sandbox takes longer to end, its quota is given back and it counts as hanging."""
_LAST_ENDS_SECONDS = 2.0
"""How long the server waits for its sandboxes at shutdown."""

log = logging.getLogger("wasmsand.http")


class Service:
    """A server without its sockets."""

    def __init__(
        self,
        settings: Settings,
        *,
        quotas: Quotas | None = None,
        shared_store: StateStore | None = None,
    ) -> None:
        """A worker gives `quotas` and `shared_store`, which ask the front process. Raises
        `StoreError` if the store cannot be used, `PagesMissing` if there is no page."""
        self.settings = settings
        store: StateStore | None = shared_store
        if store is None and settings.store is not None:
            store = ServerStore(settings.store)
        self.tokens = TokenTable(settings.tokens)
        self.page_files = read_pages(settings.playground)
        """Content and headers of the files of the playground."""
        self.quotas = quotas or Quotas(settings.max_sandboxes, gate=HostGate.of(settings))
        self.registry = Registry(self.quotas)
        self.draining = False
        self.drop_tenants: Callable[[Collection[str]], None] = lambda tenants: None
        """Closes the connections of tokens that were revoked."""
        tenants = settings.tenants
        self._daemons = Daemons("wasmsand-http")
        self._commands = Lane("command", settings.command_lane(), tenants, self._daemons)
        self._files = Lane("file", settings.file_lane(), tenants, self._daemons)
        self.endings = Endings(self._daemons)
        self._freed_memory = FreedMemory(self._daemons.start, c_library())
        self._port_connections = Shares(settings.max_port_connections, tenants)
        self._terminals = Shares(settings.max_terminals, tenants)
        self._buffered = Shares(settings.max_buffered_bytes, tenants)
        self.metrics = Metrics()
        self.telemetry = telemetry_of(settings)
        gauge = self.metrics.gauge
        gauge("wasmsand_sandboxes", "Live sandboxes.", lambda: len(self.registry))
        gauge(
            "wasmsand_sandboxes_ending",
            "Sandboxes and commands that were killed and have not ended yet.",
            lambda: len(self.endings),
        )
        gauge(
            "wasmsand_sandbox_seconds",
            "Time that all sandboxes have been in memory, in sum.",
            self.quotas.all_sandbox_seconds,
        )
        gauge("wasmsand_snapshots", "Snapshots of sandboxes.", self.registry.count_snapshots)
        gauge(
            "wasmsand_snapshot_bytes",
            "What all snapshots hold at most, in bytes.",
            self.registry.count_snapshot_bytes,
        )
        if store is not None:
            gauge("wasmsand_sandboxes_paused", "Paused sandboxes.", self.registry.count_paused)
            gauge(
                "wasmsand_stored_bytes",
                "What the store holds, in bytes.",
                self.registry.count_stored_bytes,
            )
        gauge(
            "wasmsand_commands_running",
            "Calls that wait for a command: running, or queued for a thread.",
            lambda: self._commands.taken,
        )
        gauge(
            "wasmsand_file_calls_running",
            "Calls that do not wait for a command: running, or queued for a thread.",
            lambda: self._files.taken,
        )
        gauge(
            "wasmsand_buffered_bytes",
            "Bytes of request and response bodies in memory.",
            lambda: self._buffered.total_held,
        )
        gauge(
            "wasmsand_port_connections",
            "Connections to servers in sandboxes.",
            lambda: self._port_connections.total_held,
        )

        gauge("wasmsand_terminals", "Open terminals.", lambda: self._terminals.total_held)
        self.keeping: Keeping | None = None
        if store is not None:
            self.keeping = Keeping(self, store)
            self.keeping.load()

    def start_thread(self, work: Callable[[], None]) -> None:
        """Run `work`, which must not raise, on a thread. The caller bounds their number."""
        self._daemons.start(work)

    @property
    def busy_threads(self) -> int:
        """Threads that wait for a sandbox."""
        return self._daemons.busy

    async def in_command_thread(
        self,
        owner: Token,
        sandbox: str,
        call: Callable[[], Result],
        seconds: float,
        then: Callable[[], object] | None = None,
    ) -> Result:
        """Run `call`, which may wait for a command for up to `seconds`. Raises `busy`. `then`:
        see `Lane.run`."""
        work = self._commands.run(owner.name, sandbox, call, then)
        return await self._bounded(work, owner, "max_running_commands", seconds + QUEUE_SECONDS)

    async def in_file_thread(
        self, owner: Token, sandbox: str, call: Callable[[], Result]
    ) -> Result:
        """Run `call`, which blocks only briefly. Raises `busy`."""
        work = self._files.run(owner.name, sandbox, call)
        return await self._bounded(work, owner, "file_threads", QUEUE_SECONDS)

    async def _bounded(
        self, work: Coroutine[Any, Any, Result], owner: Token, option: str, seconds: float
    ) -> Result:
        """The result of `work`. If its sandbox hangs, raises `busy`; the thread stays taken."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds + self.settings.hang_seconds)
            if not done:
                raise ApiFailure(
                    503, "busy", "the sandbox does not answer; kill it", retry_after=30
                )
            return task.result()
        except LaneFull as full:
            raise _busy(owner, full.cause, option) from None
        finally:
            task.cancel()

    @contextmanager
    def buffer(self, owner: Token) -> Iterator[Callable[[int], None]]:
        """Account for a body in memory until the block ends. Call the yielded function with the
        size of each piece; it raises `busy`."""
        held = 0

        def grow(size: int) -> None:
            nonlocal held
            if not self._buffered.take(owner.name, size):
                cause = "tenant" if self._buffered.is_at_most(owner.name, size) else "server"
                raise _busy(owner, cause, "max_buffered_bytes")
            held += size

        try:
            yield grow
        finally:
            if held:
                self._buffered.give(owner.name, held)

    @contextmanager
    def port_connection(self, owner: Token) -> Iterator[None]:
        """Count a connection to a server in a sandbox until the block ends. Raises `busy`."""
        if not self._port_connections.take(owner.name):
            cause = "tenant" if self._port_connections.is_at_most(owner.name) else "server"
            raise _busy(owner, cause, "max_port_connections")
        try:
            yield
        finally:
            self._port_connections.give(owner.name)

    @contextmanager
    def terminal(self, owner: Token) -> Iterator[None]:
        """Count a terminal until the block ends. Raises `busy`."""
        if not self._terminals.take(owner.name):
            cause = "tenant" if self._terminals.is_at_most(owner.name) else "server"
            raise _busy(owner, cause, "max_terminals")
        try:
            yield
        finally:
            self._terminals.give(owner.name)

    def own_figures(self, owner: Token) -> dict[str, float]:
        """What one token uses now, for its metrics."""
        share = self.quotas.share(owner)
        return {
            "wasmsand_sandboxes": share.sandboxes,
            "wasmsand_sandbox_seconds": self.quotas.sandbox_seconds(owner),
            "wasmsand_sandboxes_reserved_bytes": share.bytes,
            "wasmsand_snapshots": self.registry.count_snapshots(owner),
            "wasmsand_snapshot_bytes": self.registry.count_snapshot_bytes(owner),
            "wasmsand_sandboxes_paused": self.registry.count_paused(owner),
            "wasmsand_stored_bytes": self.registry.count_stored_bytes(owner),
            "wasmsand_commands_running": self._commands.taken_by(owner.name),
            "wasmsand_file_calls_running": self._files.taken_by(owner.name),
            "wasmsand_buffered_bytes": self._buffered.held(owner.name),
            "wasmsand_port_connections": self._port_connections.held(owner.name),
            "wasmsand_terminals": self._terminals.held(owner.name),
        }

    async def reserve(self, owner: Token, size: int, identity: str) -> None:
        """Reserve a new sandbox. With a store, idle ones are paused to make room. Raises
        `quota_exceeded`, `server_full`."""
        if self.keeping is None:
            await self.quotas.reserve(owner, size, identity)
        else:
            await self.keeping.check_room(owner)
            await self.keeping.reserve(owner, size, identity)

    def end(self, entry: Entry, cause: str) -> asyncio.Future[None]:
        """Kill a sandbox that was taken from the registry. Its quota is given back when it has
        ended, or after `_END_SECONDS`. With a store, it is removed from there too, but its stored
        snapshots stay; at shutdown, everything stays."""
        self.metrics.sandboxes_ended.labels(cause).inc()
        log.info("sandbox %s of %s: %s", entry.id, entry.owner.name, cause)
        endings: list[asyncio.Future[None]] = []
        self.quotas.forget(entry.id)
        if self.keeping is None or cause == "shutdown":
            self.quotas.release_bytes(entry.owner, entry.held_bytes)
            for identity in entry.snapshots:
                self.quotas.forget(identity)
        else:
            for kept in entry.snapshots.values():
                self.registry.orphans[kept.id] = (entry.owner, kept)
                self.drop_from_memory(entry.owner, kept)
            endings.append(asyncio.ensure_future(self._forget(self.keeping, entry)))
        entry.snapshots.clear()
        if entry.live is not None:
            endings.append(self._end_live(entry, entry.live))
        return asyncio.ensure_future(_all(endings))

    async def _forget(self, keeping: Keeping, entry: Entry) -> None:
        try:
            await keeping.forget(entry)
        except StoreError as error:
            log.error("%s", error)

    def end_in_memory(self, entry: Entry, sandbox: ServedSandbox) -> asyncio.Future[None]:
        """A sandbox was paused: free its memory, and that of its stored snapshots. Its quota is
        free when the result is done."""
        for kept in entry.snapshots.values():
            self.drop_from_memory(entry.owner, kept)
        entry.account.end(time.monotonic())
        return self._end_live(entry, sandbox)

    def drop_from_memory(self, owner: Token, kept: ServedSnapshot) -> None:
        """Free the memory of a stored snapshot."""
        if kept.stored_bytes is not None:
            self.quotas.release_bytes(owner, kept.held_bytes)
            kept.snapshot = None

    def _end_live(self, entry: Entry, sandbox: ServedSandbox) -> asyncio.Future[None]:
        overdue = False

        def is_overdue() -> None:
            nonlocal overdue
            overdue = True
            self.quotas.count_hanging(entry.owner, 1)
            self.quotas.release_sandbox(entry.owner, entry.reserved_bytes)

        def ended(_done: object) -> None:
            timer.cancel()
            if overdue:
                self.quotas.count_hanging(entry.owner, -1)
            else:
                self.quotas.release_sandbox(entry.owner, entry.reserved_bytes)
            self._freed_memory.give_back_soon()

        timer = asyncio.get_running_loop().call_later(_END_SECONDS, is_overdue)
        done = self.endings.run(sandbox.kill)
        done.add_done_callback(ended)
        return done

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Kill expired sandboxes until the block ends; then kill all. With a store, they are
        stored first, and stay there."""
        tasks = [asyncio.create_task(self._reap())]
        if self.settings.tokens_file is not None:
            watch = watch_tokens(self.settings.tokens_file, self.use_tokens)
            tasks.append(asyncio.create_task(watch))
        if self.keeping is not None:
            tasks.append(asyncio.create_task(self.keeping.run()))
        if self.settings.uses_processes:
            keep_spare_processes(self.settings.spare_processes)
        self.telemetry.export_metrics(self.metrics.text)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            if self.settings.uses_processes:
                self.endings.run(lambda: keep_spare_processes(0))
            await self.kill_all()
            self._commands.close()
            self._files.close()
            if self.keeping is not None:
                self.keeping.close()
            self.telemetry.close()

    async def use_tokens(self, tokens: Sequence[Token]) -> None:
        """Use other tokens from now on. Sandboxes of a revoked token stay until they expire; no
        request reaches them. Raises `TokensRejected`."""
        self.drop_tenants(self.tokens.replace(tokens))

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(_REAP_SECONDS)
            for entry in self.registry.take_expired():
                self.end(entry, "expired")

    async def kill_all(self) -> None:
        """Kill every sandbox. Running commands end, and their requests get an error. Do not
        wait for sandboxes that hang."""
        if self.keeping is not None:
            await self.keeping.store_all()
        for entry in self.registry.take_all():
            self.end(entry, "shutdown")
        await self.endings.settle(_LAST_ENDS_SECONDS)


async def _all(endings: list[asyncio.Future[None]]) -> None:
    if endings:
        await asyncio.wait(endings)


def _busy(owner: Token, cause: str, option: str) -> ApiFailure:
    if cause == "sandbox":
        who = "the sandbox"
    elif cause == "tenant" and owner is not ANYBODY:
        who = f"the token {owner.name}"
    else:
        who = "the server"
    return ApiFailure(
        503, "busy", f"{who} is overloaded ({option}); try again later", retry_after=1
    )
