"""The thread for timers: one entry per owner, whatever guests and commands do."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable

import pytest

from tests.machine.guests import (
    ACTION,
    EVERY_MILLISECOND,
    HANDLE_ALARM,
    LONG_TIME,
    SETITIMER,
    do,
    new_machine,
    program,
    say,
    sleep_for_ever,
    words,
)
from tests.waiting import PATIENCE, eventually
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.limits import TIMER_GAP_NS
from wasmsand.machine import CommandRequest, Machine
from wasmsand.machine.machine import timer_service
from wasmsand.machine.timers import TimerService

pytestmark = pytest.mark.no_userland
HOUR = 3600 * 10**9


class Owner:
    """Counts its calls."""

    def __init__(self, again: int | None = None) -> None:
        self.calls = 0
        self.called = threading.Event()
        self._again = again

    def fire_timers(self) -> int | None:
        self.calls += 1
        self.called.set()
        return self._again


def start_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True).start()


@pytest.mark.parametrize("step", [1, -1], ids=["ever later", "ever earlier"])
def test_arming_again_replaces_the_entry(step: int) -> None:
    service, owner = TimerService(start_thread), Owner()
    now = time.monotonic_ns()
    for number in range(200_000):
        service.arm(owner, now + HOUR + step * number)
    assert service.entries < 100
    service.arm(owner, now)  # the earliest one counts
    assert owner.called.wait(PATIENCE)


def test_owners_that_are_cancelled_or_collected_leave_nothing() -> None:
    service = TimerService(start_thread)
    far = time.monotonic_ns() + HOUR
    for _ in range(2000):
        service.arm(Owner(), far)  # collected at once
        owner = Owner()
        service.arm(owner, far)
        service.cancel(owner)
    gc.collect()
    kept = Owner()
    service.arm(kept, far)
    assert service.entries < 100
    service.cancel(kept)
    assert eventually(lambda: not service._running)


def test_an_owner_that_keeps_asking_is_called_at_a_bounded_rate() -> None:
    service, greedy = TimerService(start_thread), Owner(again=0)
    began = time.monotonic_ns()
    service.arm(greedy, 0)
    time.sleep(0.2)
    service.cancel(greedy)
    assert 0 < greedy.calls <= (time.monotonic_ns() - began) // TIMER_GAP_NS + 2


def test_an_owner_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Owner):
        def fire_timers(self) -> int | None:
            raise RecursionError

    service, failing, other = TimerService(start_thread), Failing(), Owner()
    with caplog.at_level(logging.ERROR):
        service.arm(failing, time.monotonic_ns())
        service.arm(other, time.monotonic_ns() + 10**7)
        assert other.called.wait(PATIENCE)


REARMING = program(
    HANDLE_ALARM,
    f"""(local.set $n (i32.const 100000))
      (loop $again
        {do(SETITIMER, 0, 224, 0)}
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $again (local.get $n)))""",
    say("armed")[0],
    sleep_for_ever(),
    more=ACTION + EVERY_MILLISECOND + LONG_TIME + words(224, 0, 0, 5000, 0) + say("armed")[1],
)


def test_an_alarm_that_is_set_repeatedly_is_one_entry(engine: WasmtimeEngine) -> None:
    machine = new_machine(engine, tried=wat_to_wasm(REARMING))
    service = timer_service(engine, Clock())
    process = machine.start(CommandRequest(("tried",), {}, "/tmp", stdin=None))
    assert process.read(PATIENCE) == ((1, b"armed"),)
    assert service.entries < 100
    machine.close()
    gc.collect()
    assert eventually(lambda: machine_entries(service, machine) == 0)


def machine_entries(service: TimerService, machine: Machine) -> int:
    with service._changed:
        return sum(key() is machine for key in service._due._times)


def test_a_command_that_has_ended_has_no_deadline(machine: Machine) -> None:
    service = machine.timers
    for _ in range(20):
        process = machine.start(
            CommandRequest(("ok",), {}, "/tmp", timeout_seconds=3600, stdin=None)
        )
        assert process.wait(PATIENCE) is not None
    with service._changed:
        lives = [key() for key in service._due._times if type(key()).__name__ == "_Life"]
    assert lives == []
