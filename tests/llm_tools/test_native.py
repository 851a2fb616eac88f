"""Anthropic's own tools: typed entries, and calls as its models make them."""

from __future__ import annotations

from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools

EDITOR = "str_replace_based_edit_tool"
PNG = b"\x89PNG\r\n\x1a\nrest"


def bash(tools: SandboxTools, **given: object) -> dict[str, Any]:
    return tools.handle("bash", given)


def edit(tools: SandboxTools, command: str, path: str, **given: object) -> str:
    answer = tools.handle(EDITOR, {"command": command, "path": path, **given})
    return str(answer["text"] if "text" in answer else answer["error"]["message"])


def test_typed_entries_take_the_place_of_our_tools(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, output_limit=20_000)
    entries = tools.anthropic(native=True)
    assert entries[:2] == [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": EDITOR, "max_characters": 20_000},
    ]
    assert [entry["name"] for entry in entries[2:]] == [
        "sandbox_python",
        "sandbox_start",
        "sandbox_process",
    ]
    assert "sandbox_run" not in str(entries)
    assert "`pip install` in bash adds" in entries[2]["description"]


def test_native_tools_offer_no_more_than_ours(sandbox: Sandbox) -> None:
    only = SandboxTools(sandbox, only=["sandbox_run", "sandbox_read_file"])
    assert [entry["name"] for entry in only.anthropic(native=True)] == ["bash", "sandbox_read_file"]
    refused = only.handle(EDITOR, {"command": "create", "path": "f", "file_text": ""})
    assert refused["error"]["code"] == "UNKNOWN_TOOL"
    reading = SandboxTools(sandbox, only=["sandbox_read_file"])
    assert reading.handle("bash", {"command": "ls"})["error"]["code"] == "UNKNOWN_TOOL"


def test_bash_keeps_its_state_until_a_restart(tools: SandboxTools) -> None:
    bash(tools, command="cd /tmp; x=1")
    assert bash(tools, command="pwd; echo $x")["stdout"] == "/tmp\n1\n"
    assert tools.handle("sandbox_run", {"command": "echo $x"})["stdout"] == "1\n"
    assert bash(tools, restart=True) == {"text": "the shell was restarted"}
    assert bash(tools, command="pwd; echo [$x]")["stdout"] == "/home/user\n[]\n"
    bash(tools, command="x=2")
    assert bash(tools, command="echo [$x]", restart=True)["stdout"] == "[]\n"


def test_a_file_is_created_viewed_and_changed(tools: SandboxTools, sandbox: Sandbox) -> None:
    text = "def f():\n    return 1\n\nprint(f())\n"
    assert edit(tools, "create", "a/f.py", file_text=text) == "File created successfully: a/f.py"
    assert edit(tools, "view", "a/f.py") == (
        "     1\tdef f():\n     2\t    return 1\n     3\t\n     4\tprint(f())\n"
    )
    assert edit(tools, "view", "a/f.py", view_range=[2, 3]) == "     2\t    return 1\n     3\t\n"
    assert edit(tools, "view", "a/f.py", view_range=[4, -1]) == "     4\tprint(f())\n"
    answer = edit(tools, "str_replace", "a/f.py", old_str="return 1", new_str="return 2")
    assert answer == (
        "a/f.py has been edited. The lines around the change:\n"
        "     1\tdef f():\n     2\t    return 2\n     3\t\n     4\tprint(f())"
    )
    assert sandbox.commands.run("python3 a/f.py").stdout == "2\n"
    edit(tools, "str_replace", "a/f.py", old_str="\nprint(f())\n")
    assert sandbox.files.read_text("a/f.py") == "def f():\n    return 2\n"
    assert edit(tools, "create", "a/f.py", file_text="") == "File replaced successfully: a/f.py"
    assert edit(tools, "view", "a/f.py") == "[the file is empty]"


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\ny\n", "a\nx\ny\nb\n"),
        ("a\nb\n", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 2, "x\n", "a\nb\nx\n"),
        ("a\nb", 1, "x", "a\nx\nb"),
        ("", 0, "x\n", "x\n"),
        ("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n"),
    ],
)
def test_text_is_inserted_after_a_line(
    tools: SandboxTools, sandbox: Sandbox, before: str, line: int, text: str, after: str
) -> None:
    sandbox.files.write("f", before)
    assert "has been edited" in edit(tools, "insert", "f", insert_line=line, insert_text=text)
    assert sandbox.files.read_text("f") == after


def test_a_directory_is_shown_two_levels_deep(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p d/e/f .hidden; touch d/a d/e/b d/e/f/c .hidden/x; echo hi > z")
    assert edit(tools, "view", "/home/user") == (
        "Files in /home/user, up to 2 levels deep:\n/home/user/d/\n/home/user/d/a  (0 bytes)\n"
        "/home/user/d/e/\n/home/user/z  (3 bytes)"
    )
    sandbox.commands.run("mkdir many; cd many; touch $(seq 1500)")
    assert edit(tools, "view", "many").endswith("\n[more entries left out]")


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"command": "view", "path": "/nowhere"}, "ENOENT: no such file or directory: /nowhere"),
    ({"command": "view", "path": "bytes"}, "bytes is not UTF-8 text"),
    ({"command": "view", "path": "f", "view_range": [9, 10]}, "but the file has 3 lines"),
    ({"command": "view", "path": "f", "view_range": [2, 1]}, "ends at line 1, before line 2"),
    ({"command": "view", "path": "f", "view_range": [1]}, "must have two numbers"),
    ({"command": "view", "path": "/etc", "view_range": [1, 2]}, "only with a file"),
    ({"command": "create", "path": "g"}, "file_text is missing"),
    ({"command": "create", "path": "/etc", "file_text": ""}, "EISDIR"),
    ({"command": "str_replace", "path": "f", "new_str": "x"}, "old_str is missing"),
    ({"command": "str_replace", "path": "f", "old_str": "zz"}, "No match found for replacement"),
    (
        {"command": "str_replace", "path": "f", "old_str": "x", "new_str": "y"},
        "Found 3 matches for replacement text in f (lines 1, 2, 3). Provide more context",
    ),
    ({"command": "insert", "path": "f", "insert_text": "x"}, "insert_line is missing"),
    ({"command": "insert", "path": "f", "insert_line": 1}, "insert_text is missing"),
    (
        {"command": "insert", "path": "f", "insert_line": 4, "insert_text": "x"},
        "insert_line is 4, but f has only 3 lines",
    ),
    ({"command": "view", "path": "large"}, "large has more than 4194304 bytes"),
]


@pytest.mark.parametrize(("given", "message"), ERRORS)
def test_mistakes_change_nothing_and_say_what_to_do(
    tools: SandboxTools, sandbox: Sandbox, given: dict[str, Any], message: str
) -> None:
    sandbox.files.write("f", "one x\ntwo x\nthree x\n")
    sandbox.files.write("bytes", b"\xff\n")
    sandbox.commands.run("truncate -s 5M large")
    answer = tools.answer_anthropic({"id": "t", "name": EDITOR, "input": given})
    assert answer["is_error"] is True
    assert answer["content"][0]["text"].startswith("Error: ")
    assert message in answer["content"][0]["text"]
    assert sandbox.files.read_text("f") == "one x\ntwo x\nthree x\n"


def test_a_long_file_is_cut_with_a_hint(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, output_limit=200)
    sandbox.files.write("f", "".join(f"line {n}\n" for n in range(1, 101)))
    text = edit(tools, "view", "f")
    assert text.endswith(
        "    13\tline 13\n[cut here: f has 100 lines; use view_range to see lines from 14]"
    )
    assert edit(tools, "view", "f", view_range=[99, 100]).endswith("100\tline 100\n")


def test_an_image_is_shown_to_models_that_see(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.files.write("a.bin", PNG)
    call = {"id": "t", "name": EDITOR, "input": {"command": "view", "path": "a.bin"}}
    text, image = tools.answer_anthropic(call)["content"]
    assert text == {"type": "text", "text": "[an image of 12 bytes]"}
    assert image["source"]["media_type"] == "image/png"
    assert "is not UTF-8 text" in edit(tools, "view", "a.bin")
