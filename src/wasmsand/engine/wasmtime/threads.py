"""Threads with stacks deep enough for guests, kept for reuse.

Owns the pool. Rules: the stack size of new threads is a setting of the whole process, so it is
changed only while one of our threads is started, under a lock. The thread that became idle last is
used first (its stack is warm). An idle thread ends by itself after a while. A job is passed to a
thread by releasing a raw lock, without a queue or a condition variable. Stack pages touched by a
job's deep recursion are freed before the next job. A thread runs a job on the processor of the
thread that started it, for a moment (see `placement`).

The list of idle workers needs no lock: `append`, `pop` and `remove` are atomic, and the code that
removes a worker from the list owns that worker.
"""

from __future__ import annotations

import itertools
import sys
import threading
from _thread import allocate_lock, get_ident
from collections.abc import Callable

from wasmsand.engine.forking import in_child, renewed_in_child
from wasmsand.engine.placement import Place, place_of_this_thread, tell_processor_by
from wasmsand.engine.wasmtime.bindings import lib
from wasmsand.engine.wasmtime.resident_pages import ThreadStack

Job = Callable[[], None]


class _Worker:
    __slots__ = ("creator", "job", "place", "wake")

    def __init__(self, job: Job, creator: Place | None) -> None:
        self.job: Job | None = job
        self.creator = creator
        """The place of the thread that starts it."""
        self.place: Place | None = None
        """None before it runs."""
        self.wake = allocate_lock()
        self.wake.acquire()


class ThreadPool:
    """Runs jobs on daemon threads with `stack_bytes` of stack."""

    def __init__(
        self, stack_bytes: int, idle_seconds: float, thread_ends: Callable[[], None]
    ) -> None:
        """An idle thread calls `thread_ends` before it ends."""
        self._stack_bytes = stack_bytes
        self._idle_seconds = idle_seconds
        self._thread_ends = thread_ends
        self._idle: list[_Worker] = []
        self._threads: dict[int, ThreadStack | None] = {}
        self._numbers = itertools.count(1)

    def start(self, job: Job) -> None:
        """Run `job` on an idle thread, or on a new one."""
        place = place_of_this_thread()
        try:
            worker = self._idle.pop()
        except IndexError:
            self._start_worker(_Worker(job, place))
            return
        if worker.place is not None:
            worker.place.come_here()
            if place is not None:
                place.come_here()
        worker.job = job
        worker.wake.release()

    def owns(self, thread: int) -> bool:
        """Whether the thread with this identity belongs to the pool."""
        return thread in self._threads

    def stack(self, thread: int) -> ThreadStack | None:
        """The stack of a pool thread; None if the system cannot tell."""
        return self._threads.get(thread)

    @property
    def idle(self) -> int:
        """The number of threads waiting for a job."""
        return len(self._idle)

    def __len__(self) -> int:
        """The number of threads, including idle ones."""
        return len(self._threads)

    def _start_worker(self, worker: _Worker) -> None:
        thread = threading.Thread(
            target=self._work,
            args=(worker,),
            name=f"wasmsand-guest-{next(self._numbers)}",
            daemon=True,
        )
        global _usual_stack_size
        with _stack_size_lock:
            _usual_stack_size = threading.stack_size()
            threading.stack_size(self._stack_bytes)
            try:
                thread.start()
            finally:
                threading.stack_size(_usual_stack_size)
                _usual_stack_size = None

    def _work(self, worker: _Worker) -> None:
        thread = get_ident()
        stack = self._threads[thread] = ThreadStack.of_this_thread()
        place = Place(worker.creator)
        worker.creator = None
        worker.place = place
        try:
            while True:
                job, worker.job = worker.job, None
                assert job is not None
                try:
                    job()
                except Exception:
                    _report(threading.current_thread())
                del job  # an idle thread must not keep objects alive
                if stack is not None:
                    stack.give_back()
                self._idle.append(worker)
                if worker.wake.acquire(timeout=self._idle_seconds):
                    continue
                try:
                    self._idle.remove(worker)
                except ValueError:  # a job is being passed at this moment
                    worker.wake.acquire()
                    continue
                self._thread_ends()
                return
        finally:
            place.leave()
            self._threads.pop(thread, None)


if hasattr(lib, "sched_getcpu"):
    tell_processor_by(lib.sched_getcpu)
_stack_size_lock = allocate_lock()
_usual_stack_size: int | None = None
"""The setting of the process while it is changed; guarded by the lock."""


def _restore_stack_size() -> None:
    # The fork may have happened while another thread was being started.
    global _usual_stack_size
    if _usual_stack_size is not None:
        threading.stack_size(_usual_stack_size)
        _usual_stack_size = None


renewed_in_child(globals(), "_stack_size_lock")
in_child(_restore_stack_size)


def _report(thread: threading.Thread) -> None:
    kind, value, traceback = sys.exc_info()
    assert kind is not None
    threading.excepthook(threading.ExceptHookArgs((kind, value, traceback, thread)))
