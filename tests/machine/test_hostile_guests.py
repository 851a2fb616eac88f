"""Guests with wrong exports, and guests that leave no room for others."""

from __future__ import annotations

import logging

import pytest

from tests.machine.guests import (
    ACTION,
    CLONE,
    EVERY_MILLISECOND,
    EXIT_GROUP,
    FOR_EVER,
    GETPID,
    HANDLE_ALARM,
    KILL,
    LONG_TIME,
    NANOSLEEP,
    SETITIMER,
    SIGACTION,
    SIGALRM,
    SIGNAL_FLAG,
    SPAWN,
    call,
    do,
    new_machine,
    program,
    say,
    sleep_for_ever,
    text,
    words,
)
from tests.machine.test_threads import STACKS, THREAD_FLAGS, threaded
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.limits import Limits
from wasmsand.machine import CommandRequest, Completed, Machine
from wasmsand.machine.bug_log import PER_MINUTE, log_bug

pytestmark = pytest.mark.no_userland


def run(machine: Machine, name: str, timeout: float = 20.0) -> Completed:
    return machine.run(CommandRequest((name,), {}, "/tmp", timeout_seconds=timeout))


def wrong(wat: str, which: str) -> bytes:
    """The program with a wrong export."""
    flag = f'"__signal_flag") i32 (i32.const {SIGNAL_FLAG})'
    handlers = '(func $signals (export "__signal_run")'
    assert flag in wat
    assert handlers in wat
    changed = {
        "the flag is outside of memory": (flag, '"__signal_flag") i32 (i32.const 0x7ffffffe)'),
        "the flag is across its end": (flag, '"__signal_flag") i32 (i32.const 65534)'),
        "no handlers": (handlers, "(func $signals"),
        "handlers of another type": (handlers, '(func $signals (export "_") (export "other")'),
    }[which]
    return wat_to_wasm(wat.replace(*changed))


@pytest.mark.parametrize(
    "which",
    [
        "the flag is outside of memory",
        "the flag is across its end",
        "no handlers",
        "handlers of another type",
    ],
)
@pytest.mark.parametrize("doing", ["computing", "waiting", "calling", "at fault"])
def test_a_guest_that_cannot_receive_signals_has_default_actions(
    engine: WasmtimeEngine, caplog: pytest.LogCaptureFixture, which: str, doing: str
) -> None:
    what = {
        "computing": do(SETITIMER, 0, 160, 0) + FOR_EVER,
        "waiting": do(SETITIMER, 0, 160, 0) + sleep_for_ever(),
        "calling": do(KILL, call(GETPID), SIGALRM),
        "at fault": do(SIGACTION, 8, 128, 0, 8)
        + "(drop (i32.div_u (i32.const 1) (i32.load (i32.const 4096))))",
    }[doing]
    wat = program(
        HANDLE_ALARM, what, do(EXIT_GROUP, 0), more=ACTION + EVERY_MILLISECOND + LONG_TIME
    )
    machine = new_machine(engine, tried=wrong(wat, which))
    try:
        with caplog.at_level(logging.WARNING):
            result = run(machine, "tried")
        assert result.exit_code == 128 + (8 if doing == "at fault" else SIGALRM)
        assert caplog.records == []
    finally:
        machine.close()


def test_bugs_are_logged_at_a_bounded_rate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wasmsand.machine.bug_log._began", float("-inf"))
    with caplog.at_level(logging.ERROR):
        for number in range(1000):
            try:
                raise ValueError(number)
            except ValueError:
                log_bug("bug %d", number)
    assert len(caplog.records) <= PER_MINUTE + 1
    monkeypatch.setattr("wasmsand.machine.bug_log._began", float("-inf"))
    caplog.clear()
    try:
        raise ValueError
    except ValueError:
        log_bug("another one")
    assert [record.getMessage() for record in caplog.records] == [
        f"{1000 - PER_MINUTE} host bugs were not logged",
        "another one",
    ]


THREAD_MAKER = threaded(
    f"""(loop $again
      (drop {call(CLONE, THREAD_FLAGS, STACKS + 1024, 1024, 0, 1028)})
      {do(NANOSLEEP, 1, 0, 224, 0)}
      (br $again))""",
    thread=sleep_for_ever(),
    more=LONG_TIME + words(224, 0, 0, 1000, 0),
)
DAEMON = program(SPAWN, say("started")[0], more=text(256, "/usr/bin/maker") + say("started")[1])


def test_threads_made_in_the_background_leave_room_for_commands(engine: WasmtimeEngine) -> None:
    machine = new_machine(
        engine,
        Limits(max_processes=16),
        maker=wat_to_wasm(THREAD_MAKER),
        daemon=wat_to_wasm(DAEMON),
    )
    try:
        first = run(machine, "daemon")
        assert first.stdout == b"started"
        told = first.stderr  # it may have made many before the command was over
        for _ in range(5):
            result = run(machine, "parent")  # needs a process and a child
            assert result.exit_code == 3
            told += result.stderr
            told += run(machine, "sleep", timeout=0.2).stderr
        assert b"ended 1 background processes to make room" in told
    finally:
        machine.close()
