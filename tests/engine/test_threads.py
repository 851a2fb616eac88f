"""The pool of guest threads."""

from __future__ import annotations

import threading
import time

import pytest

from tests.waiting import wait_until
from wasmsand.engine.wasmtime.threads import ThreadPool

STACK = 1 << 20
PATIENCE = 20.0


def run_all(pool: ThreadPool, count: int) -> set[int]:
    """Run `count` jobs one after another; returns the threads that ran them."""
    threads = set()
    for _ in range(count):
        ended = threading.Event()

        def job(ended: threading.Event = ended) -> None:
            threads.add(threading.get_ident())
            ended.set()

        pool.start(job)
        assert ended.wait(PATIENCE)
        wait_until(lambda: len(pool) == pool.idle)
    return threads


def test_an_idle_thread_is_used_again() -> None:
    pool = ThreadPool(STACK, 5, lambda: None)
    assert len(run_all(pool, 20)) == 1
    assert len(pool) == 1


def test_jobs_that_wait_for_each_other_get_a_thread_each() -> None:
    pool = ThreadPool(STACK, 5, lambda: None)
    together = threading.Barrier(16)
    ended = threading.Semaphore(0)

    def job() -> None:
        together.wait(PATIENCE)
        ended.release()

    for _ in range(16):
        pool.start(job)
    for _ in range(16):
        assert ended.acquire(timeout=PATIENCE)


def test_idle_threads_end() -> None:
    pool = ThreadPool(STACK, 0.05, lambda: None)
    run_all(pool, 3)
    wait_until(lambda: len(pool) == 0)
    assert len(run_all(pool, 1)) == 1


def test_a_thousand_starts_leave_few_threads() -> None:
    pool = ThreadPool(STACK, 0.05, lambda: None)
    before = threading.active_count()
    ended = threading.Semaphore(0)
    for _ in range(1000):
        pool.start(ended.release)
    for _ in range(1000):
        assert ended.acquire(timeout=PATIENCE)
    wait_until(lambda: len(pool) == 0)
    wait_until(lambda: threading.active_count() <= before)


def test_a_job_is_never_lost_while_its_thread_is_about_to_end() -> None:
    pool = ThreadPool(STACK, 0.001, lambda: None)
    for _ in range(300):
        ended = threading.Event()
        pool.start(ended.set)
        assert ended.wait(PATIENCE)
        time.sleep(0.001)


def test_the_stack_size_of_other_threads_is_left_alone() -> None:
    before = threading.stack_size()
    pool = ThreadPool(64 << 20, 0.05, lambda: None)
    run_all(pool, 1)
    assert threading.stack_size() == before


def test_an_exception_of_a_job_is_reported_and_the_thread_lives_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_type))
    pool = ThreadPool(STACK, 5, lambda: None)
    pool.start(fail)
    wait_until(lambda: bool(reported) and pool.idle == 1)
    assert reported == [ZeroDivisionError]
    assert len(run_all(pool, 1)) == 1
    assert len(pool) == 1


def test_only_threads_of_the_pool_are_owned() -> None:
    pool = ThreadPool(STACK, 5, lambda: None)
    (thread,) = run_all(pool, 1)
    assert pool.owns(thread)
    assert not pool.owns(threading.get_ident())
