"""Which processors a guest's thread may use."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wasmsand.engine import placement
from wasmsand.engine.placement import (
    CallerPlace,
    Place,
    free_this_thread,
    pin_here,
    place_of_this_thread,
    unpin_this_thread,
)
from wasmsand.engine.wasmtime.threads import ThreadPool

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two processors",
)

STACK = 1 << 20
PATIENCE = 20.0


def own_processors() -> set[int]:
    return set(os.sched_getaffinity(0))


def idle_pool() -> ThreadPool:
    """A pool with an idle thread."""
    pool = ThreadPool(STACK, 60, lambda: None)
    on_pool(pool, lambda: None)
    return pool


def on_pool(pool: ThreadPool, act: Callable[[], object]) -> object:
    """The result of `act`, called by a thread of the pool."""
    results: list[object] = []
    pool.start(lambda: results.append(act()))
    wait_until(lambda: bool(results) and pool.idle > 0)
    return results[0]


def test_a_job_runs_on_one_processor() -> None:
    pool = idle_pool()
    for _ in range(10):
        used = on_pool(pool, own_processors)
        assert isinstance(used, set)
        assert len(used) == 1
        assert used <= own_processors()


def test_the_thread_that_starts_a_job_keeps_its_processors() -> None:
    before = own_processors()
    on_pool(idle_pool(), own_processors)
    assert own_processors() == before


def test_a_job_that_starts_another_one_stays_with_it() -> None:
    pool = idle_pool()
    both: list[set[int]] = []

    def start_another() -> None:
        ended = threading.Event()

        def other() -> None:
            both.append(own_processors())
            ended.set()

        pool.start(other)
        assert ended.wait(PATIENCE)
        both.append(own_processors())

    on_pool(pool, start_another)  # the other one gets a new thread
    wait_until(lambda: pool.idle == 2)
    both.clear()
    on_pool(pool, start_another)
    assert len(both[0]) == 1
    assert both[0] == both[1]


def test_two_ticks_free_a_thread() -> None:
    def tick_twice() -> list[int]:
        place = place_of_this_thread()
        assert place is not None
        counts = []
        for _ in range(2):
            place.ticked()
            counts.append(len(own_processors()))
        return counts

    assert on_pool(idle_pool(), tick_twice) == [1, len(own_processors())]


def test_a_waiting_thread_comes_to_the_one_that_wakes_it() -> None:
    pool = idle_pool()
    waiting: list[tuple[Place, int]] = []
    woken = threading.Event()

    def wait() -> None:
        place = place_of_this_thread()
        assert place is not None
        place.free()
        waiting.append((place, threading.get_native_id()))
        assert woken.wait(PATIENCE)

    pool.start(wait)
    wait_until(lambda: bool(waiting))
    place, thread = waiting[0]
    try:
        assert set(os.sched_getaffinity(thread)) == own_processors()
        place.come_here()
        assert len(os.sched_getaffinity(thread)) == 1
    finally:
        woken.set()


def test_a_thread_or_process_of_a_freed_thread_may_run_everywhere() -> None:
    def create() -> tuple[set[int], str]:
        free_this_thread()
        found: list[set[int]] = []
        thread = threading.Thread(target=lambda: found.append(own_processors()))
        thread.start()
        thread.join(PATIENCE)
        code = "import os; print(len(os.sched_getaffinity(0)))"
        return found[0], subprocess.check_output([sys.executable, "-c", code], text=True)

    assert on_pool(idle_pool(), create) == (own_processors(), f"{len(own_processors())}\n")


def test_a_new_thread_of_the_pool_knows_the_processors_of_its_creator() -> None:
    """It inherits the one processor of the thread that creates it."""
    pool = idle_pool()
    freed: list[set[int]] = []

    def other() -> None:
        free_this_thread()
        freed.append(own_processors())

    on_pool(pool, lambda: pool.start(other))
    wait_until(lambda: bool(freed))
    assert freed == [own_processors()]


def test_free_this_thread_leaves_other_threads_alone() -> None:
    before = own_processors()
    free_this_thread()
    assert place_of_this_thread() is None
    assert own_processors() == before


def test_a_thread_of_the_host_is_pinned_and_unpinned() -> None:
    gate, native = threading.Lock(), []
    gate.acquire()
    after: list[set[int]] = []

    def wait() -> None:
        native.append(threading.get_native_id())
        gate.acquire()
        assert before is not None
        unpin_this_thread(before)
        after.append(own_processors())

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: bool(native))
    before = pin_here(native[0])
    assert before == own_processors()
    assert len(os.sched_getaffinity(native[0])) == 1
    assert pin_here(native[0]) is None  # it has no choice already
    gate.release()
    waiting.join(PATIENCE)
    assert after == [own_processors()]


def test_a_thread_that_has_ended_is_not_pinned() -> None:
    native: list[int] = []
    ended = threading.Thread(target=lambda: native.append(threading.get_native_id()))
    ended.start()
    ended.join(PATIENCE)
    wait_until(lambda: not Path(f"/proc/self/task/{native[0]}").exists())
    assert pin_here(native[0]) is None


def test_a_caller_that_was_moved_is_pinned_until_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processor = [0]
    monkeypatch.setattr(placement, "_processor_now", lambda: processor[0])
    monkeypatch.setattr(placement, "_last_caller", -1)
    monkeypatch.setattr(placement, "_is_uninterrupted", True)
    callers = CallerPlace()
    for _ in range(placement._ALONE):
        assert callers.about_to_wait() is None
        callers.has_waited()
    assert callers.about_to_wait() is None
    processor[0] = 1
    callers.has_waited()
    for _ in range(placement._PINNED_CALLERS):
        assert callers.about_to_wait() == threading.get_native_id()
        callers.has_waited()
    assert callers.about_to_wait() is None


def test_nobody_is_pinned_if_a_signal_handler_could_create_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(placement, "_is_uninterrupted", False)
    callers = CallerPlace()
    callers._left = 1
    assert callers.about_to_wait() is None


def test_several_callers_are_not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    processors = itertools.count()
    monkeypatch.setattr(placement, "_processor_now", lambda: next(processors))
    monkeypatch.setattr(placement, "_last_caller", -1)
    monkeypatch.setattr(placement, "_is_uninterrupted", True)
    callers = CallerPlace()
    pinned: list[int | None] = []

    def call() -> None:
        pinned.append(callers.about_to_wait())
        callers.has_waited()

    for _ in range(5):
        for _ in range(placement._ALONE):
            call()
        other = threading.Thread(target=call)
        other.start()
        other.join(PATIENCE)
    assert set(pinned) == {None}
    for _ in range(placement._ALONE + 1):
        call()
    assert pinned[-2:] == [None, threading.get_native_id()]
