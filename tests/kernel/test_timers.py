"""Interval timers for real time and for CPU time."""

from __future__ import annotations

from tests.kernel.system import System
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.rlimits import CPU, Limit
from wasmsand.kernel.process.signals import Signal, mask_of
from wasmsand.kernel.process.timers import (
    cpu_timer,
    enforce_cpu_limit,
    fire_timers,
    real_timer,
    set_cpu_timer,
    set_real_timer,
)

ALARM = mask_of(Signal.SIGALRM)


def test_a_timer_fires_once_when_it_is_due(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGALRM)
    set_real_timer(system.kernel, process, 5 * SECOND, 0)
    system.clock.advance(4.9)
    assert fire_timers(system.kernel) == system.clock.monotonic() + SECOND // 10
    assert not process.signals.pending
    system.clock.advance(0.2)
    assert fire_timers(system.kernel) is None
    assert process.signals.pending == ALARM
    assert real_timer(system.kernel, process) == (0, 0)


def test_an_alarm_that_nobody_handles_ends_the_process(system: System, process: Process) -> None:
    set_real_timer(system.kernel, process, 1, 0)
    system.clock.advance(1)
    fire_timers(system.kernel)
    assert process.exit_status == Signal.SIGALRM


def test_an_interval_repeats_without_drifting(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGALRM)
    began = system.clock.monotonic()
    set_real_timer(system.kernel, process, SECOND, SECOND)
    for turn in range(1, 4):
        system.clock.advance(1.1)
        process.signals.discard(ALARM)
        due = fire_timers(system.kernel)
        assert process.signals.pending == ALARM
        assert due == began + (turn + 1) * SECOND


def test_missed_intervals_fire_once(system: System, process: Process) -> None:
    system.handle(process, Signal.SIGALRM)
    set_real_timer(system.kernel, process, 1, 1)
    system.clock.advance(100)
    assert fire_timers(system.kernel) == system.clock.monotonic() + 1


def test_setting_returns_what_was_left_and_zero_disarms(system: System, process: Process) -> None:
    assert set_real_timer(system.kernel, process, 10 * SECOND, 3) == (0, 0)
    system.clock.advance(4)
    assert set_real_timer(system.kernel, process, 0, 0) == (6 * SECOND, 3)
    system.clock.advance(100)
    assert fire_timers(system.kernel) is None
    assert not process.dead


def test_the_driver_is_told_when_a_timer_is_armed(system: System, process: Process) -> None:
    told: list[int] = []
    system.kernel.timer_armed = told.append
    set_real_timer(system.kernel, process, SECOND, 0)
    set_real_timer(system.kernel, process, 0, 0)
    assert told == [system.clock.monotonic() + SECOND]


def test_a_timer_survives_exec_but_not_fork_or_exit(system: System, process: Process) -> None:
    set_real_timer(system.kernel, process, SECOND, 0)
    child = system.fork(process)
    assert real_timer(system.kernel, child) == (0, 0)
    system.kernel.exit(process, 0)
    system.clock.advance(2)
    assert fire_timers(system.kernel) is None


def test_the_cpu_limit_warns_every_second_and_then_kills(system: System, process: Process) -> None:
    process.rlimits.set(CPU, Limit(2, 4), privileged=False)
    system.handle(process, Signal.SIGXCPU)
    warned = []
    for half_seconds in range(8):
        process.usage.user_ns = half_seconds * SECOND // 2
        enforce_cpu_limit(system.kernel, process)
        if process.signals.pending:
            warned.append(half_seconds / 2)
            process.signals.discard(mask_of(Signal.SIGXCPU))
    assert warned == [2.0, 3.0]
    process.usage.user_ns = 4 * SECOND
    enforce_cpu_limit(system.kernel, process)
    assert process.exit_status == Signal.SIGKILL


def test_a_cpu_limit_without_handler_ends_by_sigxcpu(system: System, process: Process) -> None:
    process.rlimits.set(CPU, Limit(1, 10), privileged=False)
    process.usage.user_ns = SECOND
    enforce_cpu_limit(system.kernel, process)
    assert process.exit_status == Signal.SIGXCPU


def test_a_timer_of_cpu_time_goes_off_when_that_much_was_used(
    system: System, process: Process
) -> None:
    assert set_cpu_timer(process, Signal.SIGPROF, 0, SECOND, SECOND) == (0, 0)
    process.signals.set_mask(1 << (Signal.SIGPROF - 1))
    process.usage.user_ns = SECOND - 1
    enforce_cpu_limit(system.kernel, process)
    assert not process.signals.pending
    process.usage.user_ns = SECOND
    enforce_cpu_limit(system.kernel, process)
    assert process.signals.pending == 1 << (Signal.SIGPROF - 1)
    assert cpu_timer(process, Signal.SIGPROF, 2 * SECOND - 5) == (5, SECOND)
    assert set_cpu_timer(process, Signal.SIGPROF, 2 * SECOND - 5, 0, 0) == (5, SECOND)
    assert cpu_timer(process, Signal.SIGPROF, 0) == (0, 0)
