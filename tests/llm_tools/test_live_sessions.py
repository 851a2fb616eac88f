"""The shell and the interpreter of the tools keep their state, and say when it is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools

LOST_SHELL = "the shell has ended: its variables and functions are lost"
LOST_PYTHON = "the interpreter has ended: its variables are lost"


def run(tools: SandboxTools, command: str, **given: object) -> dict[str, Any]:
    return tools.handle("sandbox_run", {"command": command, **given})


def python(tools: SandboxTools, code: str, **given: object) -> dict[str, Any]:
    return tools.handle("sandbox_python", {"code": code, **given})


def test_directory_variables_functions_and_jobs_persist(tools: SandboxTools) -> None:
    run(tools, "mkdir d; cd d; name=world; export SHOWN=yes; greet() { echo hello $1; }")
    answer = run(tools, "pwd; greet $name; printenv SHOWN")
    assert answer["stdout"] == "/home/user/d\nhello world\nyes\n"
    run(tools, "sleep 1000 & job=$!")
    assert run(tools, "kill -0 $job && echo alive; kill $job")["stdout"] == "alive\n"


def test_a_restart_gives_a_new_shell(tools: SandboxTools) -> None:
    run(tools, "cd /tmp; name=world; echo kept > /home/user/file; sleep 1000 &")
    answer = run(tools, 'echo "[$name]"; pwd; cat file; pgrep sleep', restart=True)
    assert answer["stdout"] == "[]\n/home/user\nkept\n"
    assert "note" not in answer


def test_python_variables_persist_until_a_reset(tools: SandboxTools) -> None:
    python(tools, "import math\nx = 20\ndef double(n): return 2 * n")
    assert python(tools, "double(x) + math.floor(2.5)")["results"] == [{"text": "42"}]
    answer = python(tools, "x", reset=True)
    assert answer["exit_code"] == 1
    assert "NameError: name 'x' is not defined" in answer["stderr"]
    assert "note" not in answer


def test_a_timeout_keeps_the_state_and_says_so(tools: SandboxTools) -> None:
    run(tools, "name=world")
    slow = run(tools, "sleep 60", timeout_ms=300)
    assert slow["exit_code"] == 124
    assert slow["note"] == (
        "interrupted: it timed out; set a longer timeout_ms if it needs more time; the shell goes "
        "on: its variables and functions are kept"
    )
    assert run(tools, "echo $name")["stdout"] == "world\n"
    python(tools, "x = 1")
    slow = python(tools, "while True: pass", timeout_ms=300)
    assert slow["exit_code"] == 124
    assert slow["note"].endswith("the interpreter goes on: its variables are kept")
    assert python(tools, "x")["results"] == [{"text": "1"}]


@pytest.mark.parametrize(
    ("command", "status"), [("exit 3", 3), ("set -e; false; echo no", 1), ("exec true", 0)]
)
def test_a_command_that_ends_the_shell_says_that_its_state_is_lost(
    tools: SandboxTools, command: str, status: int
) -> None:
    run(tools, "name=world")
    answer = run(tools, command)
    assert answer["exit_code"] == status
    assert answer["note"].startswith(LOST_SHELL)
    after = run(tools, 'echo "[$name]"')
    assert (after["stdout"], "note" in after) == ("[]\n", False)


def test_code_that_ends_the_interpreter_says_that_variables_are_lost(tools: SandboxTools) -> None:
    python(tools, "x = 1")
    answer = python(tools, "import os; os._exit(7)")
    assert answer["exit_code"] == 7
    assert answer["note"].startswith(LOST_PYTHON)
    after = python(tools, "'x' in globals()")
    assert (after["results"], "note" in after) == ([{"text": "False"}], False)


def test_sys_exit_does_not_end_the_interpreter(tools: SandboxTools) -> None:
    assert python(tools, "x = 1; import sys; sys.exit(3)")["exit_code"] == 3
    assert python(tools, "x")["results"] == [{"text": "1"}]


def test_sessions_that_were_killed_between_calls_are_replaced(tools: SandboxTools) -> None:
    python(tools, "x = 1")
    run(tools, "pkill -9 python3; name=world")
    answer = python(tools, "print(6 * 7)")
    assert answer["stdout"] == "42\n"
    assert answer["note"] == ("new interpreter: the earlier one had ended, its variables are lost")
    assert "note" not in python(tools, "pass")
    python(tools, "import os\nos.system('pkill -9 bash')")
    answer = run(tools, "echo again")
    assert answer["stdout"] == "again\n"
    assert answer["note"] == (
        "new shell in /home/user: the earlier one had ended, its variables and functions are lost"
    )


def test_too_much_output_is_interrupted_and_the_state_is_kept() -> None:
    with Sandbox(max_output_bytes=10_000) as sandbox:
        tools = SandboxTools(sandbox)
        run(tools, "name=world")
        answer = run(tools, "yes")
        assert "it printed more than the sandbox's max_output_bytes" in answer["note"]
        assert "are kept" in answer["note"]
        assert run(tools, "echo $name")["stdout"] == "world\n"


def test_calls_at_the_same_time_take_turns(tools: SandboxTools) -> None:
    script = "n=$((n + 1)); old=$n; sleep 0.05; [ $old = $n ] || echo mixed"
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(run(tools, script))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer["stdout"] for answer in answers] == [""] * 6
    assert run(tools, "echo $n")["stdout"] == "6\n"


def test_a_call_does_not_wait_longer_than_it_may_take(tools: SandboxTools) -> None:
    started = threading.Event()

    class Observer:
        def started(self, command: object) -> None:
            started.set()

        def printed(self, text: str) -> None:
            pass

    long = threading.Thread(
        target=lambda: tools.call(
            "sandbox_run", {"command": "sleep 60", "timeout_ms": 4_000}, observer=Observer()
        )
    )
    long.start()
    started.wait(20)
    began = time.monotonic()
    error = run(tools, "echo hi", timeout_ms=200)["error"]
    assert time.monotonic() - began < 3
    assert error["code"] == "BUSY"
    assert "use sandbox_start for commands that run at the same time" in error["message"]
    assert python(tools, "1 + 1")["results"] == [{"text": "2"}]  # which has its own turns
    long.join()
    assert run(tools, "echo hi")["stdout"] == "hi\n"


def test_copies_have_the_state_of_both_and_go_their_own_ways(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, max_copies=2)
    run(tools, "cd /tmp; name=start")
    python(tools, "x = [1]")
    tools.handle("sandbox_fork", {"name": "try"})
    run(tools, "name=other", copy="try")
    python(tools, "x.append(2)", copy="try")
    assert run(tools, "echo $name; pwd")["stdout"] == "start\n/tmp\n"
    assert run(tools, "echo $name; pwd", copy="try")["stdout"] == "other\n/tmp\n"
    assert python(tools, "x")["results"] == [{"text": "[1]"}]
    tools.handle("sandbox_restore", {"snapshot": "try"})
    assert run(tools, "echo $name")["stdout"] == "other\n"
    assert python(tools, "x")["results"] == [{"text": "[1, 2]"}]
    tools.close()


def test_a_snapshot_brings_back_the_sessions_that_it_had(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, max_copies=1)
    tools.handle("sandbox_snapshot", {"name": "empty"})
    run(tools, "name=first")
    python(tools, "x = 1")
    tools.handle("sandbox_snapshot", {"name": "first"})
    run(tools, "name=second", restart=True)
    python(tools, "x = 2", reset=True)
    tools.handle("sandbox_restore", {"snapshot": "first"})
    assert run(tools, "echo $name")["stdout"] == "first\n"
    assert python(tools, "x")["results"] == [{"text": "1"}]
    tools.handle("sandbox_restore", {"snapshot": "empty"})
    answer = run(tools, 'echo "[$name]"')
    assert answer["stdout"] == "[]\n"


def test_a_shell_that_a_snapshot_left_out_is_missed(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, max_copies=1)
    run(tools, "name=first; sleep 1000 &")
    refused = tools.handle("sandbox_snapshot", {"name": "a"})["error"]
    assert "it has started what still runs: " in refused["message"]
    assert refused["message"].endswith("end it, or set leave_out_running to true")
    tools.handle("sandbox_snapshot", {"name": "a", "leave_out_running": True})
    tools.handle("sandbox_restore", {"snapshot": "a"})
    answer = run(tools, 'echo "[$name]"')
    assert answer["stdout"] == "[]\n"
    assert answer["note"].startswith("new shell: the earlier one had ended")


def test_closing_the_tools_ends_what_they_have_started(
    tools: SandboxTools, sandbox: Sandbox
) -> None:
    run(tools, "name=first; sleep 1000 &")
    python(tools, "x = 1")
    tools.handle("sandbox_start", {"command": "sleep 1000"})
    assert len(sandbox.commands.list()) >= 4
    tools.close()
    deadline = time.monotonic() + 20
    while sandbox.commands.list() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert sandbox.commands.list() == []
    assert run(tools, 'echo "[$name]"')["stdout"] == "[]\n"


def test_what_the_sandbox_did_to_a_command_is_told() -> None:
    with Sandbox(network=["allowed.test"]) as sandbox:
        tools = SandboxTools(sandbox)
        for _ in range(2):
            answer = run(tools, "exec 3<>/dev/tcp/other.org/80")
            assert "to allow it, add 'other.org' to network.allow" in answer["stderr"]
        assert run(tools, "echo hi")["stderr"] == ""
        code = "import socket; socket.getaddrinfo('other.org', 80)"
        assert "add 'other.org' to network.allow" in python(tools, code)["stderr"]


def test_the_tools_of_a_sandbox_in_another_process() -> None:
    with Sandbox(isolation="process") as sandbox:
        tools = SandboxTools(sandbox, max_copies=1)
        assert "Run Python 3" in tools.definitions[1].description
        run(tools, "cd /tmp; name=world")
        python(tools, "x = 1")
        tools.handle("sandbox_fork", {"name": "copy"})
        assert run(tools, "pwd; echo $name", copy="copy")["stdout"] == "/tmp\nworld\n"
        assert python(tools, "x", copy="copy")["results"] == [{"text": "1"}]
        slow = run(tools, "sleep 60", timeout_ms=300)
        assert "are kept" in slow["note"]
        assert run(tools, "exit 3")["note"].startswith(LOST_SHELL)
        tools.handle("sandbox_start", {"command": "cat -u"})
        seen = tools.handle("sandbox_process", {"id": "c1", "input": "hi\n", "wait_ms": 20_000})
        assert seen["output"] == "hi\n"
        tools.close()


def test_the_shell_after_one_that_has_ended_starts_where_that_one_was(
    tools: SandboxTools,
) -> None:
    run(tools, "mkdir -p d/e; cd d/e")
    answer = run(tools, "exit 1")
    assert answer["note"].endswith("starts a new one in /home/user/d/e")
    assert run(tools, "pwd")["stdout"] == "/home/user/d/e\n"
    run(tools, "cd; rm -r d; mkdir d; cd d; exit 1")
    python(tools, "import os; os.rmdir('d')")
    assert run(tools, "pwd")["stdout"] == "/home/user\n"
    run(tools, "cd /tmp")
    python(tools, "import os; os.system('pkill -9 bash')")
    answer = run(tools, "pwd")
    assert answer["stdout"] == "/tmp\n"
    assert answer["note"].startswith("new shell in /tmp: the earlier one had ended")
    assert run(tools, "pwd", restart=True)["stdout"] == "/home/user\n"


def test_a_model_is_warned_before_it_runs_out_of_processes() -> None:
    with Sandbox(max_processes=20) as sandbox:
        tools = SandboxTools(sandbox)
        assert "note" not in run(tools, "for i in $(seq 10); do sleep 1000 & done")
        answer = run(tools, "for i in $(seq 8); do sleep 1000 & done")
        assert answer["note"].startswith("19 of 20 processes are in use: end background jobs")
        assert run(tools, "ls /etc/hostname", restart=True)["stdout"] == "/etc/hostname\n"


def test_a_stored_sandbox_goes_on_where_the_model_was(tmp_path: Path) -> None:
    with Sandbox.open("agent", store=tmp_path) as sandbox:
        tools = SandboxTools(sandbox)
        run(tools, "cd /tmp; name=world")
        python(tools, "x = [1, 2]")
    with Sandbox.open("agent", store=tmp_path) as sandbox:
        tools = SandboxTools(sandbox, continue_sessions=True)
        assert run(tools, "pwd; echo $name")["stdout"] == "/tmp\nworld\n"
        assert python(tools, "x")["results"] == [{"text": "[1, 2]"}]
    with Sandbox() as empty:
        tools = SandboxTools(empty, continue_sessions=True)
        answer = run(tools, "pwd")
        assert (answer["stdout"], "note" in answer) == ("/home/user\n", False)
