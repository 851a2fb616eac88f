"""The sandbox's lock: the host gets it before a guest that continues the same call."""

from __future__ import annotations

import threading
import time

from wasmsand.machine.lock import SandboxLock

PATIENCE = 20.0


def test_a_guest_that_yields_lets_a_waiting_host_in() -> None:
    lock = SandboxLock()
    rounds = 0
    stop = threading.Event()

    def guest() -> None:
        nonlocal rounds
        lock.acquire()
        while not stop.is_set():
            rounds += 1
            sum(range(2000))
            lock.give_way()
        lock.release()

    thread = threading.Thread(target=guest, daemon=True)
    thread.start()
    try:
        for _ in range(100):
            started = rounds
            with lock:
                # At most the part that was in progress, and one that began in between.
                assert rounds - started <= 50
            time.sleep(0.0005)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert rounds > 100


def test_a_guest_continues_when_nobody_waits() -> None:
    lock = SandboxLock()
    lock.acquire()
    for _ in range(1000):
        lock.give_way()
    lock.release()
    with lock:
        pass


def test_the_lock_is_free_after_an_exception_under_it() -> None:
    lock = SandboxLock()
    try:
        with lock:
            raise ValueError
    except ValueError:
        pass
    assert lock.acquire(False)
