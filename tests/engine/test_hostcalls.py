"""System calls from guest to host and back."""

from __future__ import annotations

import pytest

from tests.engine.guests import call_host, program
from tests.engine.hosts import Host, load, on_guest_thread, run_at_once
from wasmsand.engine.protocol import GuestUnwind
from wasmsand.engine.wasmtime.engine import WasmtimeEngine


class Exit(GuestUnwind):
    """A host call that ends the guest."""


def test_arguments_arrive_unsigned_and_in_order(host: Host) -> None:
    start = """(drop (call $syscall (i32.const 63) (i32.const 1) (i32.const -1)
      (i32.const 0x7fffffff) (i32.const 0x80000000) (i32.const 5) (i32.const 6)))"""
    assert host.run_wat(program(start)) is None
    assert host.calls == [(63, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 5, 6)]


@pytest.mark.parametrize("result", [0, 1, -1, -4095, -512, 2**31 - 1, -(2**31)])
def test_result_arrives_signed(engine: WasmtimeEngine, result: int) -> None:
    host = Host(engine, on_syscall=lambda nr, *rest: result if nr == 1 else 0)
    second = call_host("(i32.const 2)", call_host("(i32.const 1)"))
    assert host.run_wat(program(f"(drop {second})")) is None
    assert host.calls[1][1] == result & 0xFFFFFFFF


@pytest.mark.parametrize("error", [Exit("exit"), ZeroDivisionError("a bug of the host")])
def test_run_raises_the_very_exception_of_the_host_call(
    engine: WasmtimeEngine, error: Exception
) -> None:
    def answer(nr: int, *rest: int) -> int:
        raise error

    host = Host(engine, on_syscall=answer)
    start = f"(drop {call_host('(i32.const 1)')}) (drop {call_host('(i32.const 2)')})"
    assert host.run_wat(program(start)) is error
    assert [call[0] for call in host.calls] == [1]


def test_guest_cannot_catch_the_unwinding(engine: WasmtimeEngine) -> None:
    def answer(nr: int, *rest: int) -> int:
        raise leaving

    leaving = Exit("exit")
    host = Host(engine, on_syscall=answer)
    start = f"(block $caught (try_table (catch_all $caught) (drop {call_host('(i32.const 1)')})))"
    after = f"(drop {call_host('(i32.const 2)')})"
    assert host.run_wat(program(start + after)) is leaving
    assert len(host.calls) == 1


def test_result_outside_32_bits_is_a_bug_of_the_host(engine: WasmtimeEngine) -> None:
    host = Host(engine, on_syscall=lambda *arguments: 2**40)
    raised = host.run_wat(program(f"(drop {call_host('(i32.const 1)')})"))
    assert isinstance(raised, OverflowError)


def test_two_guests_on_two_threads_keep_their_calls_apart(engine: WasmtimeEngine) -> None:
    loop = f"""(local $i i32) (loop $again
      (drop {call_host("(i32.const 1)", "(local.get $i)")})
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 500))))"""
    module = load(engine, program(loop))
    hosts = [Host(engine) for _ in range(4)]
    run_at_once(module, hosts)
    for host in hosts:
        assert [call[1] for call in host.calls] == list(range(500))


def test_running_on_a_shallow_thread_is_refused(engine: WasmtimeEngine, host: Host) -> None:
    instance = load(engine, program("")).instantiate(1 << 20)
    instance.bind(host)
    with pytest.raises(RuntimeError, match="start_thread"):
        instance.run()
    assert host.run(instance) is None


def test_running_unbound_is_refused(engine: WasmtimeEngine) -> None:
    instance = load(engine, program("")).instantiate(1 << 20)
    raised = on_guest_thread(engine, instance.run)
    assert isinstance(raised, RuntimeError)
    instance.close()


def test_an_ended_instance_cannot_run_again(engine: WasmtimeEngine, host: Host) -> None:
    instance = load(engine, program("")).instantiate(1 << 20)
    instance.bind(host)
    assert on_guest_thread(engine, instance.run) is None
    assert isinstance(on_guest_thread(engine, instance.run), RuntimeError)
    instance.close()
    assert isinstance(on_guest_thread(engine, instance.run), RuntimeError)


def test_closing_from_inside_a_host_call_is_refused(engine: WasmtimeEngine) -> None:
    def answer(*arguments: int) -> int:
        assert host.instance is not None
        host.instance.close()
        return 0

    host = Host(engine, on_syscall=answer)
    raised = host.run_wat(program(f"(drop {call_host('(i32.const 1)')})"))
    assert isinstance(raised, RuntimeError)
