"""Programs with streams to and from the host, and the processes that the host sees."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from tests.machine.guests import READ, ROOM, WRITE, call, do, program, say
from tests.waiting import PATIENCE, eventually, wait_until
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import OUTPUT_CHANNEL_CAPACITY
from wasmsand.machine import CommandRequest, Machine, StreamedProcess, list_processes, send_signal

pytestmark = pytest.mark.no_userland


def start(machine: Machine, name: str, timeout: float | None = PATIENCE) -> StreamedProcess:
    return machine.start(CommandRequest((name,), {}, "/tmp", timeout_seconds=timeout, stdin=None))


def everything(process: StreamedProcess) -> bytes:
    pieces = []
    while outputs := process.read(PATIENCE):
        pieces += [data for _, data in outputs]
    return b"".join(pieces)


def test_written_input_comes_back(machine: Machine) -> None:
    process = start(machine, "echo")
    for data in (b"one", b"two"):
        process.write(data)
        assert process.read(PATIENCE) == ((1, data),)
    process.close_input()
    assert process.read(PATIENCE) == ()
    end = process.wait(PATIENCE)
    assert end is not None
    assert (end.exit_code, end.timed_out, end.notices) == (0, False, ())


def test_reading_waits_no_longer_than_asked(machine: Machine) -> None:
    process = start(machine, "sleep")
    with pytest.raises(TimeoutError):
        process.read(0.05)
    assert process.wait(0) is None
    process.kill()
    assert process.read(PATIENCE) == ()


def test_a_program_that_nobody_reads_waits_and_holds_a_bounded_amount(machine: Machine) -> None:
    process = start(machine, "chatter")
    channel = process._life.channel
    eventually(lambda: channel.room() <= 4096, pause=0.001)
    assert channel.size <= OUTPUT_CHANNEL_CAPACITY + 4096
    process.kill()


def test_further_descriptors_have_their_own_streams(machine: Machine) -> None:
    copy = program(
        do(WRITE, 7, ROOM, call(READ, 6, ROOM, 100)),
        say("done")[0],
        more=say("done")[1],
    )
    machine.files.write("/usr/bin/copy", wat_to_wasm(copy), mode=0o755)
    process = machine.start(
        CommandRequest(("copy",), {}, "/tmp", extra_inputs=(6,), extra_outputs=(7,))
    )
    process.write(b"across", fd=6)
    outputs: list[tuple[int, bytes]] = []
    while more := process.read(PATIENCE):
        outputs += more
    assert outputs == [(7, b"across"), (1, b"done")]
    with pytest.raises(KernelError) as caught:
        process.write(b"x")
    assert caught.value.errno in (Errno.EBADF, Errno.EPIPE)


@pytest.mark.parametrize(
    ("inputs", "outputs", "errno"),
    [
        ((), (100_000,), Errno.EMFILE),
        ((-1,), (), Errno.EMFILE),
        ((), (1,), Errno.EINVAL),
        ((5,), (5,), Errno.EINVAL),
    ],
)
def test_impossible_descriptors_are_an_error_and_leave_nothing(
    machine: Machine, inputs: tuple[int, ...], outputs: tuple[int, ...], errno: Errno
) -> None:
    with pytest.raises(KernelError) as caught:
        machine.start(
            CommandRequest(("ok",), {}, "/", extra_inputs=inputs, extra_outputs=outputs, stdin=None)
        )
    assert caught.value.errno is errno
    assert list_processes(machine) == []
    assert machine.kernel.pipes.in_use == 0


def test_a_program_that_does_not_start_leaves_nothing(machine: Machine) -> None:
    with pytest.raises(KernelError):
        start(machine, "nothing")
    assert machine.kernel.pipes.in_use == 0


def test_the_time_limit_ends_a_program_that_computes(machine: Machine) -> None:
    end = start(machine, "spin", timeout=0.1).wait(PATIENCE)
    assert end is not None
    assert (end.exit_code, end.timed_out) == (124, True)
    assert end.seconds >= 0.1


def test_output_held_by_a_background_process_does_not_block_the_reader(machine: Machine) -> None:
    process = start(machine, "background")
    assert everything(process) == b"started"
    assert [entry.argv for entry in list_processes(machine)] != []
    process.kill()
    assert list_processes(machine) == []


def test_a_reader_and_a_writer_are_released_when_the_machine_is_closed(machine: Machine) -> None:
    reading, writing = start(machine, "sleep"), start(machine, "sleep")
    outcome: list[object] = []

    def write() -> None:
        try:
            writing.write(b"x" * 1_000_000)
        except KernelError as error:
            outcome.append(error.errno)

    threads = [
        threading.Thread(target=lambda: outcome.append(reading.read())),
        threading.Thread(target=write),
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    machine.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(map(str, outcome)) == sorted([str(()), str(Errno.EPIPE)])


def test_nothing_starts_on_a_closed_machine(machine: Machine) -> None:
    machine.close()
    for run in (machine.start, machine.run):
        with pytest.raises(KernelError) as caught:
            run(CommandRequest(("ok",), {}, "/tmp"))
        assert caught.value.errno is Errno.ESRCH


def test_the_input_of_a_process_that_nobody_holds_is_closed(machine: Machine) -> None:
    pid = start(machine, "echo").pid
    gc.collect()
    wait_until(
        lambda: all(entry.pid != pid for entry in list_processes(machine)),
        "the process still waits for input",
    )


def test_the_host_sends_signals(machine: Machine) -> None:
    process = start(machine, "sleep")
    (entry,) = list_processes(machine)
    assert (entry.pid, entry.job, entry.parent_pid, entry.argv) == (
        process.pid,
        process.pid,
        1,
        (b"sleep",),
    )
    for pid, number, errno in ((1, 9, Errno.ESRCH), (999, 9, Errno.ESRCH), (entry.pid, 99, 22)):
        with pytest.raises(KernelError) as caught:
            send_signal(machine, pid, number)
        assert caught.value.errno == errno
    send_signal(machine, process.pid, 15)
    end = process.wait(PATIENCE)
    assert end is not None
    assert end.exit_code == 143


def exchanging(machine: Machine) -> StreamedProcess:
    """A program that reads three bytes from descriptor 6, says `done`, and copies them to 7: three
    times."""
    words, data = say("done")
    turn = do(READ, 6, ROOM, 3) + words + do(WRITE, 7, ROOM, 3)
    source = program(turn, turn, turn, more=data)
    machine.files.write("/usr/bin/exchange", wat_to_wasm(source), mode=0o755)
    return machine.start(
        CommandRequest(("exchange",), {}, "/tmp", extra_inputs=(6,), extra_outputs=(7,))
    )


def test_an_exchange_returns_everything_up_to_the_awaited_output(machine: Machine) -> None:
    process = exchanging(machine)
    assert process.exchange(b"one", 6, 7, PATIENCE) == ((1, b"done"), (7, b"one"))
    assert process.exchange(b"two", 6, 7, PATIENCE) == ((1, b"done"), (7, b"two"))
    process.kill()


def test_an_exchange_of_which_nothing_is_awaited_returns_the_first_output(machine: Machine) -> None:
    process = exchanging(machine)
    outputs: tuple[tuple[int, bytes], ...] | None = process.exchange(b"one", 6, None, PATIENCE)
    assert outputs is not None
    assert outputs[0][0] == 1
    process.kill()


def test_an_exchange_that_does_not_fit_writes_nothing(machine: Machine) -> None:
    process = start(machine, "sleep")
    assert process.exchange(bytes(1 << 20), 0, 1, PATIENCE) is None
    assert process.exchange(b"x", 99, 1, PATIENCE) is None
    assert process.write(bytes(1 << 20), timeout_seconds=0) == 65536
    process.kill()


def test_an_exchange_in_vain_ends_in_time_and_with_the_program(machine: Machine) -> None:
    process = start(machine, "sleep")
    with pytest.raises(TimeoutError):
        process.exchange(b"x", 0, 1, 0.05)
    threading.Timer(0.1, process.kill).start()
    assert process.exchange(b"x", 0, 1, PATIENCE) == ()
