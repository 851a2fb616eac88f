"""`sandbox.commands.start`: commands that run while the caller does something else."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from tests.sdk.backends import MakeSandbox
from tests.waiting import wait_until
from wasmsand import CommandError, Sandbox, SandboxClosedError


def test_a_dialogue_with_a_command(sandbox: Sandbox) -> None:
    with sandbox.commands.start('while read line; do echo "got $line"; done') as command:
        chunks = iter(command)
        for word in ("one", "two"):
            command.write_stdin(f"{word}\n")
            chunk = next(chunks)
            assert (chunk.stream, chunk.text, chunk.data) == (
                "stdout",
                f"got {word}\n",
                f"got {word}\n".encode(),
            )
        command.close_stdin()
        command.close_stdin()
        assert list(chunks) == []
        assert command.wait().exit_code == 0


def test_wait_returns_what_run_would(sandbox: Sandbox) -> None:
    result = sandbox.commands.start("echo out; echo err >&2; exit 3").wait()
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert result.execution_time_ms > 0


def test_waiting_again_gives_the_same_result(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("echo once")
    assert command.wait() == command.wait()


def test_output_of_both_streams_comes_in_the_order_of_the_writes(sandbox: Sandbox) -> None:
    script = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
    chunks = list(sandbox.commands.start(script, stdin=""))
    assert "".join(chunk.text for chunk in chunks) == "o1\ne1\no2\ne2\no3\ne3\n"
    assert {chunk.stream for chunk in chunks} == {"stdout", "stderr"}


def test_poll_and_exit_code(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("read; exit 7")
    assert command.poll() is None
    command.close_stdin()
    command.wait()
    assert command.poll() == 7
    assert "exit_code=7" in repr(command)


def test_after_a_given_stdin_nothing_can_be_written(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("wc -c", stdin="four")
    with pytest.raises(CommandError, match=r"^(EBADF|EPIPE): "):
        command.write_stdin("more")
    assert command.wait().stdout == "4\n"


def test_kill_ends_the_command_and_what_it_started(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("sleep 50 & sleep 60")
    wait_until(lambda: len(sandbox.commands.list()) >= 3)
    command.kill()
    command.kill()
    assert command.wait().exit_code == 137
    assert sandbox.commands.list() == []


def test_leaving_the_block_kills(sandbox: Sandbox) -> None:
    with sandbox.commands.start("sleep 60"):
        pass
    assert sandbox.commands.list() == []


def test_a_signal_can_be_handled(sandbox: Sandbox) -> None:
    command = sandbox.commands.start(
        "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    )
    assert next(iter(command)).text == "ready\n"
    command.send_signal(15)
    result = command.wait(timeout_ms=10_000)
    assert (result.stdout, result.exit_code) == ("caught\n", 5)
    with pytest.raises(CommandError) as caught:
        command.send_signal(15)
    assert (caught.value.errno_name, caught.value.errno) == ("ESRCH", 3)


def test_waiting_may_give_up_and_try_again(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("echo first; read; echo second")
    with pytest.raises(TimeoutError):
        command.wait(timeout_ms=300)
    command.close_stdin()
    assert command.wait().stdout == "first\nsecond\n"


def test_the_time_limit_of_a_started_command(sandbox: Sandbox) -> None:
    result = sandbox.commands.start("echo before; sleep 60", timeout_ms=1000).wait()
    assert (result.exit_code, result.timed_out) == (124, True)
    assert (result.stdout, result.stderr) == ("before\n", "command timed out\n")


def test_the_time_limit_holds_without_a_handle(sandbox: Sandbox) -> None:
    sandbox.commands.start("sleep 60", timeout_ms=300)
    gc.collect()
    wait_until(lambda: sandbox.commands.list() == [], seconds=10)


def test_a_started_command_does_not_have_the_sandboxs_timeout(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=100) as sandbox:
        assert sandbox.commands.start("sleep 0.5; echo done").wait().stdout == "done\n"


def test_a_command_that_nobody_reads_waits(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("yes")
    time.sleep(0.3)
    before = sandbox.commands.list()[0].cpu_time_ms
    time.sleep(0.3)
    assert command.poll() is None
    assert sandbox.commands.list()[0].cpu_time_ms - before < 100
    command.kill()


def test_a_dropped_handle_leaves_its_command_running(sandbox: Sandbox) -> None:
    sandbox.commands.start("seq 200000; echo end > /tmp/end", stdin="")
    gc.collect()
    wait_until(lambda: sandbox.files.exists("/tmp/end"))


def test_input_larger_than_a_pipe_waits_for_its_reader(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 4096
    command = sandbox.commands.start("cat")
    received = bytearray()
    reader = threading.Thread(target=lambda: received.extend(command.wait().stdout_bytes))
    reader.start()
    command.write_stdin(data)
    command.close_stdin()
    reader.join(30)
    assert bytes(received) == data


def test_writing_to_a_command_that_has_ended(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("true")
    command.wait()
    with pytest.raises(CommandError, match=r"^EPIPE: "):
        command.write_stdin("x")


def test_a_writer_is_released_when_the_command_ends(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("sleep 0.3")
    with pytest.raises(CommandError, match=r"^EPIPE: "):
        command.write_stdin(b"x" * 1_000_000)


def test_output_past_the_limit_ends_the_command(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(max_output_bytes=1000) as sandbox:
        result = sandbox.commands.start("yes").wait()
        assert (len(result.stdout_bytes), result.truncated, result.exit_code) == (1000, True, 137)
        assert "raise max_output_bytes" in result.stderr
        assert sandbox.commands.list() == []


def test_iterating_has_no_output_limit(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(max_output_bytes=1000) as sandbox:
        chunks = sandbox.commands.start("seq 100000", stdin="")
        assert sum(len(chunk.data) for chunk in chunks) == 588895


def test_a_program_that_does_not_exist_cannot_be_started(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match=r"^ENOENT: "):
        sandbox.commands.start(["no-such-program"])


def test_killing_the_sandbox_releases_waiting_calls(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    command = sandbox.commands.start("sleep 60")
    threading.Timer(0.3, sandbox.kill).start()
    with pytest.raises(SandboxClosedError):
        command.wait()
    command.kill()
    with pytest.raises(SandboxClosedError):
        command.write_stdin("x")


def test_the_list_of_processes(sandbox: Sandbox) -> None:
    command = sandbox.commands.start(["sleep", "60"])
    (process,) = sandbox.commands.list()
    assert (process.pid, process.command_pid, process.argv) == (
        command.pid,
        command.pid,
        ("sleep", "60"),
    )
    assert process.memory_bytes > 0


def test_usage_reports_what_is_used(sandbox: Sandbox) -> None:
    before = sandbox.usage()
    sandbox.files.write("a", b"x" * 100_000)
    command = sandbox.commands.start("sleep 60")
    after = sandbox.usage()
    command.kill()
    assert after.fs_bytes - before.fs_bytes >= 100_000
    assert after.inodes - before.inodes == 1
    assert (before.processes, after.processes) == (0, 1)
    assert after.memory_bytes > before.memory_bytes == 0
    assert after.fs_limit_bytes == sandbox.options.fs_limit_bytes
    sandbox.commands.run("for ((i = 0; i < 20000; i++)); do :; done")
    assert sandbox.usage().cpu_time_ms > after.cpu_time_ms
