"""`commands.kill(pid)` and unlimited commands, on every interface."""

from __future__ import annotations

import pytest

from tests.sdk.backends import MakeSandbox
from tests.waiting import wait_until
from wasmsand import Sandbox


def programs(sandbox: Sandbox) -> list[str]:
    return sorted(process.argv[0] for process in sandbox.commands.list())


def test_a_command_is_killed_with_all_its_processes(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("trap '' TERM; sleep 601 | sleep 602; sleep 603")
    wait_until(lambda: "sleep" in programs(sandbox))
    assert sandbox.commands.kill(command.pid) is True
    assert command.wait().exit_code == 137
    assert "sleep" not in programs(sandbox)
    assert sandbox.commands.kill(command.pid) is False


def test_a_single_process_is_killed(sandbox: Sandbox) -> None:
    command = sandbox.commands.start("sleep 601; echo went on")
    wait_until(lambda: "sleep" in programs(sandbox))
    (pid,) = [p.pid for p in sandbox.commands.list() if p.argv[0] == "sleep"]
    assert sandbox.commands.kill(pid) is True
    assert command.wait().stdout == "went on\n"


def test_what_a_command_left_behind_is_killed(sandbox: Sandbox) -> None:
    sandbox.commands.run("sleep 601 & sleep 602 &")
    left = {p.command_pid for p in sandbox.commands.list() if p.argv[0] == "sleep"}
    assert len(left) == 1
    assert sandbox.commands.kill(left.pop()) is True
    assert "sleep" not in programs(sandbox)


def test_there_is_nothing_to_kill(sandbox: Sandbox) -> None:
    assert sandbox.commands.kill(30_000) is False
    assert sandbox.commands.kill(1) is False
    with pytest.raises(ValueError, match=r"^pid must be positive"):
        sandbox.commands.kill(0)
    with pytest.raises(TypeError, match=r"^pid must be an int"):
        sandbox.commands.kill("1")  # type: ignore[arg-type]


def test_one_command_may_have_no_time_limit(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=500) as sandbox:
        assert sandbox.commands.run("sleep 1; echo done", timeout_ms=None).stdout == "done\n"
        assert sandbox.commands.run("sleep 5").timed_out
        with sandbox.shell() as shell:
            assert shell.run("sleep 1; echo done", timeout_ms=None).stdout == "done\n"
            assert shell.run("sleep 5").timed_out
        with sandbox.python() as session:
            code = "import time; time.sleep(1); 'done'"
            assert session.run(code, timeout_ms=None).value == "done"
            assert session.run("time.sleep(5)").timed_out
