"""Programs that keep their signal mask and actions in their own memory, honest and hostile."""

from __future__ import annotations

import logging

import pytest

from tests.machine.guests import (
    EVERY_MILLISECOND,
    EXIT_GROUP,
    FOR_EVER,
    GETPID,
    KILL,
    LONG_TIME,
    RUN_HANDLERS,
    SETITIMER,
    SIGALRM,
    SIGTERM,
    SIGUSR1,
    SPAWN,
    WAIT4,
    call,
    do,
    new_machine,
    program,
    say,
    sleep_for_ever,
    text,
)
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.abi.linux.signal_words import SIZE
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.machine import CommandRequest, Completed

pytestmark = pytest.mark.no_userland

WORDS = 16384
SIGKILL, SIGCHLD, SIGSTOP = 9, 17, 19
PENDING = 2


def exported(address: int = WORDS) -> str:
    return f'(global (export "__signal_words") i32 (i32.const {address}))'


def set_mask(*signals: int) -> str:
    """A statement: block exactly these signals, without a call."""
    mask = sum(1 << (signo - 1) for signo in signals)
    return f"(i64.store (i32.const {WORDS}) (i64.const {mask}))"


def set_handler(signo: int, handler: int) -> str:
    """A statement: set an action, without a call."""
    return f"(i64.store (i32.const {WORDS + 16 * signo}) (i64.const {handler}))"


def owner() -> str:
    """An expression: whose the words are."""
    return f"(i32.load (i32.const {WORDS + 8}))"


FILL_WITH_ONES = f"(memory.fill (i32.const {WORDS}) (i32.const 255) (i32.const {SIZE}))"
TELL = do(CallNumber.RT_SIGPROCMASK, 0, 0, 0, 8)
"""What the libc does after a change if a signal is pending."""


def kill_self(signo: int) -> str:
    return do(KILL, call(GETPID), signo)


def run(
    engine: WasmtimeEngine, wat: str, timeout: float = 20.0, name: str = "tried", **more: str
) -> Completed:
    files = {key: wat_to_wasm(source) for key, source in more.items()}
    machine = new_machine(engine, None, tried=wat_to_wasm(wat), **files)
    try:
        return machine.run(CommandRequest((name,), {}, "/tmp", timeout_seconds=timeout))
    finally:
        machine.close()


def test_a_handler_that_was_set_without_a_call_runs(engine: WasmtimeEngine) -> None:
    wat = program(
        set_handler(SIGUSR1, 77), kill_self(SIGUSR1), RUN_HANDLERS, do(EXIT_GROUP, 1),
        more=exported(), on_signal=do(EXIT_GROUP, 42),
    )  # fmt: skip
    assert run(engine, wat).exit_code == 42


def test_a_blocked_signal_waits_until_the_program_says_that_it_is_unblocked(
    engine: WasmtimeEngine,
) -> None:
    wat = program(
        set_mask(SIGTERM), kill_self(SIGTERM),
        f"(if (i32.ne {owner()} (i32.const {PENDING})) (then {do(EXIT_GROUP, 1)}))",
        say("blocked")[0], set_mask(), TELL, do(EXIT_GROUP, 2),
        more=exported() + say("blocked")[1],
    )  # fmt: skip
    result = run(engine, wat)
    assert (result.exit_code, result.stdout) == (128 + SIGTERM, b"blocked")


@pytest.mark.parametrize("then", ["calls", "waits", "computes"])
def test_an_unblocked_signal_is_not_lost_if_the_program_never_says_so(
    engine: WasmtimeEngine, then: str
) -> None:
    what = {
        "calls": do(CallNumber.SCHED_YIELD),
        "waits": sleep_for_ever(),
        "computes": FOR_EVER,
    }[then]
    wat = program(
        set_mask(SIGTERM), kill_self(SIGTERM), set_mask(), what, do(EXIT_GROUP, 2),
        more=exported() + LONG_TIME,
    )  # fmt: skip
    assert run(engine, wat).exit_code == 128 + SIGTERM


@pytest.mark.parametrize("then", ["waits", "computes"])
def test_an_alarm_meets_the_handler_of_the_words(engine: WasmtimeEngine, then: str) -> None:
    wat = program(
        set_handler(SIGALRM, 77), do(SETITIMER, 0, 160, 0),
        sleep_for_ever() if then == "waits" else FOR_EVER, RUN_HANDLERS,
        more=exported() + EVERY_MILLISECOND + LONG_TIME, on_signal=do(EXIT_GROUP, 43),
    )  # fmt: skip
    assert run(engine, wat).exit_code == 43


@pytest.mark.parametrize("address", [0x7FFF_FFF8, -8, 65536 - SIZE + 8, 65536, WORDS + 4])
def test_words_that_do_not_lie_in_the_memory_are_not_used(
    engine: WasmtimeEngine, caplog: pytest.LogCaptureFixture, address: int
) -> None:
    wat = program(set_mask(SIGTERM), kill_self(SIGTERM), do(EXIT_GROUP, 0), more=exported(address))
    with caplog.at_level(logging.WARNING):
        assert run(engine, wat).exit_code == 128 + SIGTERM
    assert caplog.records == []


def test_garbage_in_the_words_does_not_stop_sigkill(engine: WasmtimeEngine) -> None:
    wat = program(FILL_WITH_ONES, kill_self(SIGTERM), kill_self(SIGKILL), more=exported())
    assert run(engine, wat).exit_code == 128 + SIGKILL


def test_a_program_with_garbage_in_its_words_ends_at_its_timeout(engine: WasmtimeEngine) -> None:
    wat = program(FILL_WITH_ONES, FOR_EVER, more=exported())
    assert run(engine, wat, timeout=0.3).timed_out


def test_garbage_in_the_words_reaches_only_the_mask_of_the_next_program(
    engine: WasmtimeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    parent = program(
        FILL_WITH_ONES, set_handler(SIGCHLD, 0), SPAWN, do(WAIT4, -1, 8192, 0, 0),
        do(EXIT_GROUP, "(i32.load8_u (i32.const 8193))"),
        more=exported() + text(256, "/usr/bin/child"),
    )  # fmt: skip
    child = program(
        f"""(if (i64.ne (i64.load (i32.const {WORDS}))
              (i64.const {~((1 << (SIGKILL - 1)) | (1 << (SIGSTOP - 1)))}))
            (then {do(EXIT_GROUP, 1)}))""",
        kill_self(SIGTERM), do(EXIT_GROUP, 5),
        more=exported(),
    )  # fmt: skip
    with caplog.at_level(logging.WARNING):
        result = run(engine, parent, child=child)
    assert (result.exit_code, caplog.records) == (5, [])
