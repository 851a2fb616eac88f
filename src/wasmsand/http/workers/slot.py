"""The place of one worker, which outlives the worker.

Owns `Slot`: the connections to the current worker. Rules: used on the event loop only. A connection
is one end of a socket pair, whose other end is passed to the worker; so a worker never listens and
never connects. A request that comes while the worker starts waits for it, for a bounded time. One
that finds the worker dead learns whether anything was sent to it (`WorkerLost`, `NothingSent`).
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from wasmsand.http.failures import ApiFailure
from wasmsand.http.workers.frames import FrameConnection
from wasmsand.http.workers.ledger import Account

START_SECONDS: Final = 150.0
"""How long a request waits for a worker that starts."""
_STEP_SECONDS: Final = 0.25
_KEPT: Final = 64


class WorkerLost(Exception):
    """The worker has ended, or broke the rules, before it began to answer."""


class NothingSent(WorkerLost):
    """The worker had ended before anything was sent to it: every request can be repeated."""


class Slot:
    """The place of one worker."""

    def __init__(self, number: int, tenant: str | None) -> None:
        """`tenant`: the only token whose sandboxes it has; None means all."""
        self.number = number
        self.tenant = tenant
        self.account = Account(tenant)
        self.process: subprocess.Popen[bytes] | None = None
        self.link: socket.socket | None = None
        self.ready = asyncio.Event()
        self.is_stopping = False
        self.in_flight = 0
        self.starts = 0
        self.deaths = 0
        """Workers whose end is settled: what they had is given back, lost, or stored."""
        self.quick_deaths = 0
        self.barriers: tuple[str, ...] = ()
        self._kept: list[FrameConnection] = []
        self._returned: set[FrameConnection] = set()

    @property
    def load(self) -> tuple[int, int]:
        """What it has to do; the slot with the least gets new sandboxes."""
        return (self.account.sandboxes + self.in_flight, self.number)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[FrameConnection]:
        """A connection to the worker, which is closed at the end unless it was passed to `keep`.
        Raises `ApiFailure` if there is no worker, `NothingSent` if it has just ended."""
        self.in_flight += 1
        connection: FrameConnection | None = None
        try:
            connection = await self._connection()
            yield connection
        finally:
            self.in_flight -= 1
            if connection is not None:
                if connection in self._returned:
                    self._returned.discard(connection)
                    self._keep(connection)
                else:
                    connection.close()

    def keep(self, connection: FrameConnection) -> None:
        """The exchange is complete: the connection can be used again."""
        self._returned.add(connection)

    def _keep(self, connection: FrameConnection) -> None:
        if connection.is_lost or len(self._kept) >= _KEPT or not self.ready.is_set():
            connection.close()
        else:
            self._kept.append(connection)

    async def _connection(self) -> FrameConnection:
        await self.wait_ready()
        while self._kept:
            kept = self._kept.pop()
            if not kept.is_lost:
                return kept
        mine, others = socket.socketpair()
        try:
            mine.setblocking(False)
            others.setblocking(False)
            assert self.link is not None
            try:
                socket.send_fds(self.link, [b"c"], [others.fileno()])
            except (BrokenPipeError, ConnectionResetError):
                raise NothingSent from None
            except OSError:
                raise ApiFailure(
                    503, "busy", "the worker is overloaded; try again", retry_after=1
                ) from None
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(FrameConnection, sock=mine)
            return connection
        except BaseException:
            mine.close()
            raise
        finally:
            others.close()

    async def wait_ready(self) -> None:
        """Wait until the worker serves. Raises `ApiFailure` if it does not start."""
        if self.ready.is_set():
            return
        self.in_flight += 1
        try:
            await self._wait_ready()
        finally:
            self.in_flight -= 1

    async def _wait_ready(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not self.ready.is_set():
            if self.is_stopping:
                raise ApiFailure(
                    503, "shutting_down", "the server is shutting down; use another", retry_after=5
                )
            if time.monotonic() > until:
                raise ApiFailure(
                    503, "worker_starting", "the worker has not started yet", retry_after=5
                )
            try:
                async with asyncio.timeout(_STEP_SECONDS):
                    await self.ready.wait()
            except TimeoutError:
                pass

    def ended(self) -> None:
        """The worker has ended: drop what leads to it."""
        self.ready.clear()
        kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()
        if self.link is not None:
            self.link.close()
            self.link = None
