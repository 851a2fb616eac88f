"""What all requests of a server share.

Owns the registry, the pools of threads, the budget of buffered bodies, the metrics, and
the server's end: while `draining` new requests are refused, `kill_all` ends every sandbox,
and with it whatever still runs. Rules: everything but the pools' calls runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from wasmsand.http.failures import ApiFailure
from wasmsand.http.metrics import Metrics
from wasmsand.http.quotas import Quotas
from wasmsand.http.registry import Entry, Registry
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import TokenTable
from wasmsand.http.workers import PoolFull, Workers

Result = TypeVar("Result")

_REAP_SECONDS = 1.0

log = logging.getLogger("wasmsand.http")


class Service:
    """A server without its sockets."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tokens = TokenTable(settings.tokens)
        self.quotas = Quotas(settings.max_sandboxes)
        self.registry = Registry(self.quotas)
        self.draining = False
        self._commands = Workers(
            "command", settings.max_running_commands, settings.max_waiting_commands
        )
        self._files = Workers("file", settings.file_threads, settings.max_waiting_files)
        self._buffered = 0
        self.metrics = Metrics()
        gauge = self.metrics.gauge
        gauge("wasmsand_sandboxes", "Sandboxes that live.", lambda: len(self.registry))
        gauge(
            "wasmsand_commands_running",
            "Calls that wait for a command: running, or queued for a thread.",
            lambda: self._commands.taken,
        )
        gauge(
            "wasmsand_file_calls_running",
            "Other calls: running, or queued for a thread.",
            lambda: self._files.taken,
        )
        gauge("wasmsand_buffered_bytes", "Bodies being received.", lambda: self._buffered)

    async def in_command_thread(self, call: Callable[[], Result]) -> Result:
        """Run what may take as long as a command. Raises `busy`."""
        try:
            return await self._commands.run(call)
        except PoolFull:
            raise _busy("max_running_commands") from None

    async def in_file_thread(self, call: Callable[[], Result]) -> Result:
        """Run what blocks only for a moment. Raises `busy`."""
        try:
            return await self._files.run(call)
        except PoolFull:
            raise _busy("file_threads") from None

    @contextmanager
    def buffer(self) -> Iterator[Callable[[int], None]]:
        """While a body is held: call what this yields with the size of each piece. It raises
        `busy`."""
        held = 0

        def grow(size: int) -> None:
            nonlocal held
            if self._buffered + size > self.settings.max_buffered_bytes:
                raise _busy("max_buffered_bytes")
            held += size
            self._buffered += size

        try:
            yield grow
        finally:
            self._buffered -= held

    def in_background(self, call: Callable[[], object]) -> None:
        """Run what frees something, and must not be refused."""
        asyncio.get_running_loop().run_in_executor(None, call)

    def end(self, entries: Iterable[Entry], cause: str) -> None:
        """Kill sandboxes that were taken from the registry."""
        for entry in entries:
            self.metrics.sandboxes_ended.labels(cause).inc()
            log.info("sandbox %s of %s: %s", entry.id, entry.owner.name, cause)
            self.in_background(entry.computer.kill)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the server runs: sandboxes expire. At the end all are killed."""
        reaper = asyncio.create_task(self._reap())
        try:
            yield
        finally:
            reaper.cancel()
            await self._close()

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(_REAP_SECONDS)
            self.end(self.registry.take_expired(), "expired")

    async def kill_all(self) -> None:
        """Kill every sandbox: commands that run end, and their requests are answered so."""
        entries = self.registry.take_all()
        for _ in entries:
            self.metrics.sandboxes_ended.labels("shutdown").inc()
        await asyncio.gather(*(asyncio.to_thread(entry.computer.kill) for entry in entries))

    async def _close(self) -> None:
        await self.kill_all()
        self._commands.close()
        self._files.close()


def _busy(option: str) -> ApiFailure:
    return ApiFailure(
        503, "busy", f"the server has too much to do ({option}); try again later", retry_after=1
    )
