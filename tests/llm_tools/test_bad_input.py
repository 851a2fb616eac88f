"""Wrong input of a model is answered with an error that says what to send instead."""

from __future__ import annotations

from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools

EDIT = {"path": "f", "old_string": "x", "new_string": "y"}

TABLE: list[tuple[object, object, str, str]] = [
    ("sandbox_fly", {}, "UNKNOWN_TOOL", "unknown tool 'sandbox_fly'; use one of: sandbox_run"),
    (None, {}, "UNKNOWN_TOOL", "unknown tool None"),
    ("x" * 10_000, {}, "UNKNOWN_TOOL", "unknown tool 'xxx"),
    ("sandbox_run", None, "INVALID_INPUT", "the input must be a JSON object, not null"),
    ("sandbox_run", "ls", "INVALID_INPUT", "the input must be a JSON object, not a string"),
    ("sandbox_run", ["ls"], "INVALID_INPUT", "the input must be a JSON object, not an array"),
    ("sandbox_run", {}, "INVALID_INPUT", "command is missing: A script for bash."),
    ("sandbox_run", {"command": None}, "INVALID_INPUT", "command is missing"),
    ("sandbox_run", {"command": ""}, "INVALID_INPUT", "command must not be empty"),
    ("sandbox_run", {"command": 5}, "INVALID_INPUT", "command must be a string, not a number"),
    (
        "sandbox_run",
        {"command": ["ls"]},
        "INVALID_INPUT",
        "command must be a string, not an array",
    ),
    ("sandbox_run", {"command": "a\0b"}, "INVALID_INPUT", "command must not contain a NUL"),
    ("sandbox_run", {"command": "\ud800"}, "INVALID_INPUT", "command contains half of a surrogate"),
    ("sandbox_start", {"command": ":" + " " * 200_000}, "E2BIG", "an argument is too long"),
    ("sandbox_run", {"command": "x" * 1_048_577}, "INVALID_INPUT", "at most 1048576 are possible"),
    ("sandbox_python", {"code": "x" * 1_048_577}, "INVALID_INPUT", "at most 1048576 are possible"),
    ("sandbox_run", {"command": ":", "restart": "yes"}, "INVALID_INPUT", "must be true or false"),
    ("sandbox_run", {"command": ":", "cwd": "/tmp"}, "INVALID_INPUT", "unknown parameter 'cwd'"),
    ("sandbox_run", {"cmd": "ls"}, "INVALID_INPUT", "unknown parameter 'cmd'; use one of: com"),
    ("sandbox_run", {1: "ls"}, "INVALID_INPUT", "unknown parameter 1"),
    ("sandbox_run", {"command": ":", "stdin": 5}, "INVALID_INPUT", "stdin must be a string"),
    ("sandbox_start", {"command": ":", "cwd": ""}, "INVALID_INPUT", "cwd must not be empty"),
    ("sandbox_start", {"command": ":", "cwd": "/nowhere"}, "ENOENT", "/nowhere"),
    ("sandbox_start", {"command": ":", "cwd": "a\0"}, "INVALID_INPUT", "must not contain a NUL"),
    ("sandbox_start", {"command": ":", "env": "A=b"}, "INVALID_INPUT", "env must be an object"),
    (
        "sandbox_start",
        {"command": ":", "env": {"A": 1}},
        "INVALID_INPUT",
        "env['A'] must be a string",
    ),
    ("sandbox_start", {"command": ":", "env": {"A=": "b"}}, "INVALID_INPUT", "without '='"),
    (
        "sandbox_start",
        {"command": ":", "env": {str(n): "" for n in range(1001)}},
        "INVALID_INPUT",
        "env has 1001 entries",
    ),
    (
        "sandbox_start",
        {"command": ":", "env": {"A": "x" * 131_072}},
        "INVALID_INPUT",
        "at most 131",
    ),
    ("sandbox_process", {"id": "c9"}, "INVALID_INPUT", "there is no command 'c9'; commands: none"),
    ("sandbox_process", {"id": ""}, "INVALID_INPUT", "id must not be empty"),
    ("sandbox_process", {"kill": True}, "INVALID_INPUT", "which command of sandbox_start is meant"),
    ("sandbox_process", {"wait_ms": 60_001}, "INVALID_INPUT", "wait_ms must be at most 60000"),
    ("bash", {}, "INVALID_INPUT", "command is missing; it is needed unless restart is true"),
    ("bash", {"command": ["ls"]}, "INVALID_INPUT", "command must be a string"),
    ("str_replace_based_edit_tool", {"path": "f"}, "INVALID_INPUT", "command is missing"),
    (
        "str_replace_based_edit_tool",
        {"command": "undo_edit", "path": "f"},
        "INVALID_INPUT",
        'command must be "view" or "create" or "str_replace" or "insert"',
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "f", "view_range": [1, "x"]},
        "INVALID_INPUT",
        "view_range must be an array of integers",
    ),
    (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "f", "view_range": [1] * 17},
        "INVALID_INPUT",
        "view_range has 17 items",
    ),
    ("sandbox_run", {"command": ":", "timeout_ms": 0}, "INVALID_INPUT", "must be at least 1"),
    ("sandbox_run", {"command": ":", "timeout_ms": 10**9}, "INVALID_INPUT", "at most 600000"),
    ("sandbox_run", {"command": ":", "timeout_ms": "5"}, "INVALID_INPUT", "must be an integer"),
    ("sandbox_run", {"command": ":", "timeout_ms": 1.5}, "INVALID_INPUT", "must be an integer"),
    ("sandbox_run", {"command": ":", "timeout_ms": True}, "INVALID_INPUT", "must be an integer"),
    ("sandbox_run", {"command": ":", "timeout_ms": float("nan")}, "INVALID_INPUT", "an integer"),
    ("sandbox_python", {}, "INVALID_INPUT", "code is missing"),
    ("sandbox_read_file", {}, "INVALID_INPUT", "path is missing"),
    ("sandbox_read_file", {"path": "/nowhere"}, "ENOENT", "no such file or directory: /nowhere"),
    ("sandbox_read_file", {"path": "/etc"}, "EISDIR", "is a directory"),
    ("sandbox_read_file", {"path": "f/.."}, "ENOTDIR", "not a directory"),
    ("sandbox_read_file", {"path": "../../../../../../etc/shadow"}, "ENOENT", "etc/shadow"),
    ("sandbox_read_file", {"path": "a\0b"}, "INVALID_INPUT", "path must not contain a NUL"),
    ("sandbox_read_file", {"path": "n" * 300}, "ENAMETOOLONG", "ENAMETOOLONG"),
    ("sandbox_read_file", {"path": "n/" * 5000}, "ENAMETOOLONG", "ENAMETOOLONG"),
    ("sandbox_read_file", {"path": "f", "offset": 0}, "INVALID_INPUT", "offset must be at least 1"),
    ("sandbox_read_file", {"path": "f", "offset": 9}, "INVALID_INPUT", "the file has only 3 lines"),
    ("sandbox_read_file", {"path": "f", "limit": -1}, "INVALID_INPUT", "limit must be at least 1"),
    ("sandbox_read_file", {"path": "bin", "limit": 1}, "INVALID_INPUT", "is not UTF-8 text"),
    ("sandbox_write_file", {"path": "g"}, "INVALID_INPUT", "content is missing"),
    ("sandbox_write_file", {"path": "", "content": ""}, "INVALID_INPUT", "path must not be empty"),
    ("sandbox_write_file", {"path": "/etc", "content": ""}, "EISDIR", "is a directory"),
    ("sandbox_write_file", {"path": "f/g", "content": ""}, "ENOTDIR", "not a directory"),
    (
        "sandbox_write_file",
        {"path": "g", "content": "?", "encoding": "base64"},
        "INVALID_INPUT",
        "content is not valid base64",
    ),
    (
        "sandbox_write_file",
        {"path": "g", "content": "", "encoding": "latin-1"},
        "INVALID_INPUT",
        'encoding must be "utf-8" or "base64", not \'latin-1\'',
    ),
    ("sandbox_write_file", {"path": "g", "content": "x" * 2_000_000}, "ENOSPC", "fs_limit_bytes"),
    ("sandbox_list_files", {"path": "f"}, "ENOTDIR", "not a directory"),
    ("sandbox_list_files", {"path": "/nowhere"}, "ENOENT", "no such file"),
    ("sandbox_edit_file", {"path": "f", "old_string": "x"}, "INVALID_INPUT", "new_string is miss"),
    ("sandbox_edit_file", {**EDIT, "path": "/nowhere"}, "ENOENT", "no such file"),
    ("sandbox_edit_file", {**EDIT, "old_string": ""}, "INVALID_INPUT", "must not be empty"),
    ("sandbox_edit_file", {**EDIT, "new_string": "x"}, "INVALID_INPUT", "are the same"),
    ("sandbox_edit_file", {**EDIT, "old_string": "zzz"}, "INVALID_INPUT", "read the file and copy"),
    (
        "sandbox_edit_file",
        {**EDIT, "old_string": "line two  x"},
        "INVALID_INPUT",
        "differs only in white space begins in line 2",
    ),
    (
        "sandbox_edit_file",
        EDIT,
        "INVALID_INPUT",
        "old_string occurs 3 times in f (lines 1, 2, 3): add surrounding text",
    ),
    ("sandbox_edit_file", {**EDIT, "replace_all": 1}, "INVALID_INPUT", "must be true or false"),
]


@pytest.mark.parametrize(("name", "given", "code", "message"), TABLE)
def test_bad_input(name: Any, given: object, code: str, message: str) -> None:
    with Sandbox(fs_limit_bytes=1_000_000) as sandbox:
        sandbox.files.write("f", "line one x\nline two x\nline three x\n")
        sandbox.files.write("bin", b"\xff\n")
        before = sandbox.files.read("f")
        error = SandboxTools(sandbox).handle(name, given)["error"]
        assert error["code"] == code
        assert message in error["message"]
        assert len(error["message"]) < 12_000
        assert sandbox.files.read("f") == before
        assert [entry.name for entry in sandbox.files.list()] == ["bin", "f"]
        assert len(sandbox.commands.list()) <= 1  # at most the shell


def test_a_killed_sandbox(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.kill()
    for name, given in [
        ("sandbox_run", {"command": ":"}),
        ("sandbox_read_file", {"path": "f"}),
        ("sandbox_write_file", {"path": "f", "content": ""}),
        ("sandbox_list_files", {}),
        ("sandbox_edit_file", EDIT),
        ("sandbox_python", {"code": "1"}),
        ("sandbox_start", {"command": ":"}),
        ("bash", {"restart": True}),
    ]:
        assert tools.handle(name, given)["error"]["code"] == "SANDBOX_CLOSED"


@pytest.mark.parametrize(
    ("limit", "kind"), [(0, ValueError), (99, ValueError), ("9", TypeError), (True, TypeError)]
)
def test_bad_output_limit(sandbox: Sandbox, limit: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="output_limit must be"):
        SandboxTools(sandbox, output_limit=limit)
