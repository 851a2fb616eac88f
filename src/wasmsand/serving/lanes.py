"""Threads and queues for calls that block, per tenant and per sandbox.

Owns `Lane`. Rules: the event loop never waits for a sandbox; every tenant has threads and a
queue of its own, so that calls which hang take nothing from others; one sandbox cannot take
all threads of its tenant; what does not fit is refused at once, and what waited too long for
its turn is refused then. A call that nobody waits for any more keeps its place until it ends.

All of it but the calls themselves runs on one event loop, so there is no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wasmsand.serving.daemons import Daemons
from wasmsand.serving.shares import Shares

Result = TypeVar("Result")

QUEUE_SECONDS = 20.0
"""How long a call waits for a thread."""


class LaneFull(Exception):
    """There is no room for the call. `cause` is who has too much to do: "sandbox", "tenant" or
    "server"."""

    def __init__(self, lane: str, cause: str) -> None:
        super().__init__(f"{lane}: {cause}")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What calls of one kind may take."""

    threads: int
    """Of all tenants together; half of them are divided evenly among the tenants."""
    tenant_threads: int
    tenant_waiting: int
    sandbox_threads: int | None
    """None: three quarters of what its tenant can have, so that one that hangs leaves some."""
    sandbox_waiting: int
    queue_seconds: float = QUEUE_SECONDS


@dataclass(slots=True, eq=False)
class _Job(Generic[Result]):
    tenant: str
    sandbox: str
    call: Callable[[], Result]
    then: Callable[[], object] | None
    future: asyncio.Future[Result]
    started: bool = False


class Lane:
    """Calls of one kind."""

    def __init__(self, name: str, limits: LaneLimits, tenants: int, daemons: Daemons) -> None:
        """`tenants`: how many there can be at most."""
        self.name = name
        self._limits = limits
        self._daemons = daemons
        self._shares = Shares(limits.threads, tenants, limits.tenant_threads)
        self._sandbox_threads = limits.sandbox_threads or max(2, self._shares.most * 3 // 4)
        self._running: dict[tuple[str, str], int] = {}
        # Who waits: tenants in the order of their turns, in each its sandboxes likewise.
        self._queues: dict[str, dict[str, deque[_Job[Any]]]] = {}
        self._waiting: dict[str, int] = {}
        self._closed = False

    @property
    def taken(self) -> int:
        """Calls that run or wait."""
        return self._shares.total_held + sum(self._waiting.values())

    def taken_by(self, tenant: str) -> int:
        """Calls of one tenant that run or wait."""
        return self._shares.held(tenant) + self._waiting.get(tenant, 0)

    async def run(
        self,
        tenant: str,
        sandbox: str,
        call: Callable[[], Result],
        then: Callable[[], object] | None = None,
    ) -> Result:
        """What `call` returns or raises, from a thread. Raises `LaneFull`.

        `then` is called once, on the event loop, when the call has ended or will never begin,
        also if nobody waits for it any more.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        job = _Job(tenant, sandbox, call, then, future)
        try:
            self._enqueue(job)
            self._dispatch(loop)
            if not job.started:
                await asyncio.wait({future}, timeout=self._limits.queue_seconds)
                if not job.started:
                    raise LaneFull(self.name, self._cause(job))
            return await asyncio.shield(future)
        finally:
            if not job.started:
                self._withdraw(job)
                if then is not None:
                    then()

    def _enqueue(self, job: _Job[Any]) -> None:
        if self._closed:
            raise LaneFull(self.name, "server")
        # Calls that can start at once wait for nobody, so they are not counted as waiting.
        can_start = self._can_start(job)
        if not can_start:
            sandboxes = self._queues.get(job.tenant, {})
            full = self._waiting.get(job.tenant, 0) >= self._limits.tenant_waiting
            if full or len(sandboxes.get(job.sandbox, ())) >= self._limits.sandbox_waiting:
                raise LaneFull(self.name, self._cause(job))
        self._queues.setdefault(job.tenant, {}).setdefault(job.sandbox, deque()).append(job)
        self._waiting[job.tenant] = self._waiting.get(job.tenant, 0) + 1

    def _can_start(self, job: _Job[Any]) -> bool:
        if self._queues.get(job.tenant, {}).get(job.sandbox):
            return False
        if self._running.get((job.tenant, job.sandbox), 0) >= self._sandbox_threads:
            return False
        if self._shares.take(job.tenant):
            self._shares.give(job.tenant)
            return True
        return False

    def _cause(self, job: _Job[Any]) -> str:
        running = self._running.get((job.tenant, job.sandbox), 0)
        if self._sandbox_threads <= running < self._shares.most:
            return "sandbox"
        return "tenant" if self._shares.is_at_most(job.tenant) else "server"

    def _withdraw(self, job: _Job[Any]) -> None:
        """Nobody waits any more for a call that has not begun."""
        waiting = self._queues.get(job.tenant, {}).get(job.sandbox)
        if waiting is not None and job in waiting:
            waiting.remove(job)
            self._left(job)

    def _left(self, job: _Job[Any]) -> None:
        """A job has left its queue."""
        sandboxes = self._queues[job.tenant]
        if not sandboxes[job.sandbox]:
            del sandboxes[job.sandbox]
        if not sandboxes:
            del self._queues[job.tenant]
        self._waiting[job.tenant] -= 1
        if not self._waiting[job.tenant]:
            del self._waiting[job.tenant]

    def _dispatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start what can be started: tenants take turns, and so do the sandboxes of each."""
        progress = True
        while progress and not self._closed:
            progress = False
            for tenant in list(self._queues):
                if self._shares.take(tenant):
                    job = self._next(tenant)
                    if job is None:
                        self._shares.give(tenant)
                    else:
                        progress = self._start(job, loop) or progress

    def _next(self, tenant: str) -> _Job[Any] | None:
        """Take the tenant's next job whose sandbox may have a further thread."""
        sandboxes = self._queues[tenant]
        for sandbox, waiting in sandboxes.items():
            if self._running.get((tenant, sandbox), 0) < self._sandbox_threads:
                job = waiting.popleft()
                self._left(job)
                if waiting:  # it is the others' turn now
                    sandboxes[sandbox] = sandboxes.pop(sandbox)
                if tenant in self._queues:
                    self._queues[tenant] = self._queues.pop(tenant)
                return job
        return None

    def _start(self, job: _Job[Any], loop: asyncio.AbstractEventLoop) -> bool:
        key = (job.tenant, job.sandbox)
        self._running[key] = self._running.get(key, 0) + 1
        job.started = True

        def work() -> None:
            result, error = None, None
            try:
                result = job.call()
            except BaseException as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(self._finished, job, result, error, loop)
            except RuntimeError:
                pass  # the server has ended, and nobody waits

        try:
            self._daemons.start(work)
        except RuntimeError:  # the system has no thread left
            self._finished(job, None, LaneFull(self.name, "server"), loop)
            return False
        return True

    def _finished(
        self,
        job: _Job[Any],
        result: object,
        error: BaseException | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        key = (job.tenant, job.sandbox)
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._shares.give(job.tenant)
        if not job.future.done():
            if error is None:
                job.future.set_result(result)
            elif isinstance(error, StopIteration):  # which a future cannot hold
                job.future.set_exception(RuntimeError("StopIteration"))
            else:
                job.future.set_exception(error)
                # Nobody may be waiting any more: that is no news for the log.
                job.future.exception()
        if job.then is not None:
            job.then()
        self._dispatch(loop)

    def close(self) -> None:
        """Take no further calls. Those that run go on; those that wait are refused."""
        self._closed = True
        for sandboxes in self._queues.values():
            for waiting in sandboxes.values():
                for job in waiting:
                    job.future.cancel()
        self._queues.clear()
        self._waiting.clear()
