"""Ticks: how a computing guest is interrupted, signalled and stopped."""

from __future__ import annotations

import threading
import time

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host
from wasmsand.engine.protocol import GuestTrap, GuestUnwind, TrapKind
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

SPIN = "(loop $spin (br $spin))"
FLAG = 1024


class Killed(GuestUnwind):
    """The host ended the guest."""


def test_an_endless_loop_is_stopped_by_tick(engine: WasmtimeEngine) -> None:
    def tick() -> None:
        if host.ticks == 3:
            raise killed

    killed = Killed()
    host = Host(engine, on_tick=tick)
    started = time.monotonic()
    assert host.run_wat(program(SPIN)) is killed
    assert time.monotonic() - started < 2
    assert host.ticks == 3


def test_ticks_come_about_every_tick_seconds(engine: WasmtimeEngine) -> None:
    def tick() -> None:
        times.append(time.monotonic())
        if len(times) == 21:
            raise Killed

    times: list[float] = []
    assert isinstance(Host(engine, on_tick=tick).run_wat(program(SPIN)), Killed)
    mean = (times[-1] - times[0]) / 20
    assert engine.tick_seconds <= mean < 10 * engine.tick_seconds


def test_a_guest_that_ends_soon_never_ticks(host: Host) -> None:
    assert host.run_wat(program("")) is None
    assert host.ticks == 0


def test_interrupt_makes_a_computing_guest_tick_at_once(engine: WasmtimeEngine) -> None:
    def interrupt() -> None:
        for _ in range(100):
            time.sleep(0.001)  # until the guest is out of its last tick
            times.append(time.monotonic())
            interrupted.clear()
            engine.interrupt()
            assert interrupted.wait(5)
            times[-1] -= time.monotonic()
        ended.set()

    def tick() -> None:
        interrupted.set()
        if ended.is_set():
            raise Killed

    times: list[float] = []
    interrupted, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=interrupt)
    thread.start()
    assert isinstance(Host(engine, on_tick=tick).run_wat(program(SPIN)), Killed)
    thread.join()
    assert -sum(times) / len(times) < engine.tick_seconds / 2


def test_a_guest_that_waited_in_the_host_ticks_when_it_computes_again(
    engine: WasmtimeEngine,
) -> None:
    def answer(*arguments: int) -> int:
        time.sleep(0.3)
        return 0

    def tick() -> None:
        raise killed

    killed = Killed()
    host = Host(engine, on_syscall=answer, on_tick=tick)
    assert host.run_wat(program(f"(drop {call_host('(i32.const 1)')}) {SPIN}")) is killed


def signalled(handler: str) -> str:
    """A guest that spins until `__signal_run`, whose body is `handler`, has set the flag."""
    return program(
        f"(loop $spin (br_if $spin (i32.eqz (i32.load (i32.const {FLAG})))))",
        more=f'(func $run (export "__signal_run") {handler}) (tag $oops)',
    )


SET_FLAG = f"(i32.store (i32.const {FLAG}) (i32.const 1))"


def signalling(engine: WasmtimeEngine, *, swallow: bool = False) -> Host:
    """A host that calls `__signal_run` at each tick."""

    def tick() -> None:
        assert host.instance is not None
        try:
            host.instance.call("__signal_run")
        except Exception:
            if not swallow:
                raise

    host = Host(engine, on_tick=tick)
    return host


def test_a_guest_that_goes_on_after_a_long_wait_soon_ticks(engine: WasmtimeEngine) -> None:
    """While a guest waits, ticks become rare: after 30 of them, one every 80 ms."""

    def wait(*_: int) -> int:
        time.sleep(0.5)
        went_on.append(time.monotonic())
        engine.guest_resumed()
        return 0

    def tick() -> None:
        # The first tick stands for the ones that it missed.
        ticked.append(time.monotonic())
        if len(ticked) == 2:
            raise Killed

    waits: list[float] = []
    for _ in range(5):
        went_on: list[float] = []
        ticked: list[float] = []
        host = Host(engine, on_syscall=wait, on_tick=tick)
        raised = host.run_wat(program(f"(drop {call_host('(i32.const 1)')}) {SPIN}"))
        assert isinstance(raised, Killed)
        waits.append(ticked[1] - went_on[0])
    assert min(waits) < 4 * engine.tick_seconds


def test_a_signal_handler_runs_inside_a_tick(engine: WasmtimeEngine) -> None:
    host = signalling(engine)
    handler = f"(drop {call_host('(i32.const 9)')}) {SET_FLAG}"
    assert host.run_wat(signalled(handler)) is None
    assert [call[0] for call in host.calls] == [9]


def test_a_trap_in_a_signal_handler_ends_the_guest(engine: WasmtimeEngine) -> None:
    raised = signalling(engine).run_wat(signalled("unreachable"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.UNREACHABLE


def test_a_trap_in_a_signal_handler_ends_the_guest_even_if_tick_hides_it(
    engine: WasmtimeEngine,
) -> None:
    raised = signalling(engine, swallow=True).run_wat(signalled("unreachable"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.UNREACHABLE


def test_an_exception_thrown_out_of_a_signal_handler_is_uncaught(engine: WasmtimeEngine) -> None:
    raised = signalling(engine).run_wat(signalled("(throw $oops)"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.UNCAUGHT_EXCEPTION


def test_exit_from_a_signal_handler_is_raised_by_run(engine: WasmtimeEngine) -> None:
    def answer(*arguments: int) -> int:
        raise leaving

    leaving = Killed()
    host = signalling(engine)
    host.on_syscall = answer
    assert host.run_wat(signalled(f"(drop {call_host('(i32.const 9)')})")) is leaving


def test_an_endless_signal_handler_is_stopped_by_tick(engine: WasmtimeEngine) -> None:
    def tick() -> None:
        assert host.instance is not None
        if host.ticks == 60:
            raise killed
        host.instance.call("__signal_run")

    killed = Killed()
    host = Host(engine, on_tick=tick)
    # More ticks than calls may be nested: the deepest handlers are left waiting.
    assert host.run_wat(signalled(SPIN)) is killed


def test_recursion_in_a_signal_handler_is_a_stack_overflow(engine: WasmtimeEngine) -> None:
    raised = signalling(engine).run_wat(signalled("(call $run)"))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is TrapKind.STACK


def test_calling_a_missing_function_is_a_bug_of_the_host(engine: WasmtimeEngine) -> None:
    def tick() -> None:
        assert host.instance is not None
        host.instance.call("memory")

    host = Host(engine, on_tick=tick)
    assert isinstance(host.run_wat(program(SPIN)), KeyError)
