"""The tools with which a model copies its sandbox, goes back, and tries several ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools
from wasmsand.tools.copies import SNAPSHOTS_MAX

NAMES = ["sandbox_snapshot", "sandbox_restore", "sandbox_fork"]


@pytest.fixture
def tools(sandbox: Sandbox) -> Iterator[SandboxTools]:
    made = SandboxTools(sandbox, max_copies=3)
    yield made
    made.end_copies()


def said(tools: SandboxTools, command: str, **where: object) -> str:
    answer: dict[str, Any] = tools.handle("sandbox_run", {"command": command, **where})
    assert "error" not in answer, answer
    return str(answer["stdout"])


def test_the_tools_are_offered_only_with_copies(sandbox: Sandbox, tools: SandboxTools) -> None:
    plain = SandboxTools(sandbox)
    assert not set(NAMES) & {tool.name for tool in plain.definitions}
    assert "copy" not in plain.anthropic()[0]["input_schema"]["properties"]
    assert plain.handle("sandbox_fork", {"name": "a"})["error"]["code"] == "UNKNOWN_TOOL"
    assert [tool.name for tool in tools.definitions][-3:] == NAMES
    for tool in tools.anthropic():
        assert "copy" in tool["input_schema"]["properties"]
        assert "copy" not in tool["input_schema"].get("required", ())


def test_a_model_goes_back_to_a_snapshot(tools: SandboxTools) -> None:
    said(tools, "echo one > a")
    assert tools.handle("sandbox_snapshot", {"name": "before"}) == {"snapshots": ["before"]}
    said(tools, "rm a; echo two > b")
    for _ in range(2):
        answer = tools.handle("sandbox_restore", {"snapshot": "before"})
        assert answer == {"snapshots": ["before"], "copies": []}
        assert said(tools, "cat a; ls") == "one\na\n"
        said(tools, "rm a")


def test_a_model_tries_several_ways_and_keeps_one(tools: SandboxTools) -> None:
    said(tools, "echo start > file")
    for number in range(3):
        answer = tools.handle("sandbox_fork", {"name": f"try-{number}"})
    assert answer == {"copies": ["try-0", "try-1", "try-2"]}
    for number in range(3):
        said(tools, f"echo {number} >> file", copy=f"try-{number}")
        tools.handle("sandbox_write_file", {"path": "x", "content": "y", "copy": f"try-{number}"})
    read = tools.handle("sandbox_read_file", {"path": "file", "copy": "try-2"})
    assert read["content"] == "start\n2\n"
    code = {"code": "print(open('file').read())", "copy": "try-1"}
    assert tools.handle("sandbox_python", code)["stdout"] == "start\n1\n\n"
    assert said(tools, "cat file; ls") == "start\nfile\n"
    refused = tools.handle("sandbox_fork", {"name": "try-3"})["error"]
    assert refused["code"] == "INVALID_INPUT"
    assert "there are 3 copies already" in refused["message"]
    tools.handle("sandbox_fork", {"name": "try-0", "copy": "try-1"})  # replaces the first
    assert said(tools, "cat file", copy="try-0") == "start\n1\n"
    answer = tools.handle("sandbox_restore", {"snapshot": "try-2"})
    assert answer == {"snapshots": [], "copies": ["try-1", "try-0"]}
    assert said(tools, "cat file") == "start\n2\n"
    assert (
        "no copy 'try-2'"
        in tools.handle("sandbox_run", {"command": ":", "copy": "try-2"})["error"]["message"]
    )


def test_a_running_command_is_named_or_left_out(sandbox: Sandbox, tools: SandboxTools) -> None:
    with sandbox.commands.start("sleep 100"):
        answer = tools.handle("sandbox_snapshot", {"name": "a"})
        assert "a command runs" in answer["error"]["message"]
        given = {"name": "a", "leave_out_running": True}
        assert tools.handle("sandbox_snapshot", given) == {"snapshots": ["a"]}


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("sandbox_snapshot", {}, "name is missing"),
        ("sandbox_snapshot", {"name": ""}, "must not be empty"),
        ("sandbox_snapshot", {"name": "a/b"}, "a name has 1 to 255 characters"),
        ("sandbox_snapshot", {"name": "x" * 256}, "a name has 1 to 255 characters"),
        ("sandbox_snapshot", {"name": "a", "copy": "none"}, "there is no copy 'none'"),
        ("sandbox_fork", {"name": "a\0"}, "a name has 1 to 255 characters"),
        ("sandbox_fork", {"name": 5}, "name must be a string"),
        ("sandbox_restore", {"snapshot": "none"}, "there is no snapshot 'none'"),
        ("sandbox_restore", {"snapshot": "x" * 1000}, "there is no snapshot"),
        ("sandbox_run", {"command": "ls", "copy": "none"}, "there is no copy 'none'"),
    ],
)
def test_wrong_input_is_answered(
    tools: SandboxTools, tool: str, given: dict[str, object], message: str
) -> None:
    error = tools.handle(tool, given)["error"]
    assert error["code"] == "INVALID_INPUT"
    assert message in error["message"]
    assert len(error["message"]) < 500


def test_snapshots_are_bounded(tools: SandboxTools) -> None:
    for number in range(SNAPSHOTS_MAX):
        assert "error" not in tools.handle("sandbox_snapshot", {"name": str(number)})
    assert (
        "snapshots already"
        in tools.handle("sandbox_snapshot", {"name": "more"})["error"]["message"]
    )
    assert "error" not in tools.handle("sandbox_snapshot", {"name": "3"})


def test_copies_end_when_the_host_says_so(sandbox: Sandbox, tools: SandboxTools) -> None:
    tools.handle("sandbox_fork", {"name": "a"})
    tools.end_copies()
    assert (
        "no copy" in tools.handle("sandbox_run", {"command": ":", "copy": "a"})["error"]["message"]
    )
    assert sandbox.commands.run("echo alive").stdout == "alive\n"
