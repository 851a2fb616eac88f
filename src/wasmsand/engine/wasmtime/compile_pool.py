"""The compile workers of a host process, and their assignment to orders.

Owns the pool. Rules: at most `workers` compilations run at a time, plus one small module. The order
with the smallest priority goes first, and a sandbox waits for one module at a time, so that none
can block the others for long. A worker that succeeded is kept for a few seconds, because programs
come in groups.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator

from wasmsand.engine.compile_orders import CompileCancelled, CompileOrder, CompileUnavailable
from wasmsand.engine.forking import in_child
from wasmsand.engine.placement import free_this_thread
from wasmsand.engine.wasmtime.worker_process import Outcome, Worker, WorkerSetup

IDLE_SECONDS = 5.0
"""How long an idle worker is kept."""


class _Ticket:
    """One order that waits for a worker."""

    def __init__(self, order: CompileOrder, number: int) -> None:
        self.order = order
        self.rank = (order.priority, number)
        self.called = threading.Event()
        self.admitted = False
        self.beside = False
        """Whether it has the extra slot, which only small modules get."""


class CompilePool:
    """The workers of a host process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._waiting: list[_Ticket] = []
        self._running = 0
        self._beside = False
        self.idle: list[tuple[float, Worker]] = []
        self._ending_idle = False

    def run(
        self, setup: WorkerSetup, order: CompileOrder, sink: Callable[[bytes], None]
    ) -> Outcome:
        """See `Worker.run`; also raises `CompileUnavailable`. Called while `admitted`."""
        order.begun = True
        worker = self._take_idle(setup) or Worker(setup, order)
        try:
            outcome = worker.run(order, sink)
        except BaseException:
            worker.end()
            raise
        if outcome.code:
            worker.end()
        else:
            self._keep(worker)
        return outcome

    @contextlib.contextmanager
    def admitted(self, order: CompileOrder) -> Iterator[None]:
        """Wait for permission to compile, which is valid within this block. Raises
        `CompileUnavailable`, `CompileCancelled`."""
        ticket = _Ticket(order, next(self._numbers))
        with self._lock:
            if len(self._waiting) >= order.limits.queue:
                raise CompileUnavailable(f"{len(self._waiting)} programs wait to be compiled")
            self._waiting.append(ticket)
            self._admit()
        try:
            with order.cancellation.calling(ticket.called.set):
                ticket.called.wait()
                if order.cancellation.cancelled:
                    raise CompileCancelled
            yield
        finally:
            with self._lock:
                if not ticket.admitted:
                    self._waiting.remove(ticket)
                elif ticket.beside:
                    self._beside = False
                else:
                    self._running -= 1
                self._admit()

    def _admit(self) -> None:
        for ticket in sorted(self._waiting, key=lambda waiting: waiting.rank):
            if self._running < self._workers:
                self._running += 1
            elif ticket.order.limits.small and not self._beside:
                self._beside = ticket.beside = True
            else:
                continue
            ticket.admitted = True
            self._waiting.remove(ticket)
            ticket.called.set()

    def _take_idle(self, setup: WorkerSetup) -> Worker | None:
        with self._lock:
            for entry in reversed(self.idle):
                if entry[1].setup == setup:
                    self.idle.remove(entry)
                    return entry[1]
        return None

    def _keep(self, worker: Worker) -> None:
        with self._lock:
            self.idle.append((time.monotonic() + IDLE_SECONDS, worker))
            if self._ending_idle:
                return
            self._ending_idle = True
        free_this_thread()
        try:
            threading.Thread(target=self._end_idle, name="wasmsand-workers", daemon=True).start()
        except RuntimeError:  # the host has no thread available
            with self._lock:
                self._ending_idle = False
                idle, self.idle = self.idle, []
            for _, each in idle:
                each.end()

    def _end_idle(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                over = [entry for entry in self.idle if entry[0] <= now]
                self.idle = [entry for entry in self.idle if entry[0] > now]
                next_time = min((entry[0] for entry in self.idle), default=None)
                if next_time is None and not over:
                    self._ending_idle = False
                    return
            for _, worker in over:
                worker.end()
            if next_time is not None:
                time.sleep(max(0.0, next_time - now))

    def end_idle_now(self) -> None:
        """End the idle workers."""
        with self._lock:
            idle, self.idle = self.idle, []
        for _, worker in idle:
            worker.end()

    def waiting(self) -> int:
        """How many orders wait for a worker."""
        with self._lock:
            return len(self._waiting)


def _new_pool() -> CompilePool:
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(os.getpid()))
    else:
        processors = os.cpu_count() or 1
    return CompilePool(max(1, processors - 1))


def shared_pool() -> CompilePool:
    """The pool of this host process."""
    return _pool


def _forget_pool() -> None:
    # Workers belong to the process that started them. Do not wait for them here.
    global _pool
    for _, worker in _pool.idle:
        worker.close_streams()
    _abandoned.append(_pool)
    _pool = _new_pool()


_abandoned: list[CompilePool] = []
_pool = _new_pool()
in_child(_forget_pool)
