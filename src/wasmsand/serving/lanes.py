"""Threads and queues for calls that block, per tenant and per sandbox.

Owns `Lane`. Rules: the event loop never waits for a sandbox; every tenant has its own threads and
its own queue, so that calls that hang do not affect other tenants; one sandbox cannot take all
threads of its tenant; a call is refused at once if the queue is full, and later if it waits too
long. A running call keeps its place until it ends, even if nobody waits for it any more.

Everything except the calls runs on one event loop, so there is no lock.
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
    """The call is refused. `cause` is what is overloaded: "sandbox", "tenant" or "server"."""

    def __init__(self, lane: str, cause: str) -> None:
        super().__init__(f"{lane}: {cause}")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """Limits for calls of one kind."""

    threads: int
    """Threads of all tenants together; half of them are divided evenly among the tenants."""
    tenant_threads: int
    tenant_waiting: int
    sandbox_threads: int | None
    """Threads of one sandbox. None means three quarters of its tenant's, so that a sandbox that
    hangs leaves some for others."""
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
    """Runs calls of one kind."""

    def __init__(self, name: str, limits: LaneLimits, tenants: int, daemons: Daemons) -> None:
        """`tenants` is the largest number of tenants."""
        self.name = name
        self._limits = limits
        self._daemons = daemons
        self._shares = Shares(limits.threads, tenants, limits.tenant_threads)
        self._sandbox_threads = limits.sandbox_threads or max(2, self._shares.most * 3 // 4)
        self._running: dict[tuple[str, str], int] = {}
        # Waiting jobs: tenants in the order of their turns, and the sandboxes of each likewise.
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
        """Run `call` on a thread, and return or raise its outcome. Raises `LaneFull`.

        `then` is called exactly once, on the event loop, when the call has ended or will never
        begin, even if the caller was cancelled.
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
        # A call that can start at once does not count as waiting.
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
        """Remove a call that has not begun, because its caller was cancelled."""
        waiting = self._queues.get(job.tenant, {}).get(job.sandbox)
        if waiting is not None and job in waiting:
            waiting.remove(job)
            self._left(job)

    def _left(self, job: _Job[Any]) -> None:
        """Update the counts after a job has left its queue."""
        sandboxes = self._queues[job.tenant]
        if not sandboxes[job.sandbox]:
            del sandboxes[job.sandbox]
        if not sandboxes:
            del self._queues[job.tenant]
        self._waiting[job.tenant] -= 1
        if not self._waiting[job.tenant]:
            del self._waiting[job.tenant]

    def _dispatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start waiting calls: tenants take turns, and so do the sandboxes of each tenant."""
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
        """Take the tenant's next job whose sandbox may use another thread."""
        sandboxes = self._queues[tenant]
        for sandbox, waiting in sandboxes.items():
            if self._running.get((tenant, sandbox), 0) < self._sandbox_threads:
                job = waiting.popleft()
                self._left(job)
                if waiting:  # move the sandbox behind the others
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
                pass  # the event loop has ended

        try:
            self._daemons.start(work)
        except RuntimeError:  # the system cannot start another thread
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
            elif isinstance(error, StopIteration):  # a future cannot hold a StopIteration
                job.future.set_exception(RuntimeError("StopIteration"))
            else:
                job.future.set_exception(error)
                # Mark it as retrieved, so that asyncio does not log it if nobody waits.
                job.future.exception()
        if job.then is not None:
            job.then()
        self._dispatch(loop)

    def close(self) -> None:
        """Refuse further and waiting calls. Running calls continue."""
        self._closed = True
        for sandboxes in self._queues.values():
            for waiting in sandboxes.values():
                for job in waiting:
                    job.future.cancel()
        self._queues.clear()
        self._waiting.clear()
