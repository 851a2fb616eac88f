"""Sessions and commands whose programs do not read: every wait of the host has a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import (
    AsyncSandbox,
    CommandError,
    CommandResult,
    InputTimeoutError,
    PythonResult,
    Sandbox,
)

Timed = TypeVar("Timed", CommandResult, PythonResult)
LONG = ": " + "x" * 300_000
"""A script that fits in no pipe."""
MARGIN = 15.0
"""Seconds: a hang would last for ever, and a busy host is slow."""


def times_out(run: Callable[[], Timed], margin: float = MARGIN) -> Timed:
    """The result of a run that times out, and returns soon after its time limit."""
    began = time.monotonic()
    result = run()
    assert result.timed_out
    assert time.monotonic() - began < margin
    return result


def seconds_of(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def test_a_stopped_shell_is_interrupted_in_time_and_stays_usable(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        shell.run("name=kept; (sleep 0.2; kill -STOP $$) &")
        time.sleep(1)
        assert times_out(lambda: shell.run(LONG, timeout_ms=1000)).exit_code == 124
        assert shell.run("echo $name").stdout == "kept\n"


def test_a_stopped_interpreter_is_interrupted_in_time_and_stays_usable(sandbox: Sandbox) -> None:
    with sandbox.python() as session:
        session.run(
            "import os, subprocess; name = 'kept'\n"
            "subprocess.Popen(['bash', '-c', f'sleep 0.2; kill -STOP {os.getpid()}'])"
        )
        time.sleep(1)
        endless = f"text = {'x' * 300_000!r}\nwhile True: pass"
        times_out(lambda: session.run(endless, timeout_ms=1000))
        assert session.run("name").value == "kept"


def test_an_interpreter_that_is_stopped_again_and_again_is_ended_and_says_so(
    sandbox: Sandbox,
) -> None:
    with sandbox.python() as session:
        session.run(
            "import os, subprocess\n"
            "command = f'sleep 0.3; while :; do kill -STOP {os.getpid()}; done'\n"
            "subprocess.Popen(['bash', '-c', \"trap '' INT; \" + command])"
        )
        time.sleep(1)
        long = f"text = {'x' * 300_000!r}"
        result = times_out(lambda: session.run(long, timeout_ms=500), MARGIN + 6)
        if session.closed:  # otherwise the last, firmer attempts ended what stopped it
            assert "was ended; its state is lost" in result.stderr
            with pytest.raises(CommandError, match="ESRCH"):
                session.run("1")


def test_a_half_sent_script_is_never_run_as_commands_of_its_own(sandbox: Sandbox) -> None:
    words = "\n".join(f"touch /tmp/escaped-{n}" for n in range(10_000))
    with sandbox.shell() as shell:
        shell.run("(sleep 0.2; kill -STOP $$) &")
        time.sleep(1)
        shell.run(f"cat > /dev/null <<'END'\n{words}\nEND", timeout_ms=300)
        assert shell.run("ls /tmp | grep -c escaped").stdout == "0\n"


def test_a_long_script_that_removes_its_file_is_a_result(sandbox: Sandbox) -> None:
    with sandbox.shell() as shell:
        script = f"rm -f /tmp/.wasmsand-*; cat; echo $?\n{LONG}"
        assert shell.run(script, stdin="in\n").stdout == "in\n0\n"
        assert sandbox.files.list("/tmp") == []


def test_a_long_script_runs_where_the_file_system_is_full(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(fs_limit_bytes=1_000_000)
    with sandbox.shell() as shell:
        shell.run("head -c 990000 /dev/zero > big; head -c 100000 /dev/zero >> big")
        script = f"rm big; echo removed\n: {'y' * 5_000}"
        assert shell.run(script).stdout == "removed\n"


def test_writing_to_a_command_that_does_not_read_ends_in_time(sandbox: Sandbox) -> None:
    with sandbox.commands.start("sleep 1000") as command:
        with pytest.raises(InputTimeoutError, match="of 500000 bytes") as caught:
            command.write_stdin(b"x" * 500_000, timeout_ms=300)
        assert caught.value.written == 65536
        assert isinstance(caught.value, TimeoutError)
    with sandbox.commands.start("sleep 0.5; wc -c") as command:
        data = b"x" * 3_000_000
        with pytest.raises(InputTimeoutError) as caught:
            command.write_stdin(data, timeout_ms=50)
        command.write_stdin(data[caught.value.written :])
        command.close_stdin()
        assert command.wait().stdout.strip() == "3000000"


def test_cancelling_a_write_or_a_run_ends_it_at_any_moment() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            command = await sandbox.commands.start("sleep 1000")
            shell = await sandbox.shell()
            await shell.run("name=kept; (sleep 0.2; kill -STOP $$) &")
            await asyncio.sleep(1)
            for waiting in (command.write_stdin(b"x" * 500_000), shell.run(LONG)):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(waiting, 0.5)
            result = await asyncio.wait_for(shell.run("echo $name"), MARGIN)
            assert result.stdout == "kept\n"
            await command.kill()

    assert seconds_of(lambda: asyncio.run(main())) < 3 * MARGIN


def test_a_call_that_was_cancelled_while_it_waited_for_its_turn_is_never_made() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            shell = await sandbox.shell()
            first = asyncio.create_task(shell.run("sleep 1"))
            await asyncio.sleep(0.2)
            second = asyncio.create_task(shell.run("touch /tmp/second"))
            await asyncio.sleep(0.2)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            await first
            assert (await shell.run("ls /tmp")).stdout == ""

    asyncio.run(main())
