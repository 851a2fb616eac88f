"""Each tool does what its description says, and returns plain JSON."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from wasmsand import CommandError, NotFoundError, Sandbox
from wasmsand.tools import Killable, SandboxTools, UnknownTool
from wasmsand.tools.editing import select_lines


def test_run_returns_the_documented_fields(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.files.write("sales_q1.csv", "")
    sandbox.files.write("sales_q2.csv", "")
    result = tools.handle(
        "sandbox_run", {"command": "find /home/user -name '*.csv' | sort | head -5"}
    )
    milliseconds = result.pop("execution_time_ms")
    assert isinstance(milliseconds, int)
    assert milliseconds >= 0
    assert result == {
        "exit_code": 0,
        "stdout": "/home/user/sales_q1.csv\n/home/user/sales_q2.csv\n",
        "stderr": "",
    }


def test_a_command_that_fails_is_a_result(tools: SandboxTools) -> None:
    result = tools.handle("sandbox_run", {"command": "echo out; echo err >&2; exit 3"})
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n")


def test_run_takes_input(tools: SandboxTools) -> None:
    result = tools.handle("sandbox_run", {"command": "cat; read x || echo none", "stdin": "in\n"})
    assert result["stdout"] == "in\nnone\n"
    assert tools.handle("sandbox_run", {"command": "wc -c"})["stdout"] == "0\n"


def test_a_long_script_runs(tools: SandboxTools) -> None:
    script = "# " + "x" * 500_000 + "\necho end"
    assert tools.handle("sandbox_run", {"command": script})["stdout"] == "end\n"


def test_a_timeout_is_a_result_with_a_note(tools: SandboxTools) -> None:
    result = tools.handle("sandbox_run", {"command": "echo first; sleep 60", "timeout_ms": 300})
    assert result["exit_code"] == 124
    assert result["stdout"] == "first\n"
    assert "longer timeout_ms" in result["note"]


def test_too_much_output_is_a_result_with_a_note() -> None:
    with Sandbox(max_output_bytes=10_000) as sandbox:
        result = SandboxTools(sandbox).handle("sandbox_run", {"command": "yes"})
    assert "max_output_bytes" in result["note"]


def test_null_means_the_default(tools: SandboxTools) -> None:
    result = tools.handle(
        "sandbox_run", {"command": "pwd", "stdin": None, "restart": None, "timeout_ms": None}
    )
    assert result["stdout"] == "/home/user\n"


def test_a_whole_number_with_a_point_is_an_integer(tools: SandboxTools) -> None:
    assert tools.handle("sandbox_run", {"command": ":", "timeout_ms": 5000.0})["exit_code"] == 0


def test_python_runs_code(tools: SandboxTools) -> None:
    result = tools.handle("sandbox_python", {"code": "import sys\nprint(sys.version_info[0])"})
    assert (result["exit_code"], result["stdout"]) == (0, "3\n")
    failed = tools.handle("sandbox_python", {"code": "1 / 0"})
    assert failed["exit_code"] == 1
    assert "ZeroDivisionError" in failed["stderr"]


def test_python_returns_results_and_saves_images(tools: SandboxTools, sandbox: Sandbox) -> None:
    code = (
        "from IPython.display import HTML, Image, Markdown\n"
        "png = b'\\x89PNG\\r\\n\\x1a\\nrest'\n"
        "display(Markdown('*m*'), HTML('<b>'), Image(data=png), [1, 2])\n'value'"
    )
    result = tools.handle("sandbox_python", {"code": code})
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (0, "", "")
    markdown, html, image, plain, value = result["results"]
    assert (markdown, html) == ({"text": "*m*"}, {"text": "<b>"})
    assert (plain, value) == ({"text": "[1, 2]"}, {"text": "'value'"})
    path = image["image"].pop("path")
    assert image == {"image": {"mime_type": "image/png", "size": 12}}
    assert sandbox.files.read(path) == b"\x89PNG\r\n\x1a\nrest"
    json.dumps(result)
    seeing = SandboxTools(sandbox, with_images=True).handle("sandbox_python", {"code": code})
    data = seeing["results"][2]["image"]["base64"]
    assert base64.b64decode(data) == b"\x89PNG\r\n\x1a\nrest"


@pytest.mark.parametrize(
    ("code", "status", "stdout", "stderr"),
    [
        ("import sys; sys.exit(3)", 3, "", ""),
        ("raise SystemExit", 0, "", ""),
        ("raise SystemExit('no more')", 1, "", "no more\n"),
        ("import asyncio; await asyncio.sleep(0)\n!echo shell", 0, "shell\n", ""),
    ],
)  # fmt: skip
def test_the_exit_code_of_python_is_that_of_a_program(
    tools: SandboxTools, code: str, status: int, stdout: str, stderr: str
) -> None:
    result = tools.handle("sandbox_python", {"code": code})
    assert result.pop("execution_time_ms") >= 0
    assert result == {"exit_code": status, "stdout": stdout, "stderr": stderr}


def test_python_results_are_text_that_can_be_encoded(tools: SandboxTools) -> None:
    code = "display({'text/markdown': 'a\\ud800'}, raw=True)\nraise ValueError('\\ud800')"
    result = tools.handle("sandbox_python", {"code": code})
    assert result["results"] == [{"text": "a?"}]
    assert result["stderr"].endswith("ValueError: ?\n")
    json.dumps(result, ensure_ascii=False).encode()


def test_python_timeouts_and_floods_have_notes(tools: SandboxTools) -> None:
    slow = tools.handle("sandbox_python", {"code": "while True: pass", "timeout_ms": 300})
    assert (slow["exit_code"], "longer timeout_ms" in slow["note"]) == (124, True)
    many = tools.handle("sandbox_python", {"code": "for n in range(50): display(n)"})
    assert len(many["results"]) == 32
    assert many["note"] == "18 results left out"


def test_without_python_in_the_image_the_tool_is_not_offered(
    tools: SandboxTools, sandbox: Sandbox
) -> None:
    assert "sandbox_python" in [tool.name for tool in tools.definitions]
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        sandbox.files.rm(f"{directory}/python3", missing_ok=True)
    assert "sandbox_python" not in [tool.name for tool in tools.definitions]
    error = tools.handle("sandbox_python", {"code": "print(1)"})["error"]
    assert error["code"] == "PROGRAM_MISSING"
    assert "python3 is not among the programs" in error["message"]


def test_long_output_is_cut_and_saved_whole(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, output_limit=1000)
    result = tools.handle("sandbox_run", {"command": "seq 10000; seq 10000 >&2"})
    for kind in ("stdout", "stderr"):
        text = result[kind]
        assert len(text) < 1200
        assert text.startswith("1\n2\n3\n")
        assert text.endswith("9999\n10000\n")
        path = text.split("the whole output is in ")[1].split(" ...]")[0]
        assert sandbox.files.read(path) == b"".join(b"%d\n" % n for n in range(1, 10001))


def test_the_sixteen_last_outputs_are_kept(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, output_limit=100)
    for _ in range(20):
        tools.handle("sandbox_run", {"command": "seq 1000"})
    names = {entry.name for entry in sandbox.files.list("/tmp/tool-output")}
    assert names == {f"{number}.stdout" for number in range(5, 21)}


def test_a_full_file_system_is_reported_in_the_truncated_output() -> None:
    with Sandbox(fs_limit_bytes=50_000) as sandbox:
        tools = SandboxTools(sandbox, output_limit=1000)
        result = tools.handle("sandbox_run", {"command": "seq 100000"})
    assert "not saved: the file system is full" in result["stdout"]


def test_write_then_read(tools: SandboxTools) -> None:
    assert tools.handle("sandbox_write_file", {"path": "a/b.txt", "content": "é\n"}) == {
        "path": "a/b.txt",
        "size": 3,
    }
    assert tools.handle("sandbox_read_file", {"path": "a/b.txt"}) == {
        "content": "é\n",
        "encoding": "utf-8",
        "size": 3,
        "total_lines": 1,
        "truncated": False,
    }


def test_bytes_travel_as_base64(tools: SandboxTools) -> None:
    data = bytes(range(256))
    text = base64.b64encode(data).decode()
    tools.handle("sandbox_write_file", {"path": "x", "content": text, "encoding": "base64"})
    result = tools.handle("sandbox_read_file", {"path": "x"})
    assert result == {"content": text, "encoding": "base64", "size": 256, "truncated": False}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"offset": 2, "limit": 2}, "2\n3\n"),
        ({"offset": 9}, "9\n10\n"),
        ({"limit": 1}, "1\n"),
        ({"offset": 10, "limit": 100}, "10\n"),
    ],
)
def test_read_by_lines(
    tools: SandboxTools, sandbox: Sandbox, lines: dict[str, int], expected: str
) -> None:
    sandbox.files.write("n", "".join(f"{n}\n" for n in range(1, 11)))
    result = tools.handle("sandbox_read_file", {"path": "n", **lines})
    assert (result["content"], result["total_lines"]) == (expected, 10)


def test_a_long_file_is_cut(sandbox: Sandbox) -> None:
    sandbox.files.write("long", "x" * 500)
    sandbox.files.write("bytes", b"\xff" * 500)
    tools = SandboxTools(sandbox, output_limit=100)
    result = tools.handle("sandbox_read_file", {"path": "long"})
    assert (result["content"], result["size"], result["truncated"]) == ("x" * 100, 500, True)
    result = tools.handle("sandbox_read_file", {"path": "bytes"})
    assert result["truncated"]
    assert base64.b64decode(result["content"]) == b"\xff" * 75


@pytest.mark.parametrize("tool", ["sandbox_read_file", "sandbox_edit_file"])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(
    tools: SandboxTools, sandbox: Sandbox, tool: str
) -> None:
    sandbox.commands.run("truncate -s 1T holes; head -c 17M /dev/zero > large; ln large second")
    given = {"old_string": "a", "new_string": "b"} if tool == "sandbox_edit_file" else {}
    for path in ("holes", "large"):
        error = tools.handle(tool, {"path": path, **given})["error"]
        assert f"{path} has more than 16777216 bytes" in str(error)
        assert "sandbox_run" in str(error)
    assert sandbox.files.stat("large").size == 17 << 20


def test_an_edit_that_would_not_fit_is_refused_before_it_is_made(
    tools: SandboxTools, sandbox: Sandbox
) -> None:
    sandbox.files.write("many", "a" * 1_000_000)
    given = {"path": "many", "old_string": "a", "new_string": "b" * 10_000, "replace_all": True}
    error = tools.handle("sandbox_edit_file", given)["error"]
    assert "would have 10000000000 bytes" in str(error)
    assert sandbox.files.read("many") == b"a" * 1_000_000


def test_lines_are_those_of_splitlines() -> None:
    choose = random.Random(3)
    for _ in range(200):
        text = "".join(choose.choices(["a", "bc", "\r", "\n", "\r\n", "\x0b", "\u2028"], k=300))
        text *= choose.choice([1, 1, 1500])
        lines = text.splitlines(keepends=True)
        first, last = choose.randrange(300), choose.choice([None, 10, 400, len(lines)])
        expected = "".join(lines[first:last] if last is None else lines[first : max(first, last)])
        assert select_lines(text, first, last) == (expected, len(lines))


def test_list_files(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.files.write("b", "12")
    sandbox.commands.run("mkdir d; chmod 600 b; ln -s b l")
    result = tools.handle("sandbox_list_files", {})
    assert [(e["name"], e["type"], e["mode"]) for e in result["entries"]][:2] == [
        ("b", "file", "0600"),
        ("d", "dir", "0755"),
    ]
    assert result["entries"][0]["size"] == 2
    assert not result["truncated"]


def test_list_files_below_a_directory(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p d/e; touch d/a.py d/e/b.py d/e/c.txt")
    result = tools.handle("sandbox_list_files", {"path": "d", "recursive": True, "glob": "*.py"})
    names = [entry["name"] for entry in result["entries"]]
    assert names == ["/home/user/d/a.py", "/home/user/d/e/b.py"]


def test_a_long_listing_is_cut(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir d; cd d; touch $(seq 1001)")
    result = tools.handle("sandbox_list_files", {"path": "d"})
    assert (len(result["entries"]), result["truncated"]) == (1000, True)


def test_edit_replaces_one_text_and_keeps_the_mode(tools: SandboxTools, sandbox: Sandbox) -> None:
    sandbox.files.write("s.sh", "echo one\r\necho two\n")
    sandbox.commands.run("chmod 755 s.sh")
    result = tools.handle(
        "sandbox_edit_file", {"path": "s.sh", "old_string": "two", "new_string": "2"}
    )
    assert result == {"path": "s.sh", "replacements": 1}
    assert sandbox.files.read("s.sh") == b"echo one\r\necho 2\n"
    assert sandbox.files.stat("s.sh").mode == 0o755


def test_only_named_tools_are_offered(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, only=["sandbox_run"])
    assert [tool["name"] for tool in tools.anthropic()] == ["sandbox_run"]
    error = tools.handle("sandbox_read_file", {"path": "/etc/passwd"})["error"]
    assert error["code"] == "UNKNOWN_TOOL"
    with pytest.raises(UnknownTool, match="no tool 'sandbox_fly'"):
        SandboxTools(sandbox, only=["sandbox_fly"])


class Observer:
    def __init__(self, *, kill: bool = False) -> None:
        self.text = ""
        self._kill = kill

    def started(self, command: Killable) -> None:
        if self._kill:
            command.kill()

    def printed(self, text: str) -> None:
        self.text += text


def test_a_command_can_be_watched(tools: SandboxTools) -> None:
    observer = Observer()
    result = tools.call(
        "sandbox_run", {"command": "cat; echo b >&2", "stdin": "a\n"}, observer=observer
    )
    assert observer.text == "a\nb\n"
    assert (result["stdout"], result["stderr"]) == ("a\n", "b\n")


def test_a_command_that_is_watched_has_the_same_time_limits() -> None:
    with Sandbox(timeout_ms=300) as sandbox:
        tools = SandboxTools(sandbox)
        result = tools.call("sandbox_run", {"command": "sleep 60"}, observer=Observer())
        assert (result["exit_code"], result["stderr"]) == (124, "command timed out\n")
        result = tools.call("sandbox_run", {"command": "cat"}, observer=Observer())
        assert result["exit_code"] == 0


def test_a_call_can_be_ended_by_its_observer(tools: SandboxTools) -> None:
    tools.handle("sandbox_run", {"command": "here=1"})
    for given in ({"command": "sleep 60"}, {"command": "while :; do :; done"}):
        with pytest.raises(CommandError, match="ECANCELED"):
            tools.call("sandbox_run", given, observer=Observer(kill=True))
    with pytest.raises(CommandError, match="ECANCELED"):
        tools.call("sandbox_python", {"code": "while True: pass"}, observer=Observer(kill=True))
    assert tools.handle("sandbox_run", {"command": "echo $here"})["stdout"] == "1\n"


def test_call_raises_what_went_wrong(tools: SandboxTools) -> None:
    with pytest.raises(UnknownTool):
        tools.call("nothing", {})
    with pytest.raises(NotFoundError):
        tools.call("sandbox_read_file", {"path": "/nowhere"})


def test_every_result_is_json(tools: SandboxTools) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("sandbox_run", {"command": "printf '\\377'"}),
        ("sandbox_write_file", {"path": "a", "content": "x"}),
        ("sandbox_read_file", {"path": "a"}),
        ("sandbox_list_files", {"path": "/"}),
        ("sandbox_edit_file", {"path": "a", "old_string": "x", "new_string": "y"}),
        ("sandbox_read_file", {"path": "/nowhere"}),
    ]
    for name, given in calls:
        result = tools.handle(name, given)
        assert json.loads(json.dumps(result)) == result
