"""Parked threads and host timers."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.waiting import wait_until
from wasmsand.engine.placement import pin_here
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.wait import WaitQueue
from wasmsand.machine import parking
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.parking import Gate, Parker
from wasmsand.machine.timers import TimerService

pytestmark = pytest.mark.no_userland
PATIENCE = 20.0
MILLISECOND = 1_000_000


def test_a_parked_thread_is_woken_by_any_of_its_queues() -> None:
    lock = SandboxLock()
    first, second = WaitQueue(), WaitQueue()
    parker, woken = Parker(lock, Clock()), threading.Event()

    def wait() -> None:
        with lock:
            parker.park((first, second), None)
            woken.set()

    threading.Thread(target=wait, daemon=True).start()
    while True:
        with lock:
            if second._wakers:
                second.wake()
                break
    assert woken.wait(PATIENCE)
    assert not first._wakers
    assert not second._wakers


def test_a_deadline_ends_the_wait_and_a_late_wake_does_not_end_the_next_one() -> None:
    lock = SandboxLock()
    queue = WaitQueue()
    parker = Parker(lock, Clock())
    with lock:
        for _ in range(3):
            began = time.monotonic()
            parker.park((queue,), time.monotonic_ns() + 20 * MILLISECOND)
            assert time.monotonic() - began >= 0.019
            queue.wake()  # nobody waits: the wake must not be kept for the next park
            parker.park((queue,), time.monotonic_ns() - 1)


def test_two_wakes_count_as_one() -> None:
    lock = SandboxLock()
    first, second = WaitQueue(), WaitQueue()
    parker = Parker(lock, Clock())
    with lock:
        timer = threading.Timer(0.01, lambda: _wake_both(lock, first, second))
        timer.start()
        parker.park((first, second), None)
        began = time.monotonic()
        parker.park((first,), time.monotonic_ns() + 20 * MILLISECOND)
        assert time.monotonic() - began >= 0.019


def _wake_both(lock: object, first: WaitQueue, second: WaitQueue) -> None:
    with lock:  # type: ignore[attr-defined]
        first.wake()
        second.wake()


class Waiting:
    """A thread that parks once, on a queue."""

    def __init__(self) -> None:
        self.lock, self.queue, self.woken = SandboxLock(), WaitQueue(), threading.Event()
        parker = Parker(self.lock, Clock())

        def wait() -> None:
            with self.lock:
                parker.park((self.queue,), None)
            self.woken.set()

        threading.Thread(target=wait, daemon=True).start()
        while not self.queue._wakers:
            time.sleep(0.001)


def test_a_guest_that_wakes_later_wakes_when_it_waits_itself() -> None:
    waiting = Waiting()
    lock = waiting.lock
    with lock.of_guest:
        waiting.queue.wake_later()
        waiting.queue.wake_later()
    assert not waiting.woken.wait(0.05)
    with lock.of_guest:
        Parker(lock, Clock()).park((WaitQueue(),), time.monotonic_ns() + MILLISECOND)
    assert waiting.woken.wait(PATIENCE)
    assert not lock.postponed


def test_a_wake_does_not_wait_for_an_earlier_one_that_is_postponed() -> None:
    waiting = Waiting()
    with waiting.lock.of_guest:
        waiting.queue.wake_later()
        waiting.queue.wake()
    assert waiting.woken.wait(PATIENCE)
    waiting.lock.wake_postponed()  # what is left of it does nothing


def test_the_host_wakes_at_once() -> None:
    waiting = Waiting()
    with waiting.lock:
        waiting.queue.wake_later()
    assert waiting.woken.wait(PATIENCE)


# Timers.


class Owner:
    """Counts its calls; asks to be called again `again` times."""

    def __init__(self, again: int = 0) -> None:
        self.times: list[int] = []
        self._again = again
        self.called = threading.Event()

    def fire_timers(self) -> int | None:
        self.times.append(time.monotonic_ns())
        self._again -= 1
        if self._again < 0:
            self.called.set()
            return None
        return time.monotonic_ns() + 5 * MILLISECOND


def start_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


def start_and_keep(started: list[threading.Thread], target: Callable[[], None]) -> None:
    started.append(threading.Thread(target=target, daemon=True))
    started[-1].start()


def test_owners_are_called_when_due_and_again_if_they_ask() -> None:
    service = TimerService(start_thread)
    late, early = Owner(), Owner(again=2)
    began = time.monotonic_ns()
    service.arm(late, began + 60 * MILLISECOND)
    service.arm(early, began + 5 * MILLISECOND)
    assert late.called.wait(PATIENCE)
    assert early.called.is_set()
    assert len(early.times) == 3
    assert early.times[0] >= began + 5 * MILLISECOND
    assert late.times[0] >= began + 60 * MILLISECOND


def test_the_thread_ends_when_nothing_is_armed() -> None:
    started: list[threading.Thread] = []
    service = TimerService(partial(start_and_keep, started))
    for _ in range(3):
        owner = Owner()
        service.arm(owner, time.monotonic_ns())
        assert owner.called.wait(PATIENCE)
        started[-1].join(PATIENCE)
        assert not started[-1].is_alive()
    assert len(started) == 3


def test_an_owner_that_was_collected_is_forgotten() -> None:
    threads: list[threading.Thread] = []
    service = TimerService(partial(start_and_keep, threads))
    owner: Owner | None = Owner()
    assert owner is not None
    service.arm(owner, time.monotonic_ns() + 3600 * 1000 * MILLISECOND)
    owner = None
    gc.collect()
    other = Owner()
    service.arm(other, time.monotonic_ns())
    assert other.called.wait(PATIENCE)
    threads[0].join(PATIENCE)
    assert not threads[0].is_alive()


needs_processors = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two processors",
)


@needs_processors
@pytest.mark.needs_sources
def test_a_thread_that_waits_at_a_gate_is_pinned_until_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pinned: list[set[int] | None] = []

    def pin_and_tell(thread: int) -> set[int] | None:
        before = pin_here(thread)
        pinned.append(os.sched_getaffinity(thread))
        return before

    monkeypatch.setattr(parking, "pin_here", pin_and_tell)
    gate = Gate()
    after: list[set[int]] = []

    def wait() -> None:
        gate.host_thread = threading.get_native_id()
        gate.wait()
        after.append(os.sched_getaffinity(0))

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: gate._is_waiting)
    gate.open_here()
    waiting.join()
    assert [len(found or ()) for found in pinned] == [1]
    assert after == [os.sched_getaffinity(0)]


@needs_processors
def test_a_thread_that_does_not_wait_is_not_pinned() -> None:
    before = os.sched_getaffinity(0)
    gate = Gate()
    gate.host_thread = threading.get_native_id()
    gate.open_here()
    assert os.sched_getaffinity(0) == before
    assert gate.wait()
    assert not gate.wait(0.001)
    assert os.sched_getaffinity(0) == before
