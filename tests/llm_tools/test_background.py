"""Commands that a model starts and looks after."""

from __future__ import annotations

import time
from typing import Any

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools
from wasmsand.tools.background import REMEMBERED_MAX, RUNNING_MAX, UNREAD_MAX


def start(tools: SandboxTools, command: str, **given: object) -> str:
    answer = tools.handle("sandbox_start", {"command": command, **given})
    assert set(answer) == {"id", "pid"}, answer
    return str(answer["id"])


def process(tools: SandboxTools, name: str, **given: object) -> dict[str, Any]:
    return tools.handle("sandbox_process", {"id": name, **given})


def test_a_command_is_started_watched_and_ends_by_itself(tools: SandboxTools) -> None:
    name = start(tools, "echo one; sleep 0.5; echo two >&2; exit 3")
    assert process(tools, name) == {"id": name, "running": True, "output": "one\n"}
    seen = process(tools, name, wait_ms=20_000)
    assert seen["output"] == "two\n"
    ended = process(tools, name, wait_ms=20_000)
    assert {**ended, "output": ""} == {
        "id": name, "running": False, "exit_code": 3, "output": ""
    }  # fmt: skip
    assert process(tools, name)["exit_code"] == 3


def test_input_is_written_and_answered(tools: SandboxTools) -> None:
    name = start(tools, "while read line; do echo got $line; done; echo end")
    assert process(tools, name, input="a\n", wait_ms=20_000)["output"] == "got a\n"
    assert process(tools, name, input="b\n", wait_ms=20_000)["output"] == "got b\n"
    ended = process(tools, name, end_input=True, wait_ms=20_000)
    assert (ended["output"], ended["running"], ended["exit_code"]) == ("end\n", False, 0)
    late = process(tools, name, input="c\n")
    assert late["note"].startswith("the input was not written: ")


def test_a_command_that_does_not_read_is_reported(tools: SandboxTools) -> None:
    name = start(tools, "sleep 1000")
    answer = process(tools, name, input="x" * 2_000_000, wait_ms=0)
    assert "bytes of the input; it does not read" in answer["note"]
    process(tools, name, kill=True)


def test_a_command_is_killed_with_everything_it_started(
    tools: SandboxTools, sandbox: Sandbox
) -> None:
    name = start(tools, "sleep 1000 & sleep 1000 & echo ready; wait; echo no")
    assert process(tools, name, wait_ms=20_000)["output"] == "ready\n"
    assert len(sandbox.commands.list()) == 3
    answer = process(tools, name, kill=True)
    assert (answer["running"], answer["exit_code"], answer["output"]) == (False, 137, "")
    assert sandbox.commands.list() == []
    assert process(tools, name, kill=True)["running"] is False


def test_a_server_is_reached_from_the_shell(tools: SandboxTools) -> None:
    name = start(tools, "python3 -m http.server 8000", cwd="/etc", env={"A": "b"})
    answer = tools.handle(
        "sandbox_run", {"command": "curl -s --retry 9 --retry-connrefused localhost:8000/hostname"}
    )
    assert answer["stdout"].strip()
    assert "GET /hostname" in process(tools, name)["output"]
    assert process(tools, name, kill=True)["running"] is False


def test_of_much_output_the_end_is_kept_and_the_rest_counted(tools: SandboxTools) -> None:
    name = start(tools, "seq 1000000; echo end")
    deadline = time.monotonic() + 60
    while tools.handle("sandbox_process", {})["commands"][0]["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    long = SandboxTools.__new__(SandboxTools)
    long.__dict__.update(tools.__dict__, _output_limit=10_000_000)
    output = process(long, name)["output"]
    whole = "".join(f"{n}\n" for n in range(1, 1_000_001)) + "end\n"
    note, rest = output.split("\n", 1)
    assert note == f"[... {len(whole) - UNREAD_MAX} characters omitted ...]"
    assert rest == whole[-UNREAD_MAX:]


def test_the_number_of_commands_is_bounded(tools: SandboxTools) -> None:
    names = [start(tools, "sleep 1000") for _ in range(RUNNING_MAX)]
    error = tools.handle("sandbox_start", {"command": "sleep 1000"})["error"]
    assert error["code"] == "INVALID_INPUT"
    assert f"{RUNNING_MAX} commands are running already: c1, c2" in error["message"]
    for name in names:
        process(tools, name, kill=True)
    for _ in range(REMEMBERED_MAX):
        process(tools, start(tools, ":"), wait_ms=20_000)
    listed = tools.handle("sandbox_process", {})["commands"]
    assert len(listed) == REMEMBERED_MAX
    assert listed[-1] == {
        "id": f"c{RUNNING_MAX + REMEMBERED_MAX}",
        "running": False,
        "exit_code": 0,
        "command": ":",
    }


def test_a_restored_sandbox_has_no_commands_of_later(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, max_copies=1)
    tools.handle("sandbox_snapshot", {"name": "before"})
    name = start(tools, "sleep 1000")
    refused = tools.handle("sandbox_fork", {"name": "copy"})["error"]
    assert "sleep 1000" in refused["message"]
    tools.handle("sandbox_restore", {"snapshot": "before"})
    assert process(tools, name, wait_ms=20_000)["running"] is False
    assert tools.handle("sandbox_run", {"command": "pgrep sleep"})["stdout"] == ""


def test_commands_of_a_killed_sandbox_have_ended(tools: SandboxTools, sandbox: Sandbox) -> None:
    name = start(tools, "sleep 1000")
    sandbox.kill()
    assert process(tools, name, wait_ms=20_000)["running"] is False
    error = process(tools, name, input="x")
    assert error.get("error", {}).get("code") == "SANDBOX_CLOSED"
