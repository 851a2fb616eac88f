"""A sandbox whose clock is moved by hand: hours pass in no time, and only when they are told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

import pytest

from tests.machine.guests import (
    ACTION,
    EXIT_GROUP,
    HANDLE_ALARM,
    LONG_TIME,
    RUN_HANDLERS,
    SETITIMER,
    do,
    image,
    program,
    sleep_for_ever,
    words,
)
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.clock import SECOND, ManualClock
from wasmsand.machine import CommandRequest, Machine
from wasmsand.machine.parking import OneShot

pytestmark = pytest.mark.no_userland
Result = TypeVar("Result")
PATIENCE = 30.0
MOMENT = 0.05
"""Long enough for a wait that reads the host's clock by mistake to end."""
HOUR = 3600.0

ALARM = program(
    HANDLE_ALARM, do(SETITIMER, 0, 160, 0), sleep_for_ever(), RUN_HANDLERS,
    more=ACTION + words(160, 0, 0, 600, 0) + LONG_TIME,
    on_signal=do(EXIT_GROUP, 43),
)  # fmt: skip
"""Sets an alarm in ten minutes, sleeps for longer, and ends by the handler."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(realtime_ns=1_700_000_000 * SECOND)


@pytest.fixture
def machine(engine: WasmtimeEngine, clock: ManualClock) -> Iterator[Machine]:
    made = Machine(image=image(alarmed=wat_to_wasm(ALARM)), engine=engine, clock=clock)
    yield made
    made.close()


class Beside(Generic[Result]):
    """A call on a thread of its own, and its result."""

    result: Result

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        self.result = self._call()
        self._over.set()

    def is_over(self, seconds: float) -> bool:
        return self._over.wait(seconds)


def wait_for_sleeper(machine: Machine) -> None:
    """Until a process waits in a system call, which is when it has read the clock."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with machine.lock:
            if any(process.state.value == "S" for process in list(machine.kernel.processes)[1:]):
                return
        time.sleep(0.002)
    raise AssertionError("no process sleeps")


def test_a_guest_sleeps_until_the_clock_is_moved(machine: Machine, clock: ManualClock) -> None:
    run = Beside(lambda: machine.run(CommandRequest(("sleep",), {}, "/tmp")))
    wait_for_sleeper(machine)
    clock.advance(999)
    assert not run.is_over(MOMENT)
    clock.advance(2)
    assert run.is_over(PATIENCE)
    assert (run.result.exit_code, run.result.seconds) == (0, 1001.0)


def test_the_timeout_of_a_command_is_measured_by_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    run = Beside(lambda: machine.run(CommandRequest(("spin",), {}, "/tmp", timeout_seconds=HOUR)))
    assert not run.is_over(MOMENT)
    clock.advance(HOUR - 1)
    assert not run.is_over(MOMENT)
    clock.advance(1)
    assert run.is_over(PATIENCE)
    assert run.result.timed_out
    assert run.result.seconds == HOUR


def test_the_timeout_of_a_started_command_is_too(machine: Machine, clock: ManualClock) -> None:
    process = machine.start(CommandRequest(("sleep",), {}, "/tmp", timeout_seconds=100, stdin=None))
    waiting = Beside(lambda: process.wait())
    assert not waiting.is_over(MOMENT)
    clock.advance(100)
    assert waiting.is_over(PATIENCE)
    assert waiting.result is not None
    assert waiting.result.timed_out


def test_a_caller_who_waits_for_a_time_waits_for_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    process = machine.start(CommandRequest(("sleep",), {}, "/tmp", stdin=None))
    waiting = Beside(lambda: process.wait(HOUR))
    assert not waiting.is_over(MOMENT)
    clock.advance(HOUR)
    assert waiting.is_over(PATIENCE)
    assert waiting.result is None


def test_an_alarm_of_a_guest_is_fired_when_the_clock_is_moved(
    machine: Machine, clock: ManualClock
) -> None:
    run = Beside(lambda: machine.run(CommandRequest(("alarmed",), {}, "/tmp")))
    wait_for_sleeper(machine)
    clock.advance(599)
    assert not run.is_over(MOMENT)
    clock.advance(1)
    assert run.is_over(PATIENCE)
    assert run.result.exit_code == 43


def test_output_that_others_hold_is_waited_for_by_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    run = Beside(lambda: machine.run(CommandRequest(("background",), {}, "/tmp")))
    assert not run.is_over(MOMENT)
    clock.advance(0.1)
    assert run.is_over(PATIENCE)
    assert run.result.stdout == b"started"


def test_a_terminal_is_waited_for_by_the_clock(machine: Machine, clock: ManualClock) -> None:
    terminal = machine.open_terminal(CommandRequest(("echo",), {}, "/tmp"))
    waiting = Beside(lambda: terminal.wait(HOUR))
    assert not waiting.is_over(MOMENT)
    clock.advance(HOUR)
    assert waiting.is_over(PATIENCE)
    assert waiting.result is None
    terminal.close()


def test_what_happens_while_the_clock_jumps_is_seen_once() -> None:
    clock = ManualClock()
    for _ in range(200):
        event = OneShot()
        waiting = Beside(partial(event.wait, clock, clock.deadline(HOUR)))
        jump = Beside(partial(clock.advance, 1))
        event.set()
        assert waiting.is_over(PATIENCE)
        assert jump.is_over(PATIENCE)
        assert waiting.result is True
