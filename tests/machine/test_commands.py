"""One command of the host: output, exit codes, limits, and what stays afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.machine.guests import new_machine
from tests.waiting import PATIENCE, eventually, wait_until
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.hostcalls import any_running
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.machine import CapturedOutput, CommandRequest, Completed, Ended, Machine

pytestmark = pytest.mark.no_userland


def run(
    machine: Machine, *argv: str, stdin: bytes = b"", timeout: float | None = PATIENCE
) -> Completed:
    return machine.run(
        CommandRequest(tuple(argv), {}, "/tmp", stdin=stdin, timeout_seconds=timeout)
    )


def living(machine: Machine) -> list[bytes]:
    """The names of the processes that exist."""
    with machine.lock:
        return [p.name for p in machine.kernel.processes if p.pid != 1]


def memory_is_freed(machine: Machine) -> bool:
    """Whether the ledger soon holds nothing of processes: their threads take a moment to end."""
    ledger = machine.kernel.ledger

    def is_empty() -> bool:
        with machine.lock:
            ledger.see()
            return not (ledger.guest or ledger.engine or ledger.dying or ledger.shared)

    return eventually(is_empty, pause=0.002) and not ledger.unseen


def soon_living(machine: Machine, names: list[bytes]) -> bool:
    """Whether exactly these processes soon live."""
    return eventually(lambda: living(machine) == names, pause=0.001)


def test_output_errors_and_exit_code_are_captured(machine: Machine) -> None:
    result = run(machine, "ok")
    assert (result.stdout, result.stderr, result.exit_code) == (b"ok", b"", 0)
    result = run(machine, "complain")
    assert (result.stdout, result.stderr, result.exit_code) == (b"", b"bad", 3)
    assert not result.timed_out
    assert not result.truncated


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 1_000_000])
def test_input_of_any_size_arrives(machine: Machine, size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    assert run(machine, "echo", stdin=data).stdout == data


@pytest.mark.parametrize(
    ("name", "signo"),
    [("memory", 11), ("divide", 8), ("unreachable", 4), ("recurse", 11), ("abort", 6)],
)
def test_a_trap_ends_the_process_by_a_signal(machine: Machine, name: str, signo: int) -> None:
    assert run(machine, name).exit_code == 128 + signo
    assert living(machine) == []
    assert run(machine, "ok").stdout == b"ok"


@pytest.mark.parametrize("name", ["spin", "sleep"])
def test_a_command_that_takes_too_long_is_ended(machine: Machine, name: str) -> None:
    result = run(machine, name, timeout=0.1)
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert living(machine) == []
    assert run(machine, "ok").stdout == b"ok"
    wait_until(lambda: not any_running(), "a thread still runs the guest", pause=0.001)


def test_a_command_that_prints_too_much_is_ended(engine: WasmtimeEngine) -> None:
    machine = new_machine(engine, Limits(max_output_bytes=100_000))
    result = run(machine, "chatter")
    assert (result.truncated, result.exit_code, result.stdout) == (True, 137, b"x" * 100_000)
    assert b"raise max_output_bytes" in result.stderr
    assert living(machine) == []


def test_a_background_process_continues_silently(machine: Machine) -> None:
    result = run(machine, "background")
    assert (result.stdout, result.exit_code) == (b"started", 0)
    assert living(machine) == [b"sleep"]
    assert run(machine, "ok").stdout == b"ok"
    machine.close()
    assert living(machine) == []


def test_a_timeout_ends_children_too(machine: Machine) -> None:
    assert run(machine, "background").stdout == b"started"
    run(machine, "spin", timeout=0.05)
    assert living(machine) == [b"sleep"], "the child of another command is left alone"


def test_a_parent_learns_its_childs_exit_code(machine: Machine) -> None:
    result = run(machine, "parent")
    assert (result.stderr, result.exit_code) == (b"bad", 3)


def test_exec_goes_on_in_the_same_process(machine: Machine) -> None:
    assert run(machine, "become").stdout == b"ok"


def test_forked_processes_are_copies_and_all_end(machine: Machine) -> None:
    assert run(machine, "fork").exit_code == 0
    assert soon_living(machine, [])


@pytest.mark.parametrize(("name", "code"), [("ticks", 42), ("alarm", 43)])
def test_signals_reach_a_guest_that_computes_and_one_that_waits(
    machine: Machine, name: str, code: int
) -> None:
    assert run(machine, name).exit_code == code


@pytest.mark.parametrize(
    ("argv", "errno"),
    [
        (["missing"], Errno.ENOENT),
        (["/etc/passwd"], Errno.EACCES),
        (["/tmp"], Errno.EACCES),
        (["broken"], Errno.ENOEXEC),
        (["text"], Errno.ENOEXEC),
        (["nonsense"], Errno.ENOEXEC),
    ],
)
def test_a_program_that_cannot_be_started_leaves_no_process(
    engine: WasmtimeEngine, argv: list[str], errno: Errno
) -> None:
    machine = new_machine(
        engine, broken=b"\0asm\1\0\0\0garbage", text=b"hello\n", nonsense=b"\0asm\2\0\0\0"
    )
    with pytest.raises(KernelError) as caught:
        run(machine, *argv)
    assert caught.value.errno is errno
    assert living(machine) == []
    with pytest.raises(KernelError):
        machine.open_terminal(CommandRequest(tuple(argv), {}, "/"))
    assert not machine.kernel.terminals


def test_scripts_run_by_their_interpreter(engine: WasmtimeEngine) -> None:
    machine = new_machine(engine, script=b"#!/usr/bin/ok\n")
    assert run(machine, "script").stdout == b"ok"


def test_programs_are_found_along_the_path(machine: Machine) -> None:
    found = machine.run(CommandRequest(("ok",), {"PATH": "/nowhere:/usr/bin"}, "/"))
    assert found.stdout == b"ok"
    with pytest.raises(KernelError):
        machine.run(CommandRequest(("ok",), {"PATH": "/nowhere"}, "/"))


def test_the_limit_of_processes_holds_for_commands(engine: WasmtimeEngine) -> None:
    machine = new_machine(engine, Limits(max_processes=4))
    for _ in range(8):
        run(machine, "background")
        assert len(living(machine)) <= 4


def test_memory_is_limited_for_the_whole_machine(engine: WasmtimeEngine) -> None:
    machine = new_machine(engine, Limits(memory_limit_bytes=32 << 20))
    result = run(machine, "grow", timeout=1.0)
    assert result.exit_code in (124, 137)
    assert memory_is_freed(machine)
    assert run(machine, "ok").stdout == b"ok"


def test_commands_run_at_the_same_time(machine: Machine) -> None:
    outputs: list[bytes] = []

    def work(number: int) -> None:
        data = bytes([number]) * 10_000
        outputs.append(run(machine, "echo", stdin=data).stdout)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(outputs) == [bytes([n]) * 10_000 for n in range(16)]


def test_closing_ends_everything_and_twice_is_fine(machine: Machine) -> None:
    run(machine, "background")
    machine.close()
    machine.close()
    assert living(machine) == []


def started(machine: Machine, request: CommandRequest) -> Completed:
    """What a command with streams leaves behind, for a host that captures its output itself."""
    process = machine.start(request)
    captured = CapturedOutput(machine.kernel.limits.max_output_bytes)
    while outputs := process.read(PATIENCE):
        for output in outputs:
            captured.keep(*output)
        if captured.truncated:
            process.kill()
    ended = process.wait(PATIENCE)
    assert ended is not None
    return captured.completed(ended)


@pytest.mark.parametrize("name", ["ok", "complain", "memory", "chatter", "spin", "background"])
def test_a_command_ends_alike_whether_it_is_run_or_started(
    engine: WasmtimeEngine, name: str
) -> None:
    request = CommandRequest((name,), {}, "/tmp", timeout_seconds=0.5)
    run_one, started_one = (
        do(new_machine(engine, Limits(max_output_bytes=100_000)), request)
        for do in (Machine.run, started)
    )
    assert replace(run_one, seconds=0) == replace(started_one, seconds=0)
    assert run_one.timed_out == (name == "spin")
    assert run_one.truncated == (name == "chatter")


@pytest.mark.parametrize("do", [Machine.run, started])
def test_a_notice_is_told_once_and_shown_once(
    engine: WasmtimeEngine, do: Callable[[Machine, CommandRequest], Completed]
) -> None:
    machine = new_machine(engine, Limits(max_processes=4))
    request = CommandRequest(("background",), {}, "/tmp", timeout_seconds=PATIENCE)
    results = [do(machine, request) for _ in range(8)]
    told = [notice for result in results for notice in result.notices]
    assert told
    assert set(told) == {
        "ended 1 background processes to make room; raise max_processes or memory_limit_bytes"
    }
    for result in results:
        lines = [f"wasmsand: {notice}\n" for notice in result.notices]
        assert result.stderr.decode() == "".join(lines)


@pytest.mark.parametrize("do", [Machine.run, started])
def test_output_beyond_the_limit_is_a_notice(
    engine: WasmtimeEngine, do: Callable[[Machine, CommandRequest], Completed]
) -> None:
    machine = new_machine(engine, Limits(max_output_bytes=1000))
    result = do(machine, CommandRequest(("chatter",), {}, "/tmp", timeout_seconds=PATIENCE))
    notice = "output limit of 1000 bytes reached, command ended; raise max_output_bytes"
    assert (result.notices, result.stderr) == ((notice,), f"wasmsand: {notice}\n".encode())
    assert (result.stdout, result.exit_code, result.truncated) == (b"x" * 1000, 137, True)


def test_what_captures_output_keeps_each_stream_up_to_the_limit() -> None:
    captured = CapturedOutput(4)
    assert captured.keep(1, b"abc") == b"abc"
    assert captured.keep(2, b"four") == b"four"
    assert not captured.truncated
    assert captured.keep(1, b"de") == b"d"
    assert captured.keep(1, b"f") == b""
    assert captured.truncated
    completed = captured.completed(Ended(0, True, 1.5, ("first",)))
    assert (completed.exit_code, completed.timed_out, completed.seconds) == (137, False, 1.5)
    assert (completed.stdout, completed.stderr[:20]) == (b"abcd", b"fourwasmsand: first\n")
