"""A sandbox whose clock the test moves: hours pass at once, and only when the test says so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.background import Result, Running
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
from tests.waiting import wait_until
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.clock import SECOND, ManualClock
from wasmsand.machine import CommandRequest, Machine
from wasmsand.machine.parking import OneShot

pytestmark = pytest.mark.no_userland
MOMENT = 0.05
"""Seconds: a wait that reads the host's clock by mistake would end within this time."""
HOUR = 3600.0

ALARM = program(
    HANDLE_ALARM, do(SETITIMER, 0, 160, 0), sleep_for_ever(), RUN_HANDLERS,
    more=ACTION + words(160, 0, 0, 600, 0) + LONG_TIME,
    on_signal=do(EXIT_GROUP, 43),
)  # fmt: skip
"""Sets an alarm for ten minutes, sleeps longer, and ends in the handler."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(realtime_ns=1_700_000_000 * SECOND)


@pytest.fixture
def machine(engine: WasmtimeEngine, clock: ManualClock) -> Iterator[Machine]:
    made = Machine(image=image(alarmed=wat_to_wasm(ALARM)), engine=engine, clock=clock)
    yield made
    made.close()


def ends_after(call: Running[Result], clock: ManualClock, seconds: float) -> Result:
    """The result of a call that ends when the clock has moved that far, and not before. On a busy
    machine the call may read the clock only after the first move."""
    assert not call.is_over(MOMENT)

    def is_over_after_a_move() -> bool:
        clock.advance(seconds)
        return call.is_over(MOMENT)

    wait_until(is_over_after_a_move, "the call did not end")
    return call.result()


def wait_for_sleeper(machine: Machine) -> None:
    """Wait until a process sleeps in a system call: then it has read the clock."""

    def is_asleep() -> bool:
        with machine.lock:
            return any(process.state.value == "S" for process in list(machine.kernel.processes)[1:])

    wait_until(is_asleep)


def test_a_guest_sleeps_until_the_clock_is_moved(machine: Machine, clock: ManualClock) -> None:
    run = Running(lambda: machine.run(CommandRequest(("sleep",), {}, "/tmp")))
    wait_for_sleeper(machine)
    clock.advance(999)
    completed = ends_after(run, clock, 2)
    assert (completed.exit_code, completed.seconds) == (0, 1001.0)


def test_the_timeout_of_a_command_is_measured_by_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    run = Running(lambda: machine.run(CommandRequest(("spin",), {}, "/tmp", timeout_seconds=HOUR)))
    assert not run.is_over(MOMENT)
    clock.advance(HOUR - 1)
    completed = ends_after(run, clock, 1)
    assert (completed.timed_out, completed.seconds) == (True, HOUR)


def test_the_timeout_of_a_started_command_is_measured_by_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    process = machine.start(CommandRequest(("sleep",), {}, "/tmp", timeout_seconds=100, stdin=None))
    end = ends_after(Running(lambda: process.wait()), clock, 100)
    assert end is not None
    assert end.timed_out


def test_a_caller_who_waits_for_a_time_waits_for_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    process = machine.start(CommandRequest(("echo",), {}, "/tmp", stdin=None))
    assert ends_after(Running(lambda: process.wait(HOUR)), clock, HOUR) is None


def test_an_alarm_of_a_guest_is_fired_when_the_clock_is_moved(
    machine: Machine, clock: ManualClock
) -> None:
    run = Running(lambda: machine.run(CommandRequest(("alarmed",), {}, "/tmp")))
    wait_for_sleeper(machine)
    clock.advance(599)
    assert ends_after(run, clock, 1).exit_code == 43


def test_output_that_others_hold_is_waited_for_by_the_clock(
    machine: Machine, clock: ManualClock
) -> None:
    run = Running(lambda: machine.run(CommandRequest(("background",), {}, "/tmp")))
    assert ends_after(run, clock, 0.1).stdout == b"started"


def test_a_terminal_is_waited_for_by_the_clock(machine: Machine, clock: ManualClock) -> None:
    terminal = machine.open_terminal(CommandRequest(("echo",), {}, "/tmp"))
    assert ends_after(Running(lambda: terminal.wait(HOUR)), clock, HOUR) is None
    terminal.close()


def test_an_event_while_the_clock_jumps_is_seen_once() -> None:
    clock = ManualClock()
    for _ in range(200):
        event = OneShot()
        waiting = Running(partial(event.wait, clock, clock.deadline(HOUR)))
        jump = Running(partial(clock.advance, 1))
        event.set()
        assert waiting.result() is True
        jump.result()
