"""One client on standard input and output: the official client, and plain bytes."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

import anyio
from mcp import MCPError
from mcp.types import BlobResourceContents, ImageContent, TextContent, TextResourceContents

from tests.mcp.serving import COMMAND, Mode, call, environment, run, stdio_client, text

MODES: list[Mode] = ["legacy", "auto"]


@pytest.mark.parametrize("mode", MODES)
def test_tools_work_on_one_sandbox(mode: Mode) -> None:
    async def test() -> None:
        async with stdio_client(mode=mode) as client:
            offered = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"sandbox_run", "sandbox_read_file", "sandbox_edit_file"} <= set(offered)
            assert offered["sandbox_run"].input_schema["required"] == ["command"]
            annotations = offered["sandbox_read_file"].annotations
            assert annotations is not None
            assert annotations.read_only_hint is True

            await call(client, "sandbox_write_file", path="a.txt", content="one\ntwo\n")
            await call(client, "sandbox_edit_file", path="a.txt", old_string="two", new_string="2")
            assert (await call(client, "sandbox_run", command="cat a.txt"))["stdout"] == "one\n2\n"
            python = await call(client, "sandbox_python", code="print(open('a.txt').read())")
            assert python["stdout"] == "one\n2\n\n"
            listed = await call(client, "sandbox_list_files")
            assert [entry["name"] for entry in listed["entries"]] == ["a.txt"]
            read = await client.call_tool("sandbox_read_file", {"path": "a.txt"})
            assert text(read) == "one\n2\n"

    run(test)


def test_a_client_goes_back_and_tries_several_ways() -> None:
    async def test() -> None:
        async with stdio_client("--max-copies", "1") as client:
            await call(client, "sandbox_run", command="echo one > a")
            await call(client, "sandbox_snapshot", name="before")
            assert await call(client, "sandbox_fork", name="try") == {"copies": ["try"]}
            await call(client, "sandbox_run", command="echo two > a")
            await call(client, "sandbox_run", command="echo three > a", copy="try")
            assert (await call(client, "sandbox_run", command="cat a"))["stdout"] == "two\n"
            await call(client, "sandbox_restore", snapshot="before")
            assert (await call(client, "sandbox_run", command="cat a"))["stdout"] == "one\n"
            refused = await client.call_tool("sandbox_fork", {"name": "more"})
            assert refused.is_error
            assert "1 copies already" in text(refused)
            await call(client, "sandbox_restore", snapshot="try")
            assert (await call(client, "sandbox_run", command="cat a"))["stdout"] == "three\n"
        async with stdio_client("--max-copies", "0") as client:
            offered = {tool.name for tool in (await client.list_tools()).tools}
            assert not {"sandbox_fork", "sandbox_snapshot", "sandbox_restore"} & offered

    run(test)


def test_a_model_reads_output_as_it_was_printed() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            result = await client.call_tool(
                "sandbox_run", {"command": "echo out; printf err >&2; (exit 3)"}
            )
            assert text(result) == "out\n[stderr]\nerr\n[exit code 3]"
            assert not result.is_error
            silent = await client.call_tool("sandbox_run", {"command": ":"})
            assert text(silent) == "[exit code 0; no output]"

    run(test)


def test_a_model_sees_images_and_reads_the_best_text_of_results() -> None:
    code = (
        "from IPython.display import HTML, Image, Markdown\n"
        "print('printed')\n"
        "display(HTML('<b>'), Markdown('*m*'), Image(data=b'\\x89PNG\\r\\n\\x1a\\nx'))\n"
        "class Table:\n    def _repr_html_(self): return '<table>'\n"
        "    def __repr__(self): return 'a  b'\n"
        "Table()"
    )

    async def test() -> None:
        async with stdio_client() as client:
            result = await client.call_tool("sandbox_python", {"code": code})
            assert not result.is_error
            told, shown = result.content
            assert isinstance(told, TextContent)
            assert told.text == (
                "printed\n[result]\n<b>\n[result]\n*m*\n[result]\na  b\n[exit code 0]"
            )
            assert isinstance(shown, ImageContent)
            assert shown.mime_type == "image/png"
            assert base64.b64decode(shown.data) == b"\x89PNG\r\n\x1a\nx"
            structured = result.structured_content
            assert structured is not None
            assert structured["results"] == [
                {"text": "<b>"},
                {"text": "*m*"},
                {"image": {"mime_type": "image/png", "size": 9}},
                {"text": "a  b"},
            ]

    run(test)


def test_long_output_is_cut_and_can_be_read_as_a_resource() -> None:
    async def test() -> None:
        async with stdio_client("--output-limit", "1000") as client:
            result = await client.call_tool("sandbox_run", {"command": "seq 10000"})
            assert len(text(result)) < 1200
            path = text(result).split("the whole output is in ")[1].split(" ...]")[0]
            whole = await client.read_resource(f"sandbox://{path}")
            (content,) = whole.contents
            assert isinstance(content, TextResourceContents)
            assert content.text.splitlines()[-1] == "10000"

    run(test)


def test_resources_are_files() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            await call(client, "sandbox_run", command="mkdir -p d .h; printf x > 'd/a b#?.txt'")
            await call(client, "sandbox_run", command="printf '\\377' > z.png; : > .h/hidden")
            listed = (await client.list_resources()).resources
            assert [(item.name, item.uri, item.mime_type, item.size) for item in listed] == [
                ("z.png", "sandbox:///home/user/z.png", "image/png", 1),
                ("d/a b#?.txt", "sandbox:///home/user/d/a%20b%23%3F.txt", "text/plain", 1),
            ]
            (blob,) = (await client.read_resource(listed[0].uri)).contents
            assert isinstance(blob, BlobResourceContents)
            assert (blob.blob, blob.mime_type) == ("/w==", "image/png")
            (plain,) = (await client.read_resource(listed[1].uri)).contents
            assert isinstance(plain, TextResourceContents)
            assert plain.text == "x"
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "sandbox:///{+path}"

    run(test)


@pytest.mark.parametrize("mode", MODES)
def test_progress_tells_what_was_printed_last(mode: Mode) -> None:
    async def test() -> None:
        heard: list[tuple[float, str | None]] = []

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, message))

        async with stdio_client(mode=mode) as client:
            script = "echo first; sleep 3; echo second; sleep 3"
            await client.call_tool("sandbox_run", {"command": script}, progress_callback=listen)
        messages = [message for _, message in heard]
        assert messages.index("first") < messages.index("second")
        assert [seconds for seconds, _ in heard] == sorted(seconds for seconds, _ in heard)

    run(test)


def test_a_cancelled_command_is_killed_and_the_sandbox_goes_on() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            with anyio.move_on_after(1):
                await client.call_tool("sandbox_run", {"command": "sleep 600; touch survived"})
            with anyio.fail_after(20):
                while (await call(client, "sandbox_run", command="pgrep -x sleep"))["stdout"]:
                    await anyio.sleep(0.1)
            listed = await call(client, "sandbox_list_files")
            assert listed["entries"] == []

    run(test)


def test_calls_run_at_the_same_time() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            await call(client, "sandbox_run", command="mkfifo f")
            async with anyio.create_task_group() as tasks:
                code = "open('f', 'w').write('hi')"
                tasks.start_soon(client.call_tool, "sandbox_python", {"code": code})
                assert (await call(client, "sandbox_run", command="cat f"))["stdout"] == "hi"

    run(test)


def test_options_reach_the_sandbox() -> None:
    async def test() -> None:
        async with stdio_client("--timeout", "0.5", "--env", "A=b", "--fs-limit", "1000") as client:
            assert (await call(client, "sandbox_run", command="echo $A"))["stdout"] == "b\n"
            assert (await call(client, "sandbox_run", command="sleep 60"))["exit_code"] == 124
            full = await client.call_tool(
                "sandbox_write_file", {"path": "a", "content": "x" * 2000}
            )
            assert full.is_error
            assert text(full).startswith("ENOSPC")

    run(test)


def test_packages_are_installed_only_if_the_server_allows_it() -> None:
    tool = "sandbox_install_packages"

    async def test() -> None:
        async with stdio_client("--package", "sqlite3") as client:
            assert tool not in [offered.name for offered in (await client.list_tools()).tools]
            with pytest.raises(MCPError, match="unknown tool"):
                await client.call_tool(tool, {"packages": "six"})
        async with stdio_client("--index-installs") as client:
            assert tool in [offered.name for offered in (await client.list_tools()).tools]
            wrong = await client.call_tool(tool, {"packages": "../x"})
            assert wrong.is_error
            assert "is not a package's name" in text(wrong)

    run(test)


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("sandbox_run", {}, "command is missing: A script for bash."),
    ("sandbox_run", {"command": 5}, "command must be a string, not a number"),
    ("sandbox_run", {"cmd": "ls"}, "unknown parameter 'cmd'; use one of: command, stdin"),
    ("sandbox_run", {"command": "a\0b"}, "command must not contain a NUL"),
    ("sandbox_start", {"command": ":", "cwd": "/nowhere"}, "ENOENT"),
    ("sandbox_process", {"id": "c1"}, "there is no command 'c1'; commands: none"),
    ("sandbox_run", {"command": ":", "timeout_ms": 10**12}, "timeout_ms must be at most 600000"),
    ("sandbox_read_file", {"path": "/nowhere"}, "ENOENT: no such file or directory: /nowhere"),
    ("sandbox_read_file", {"path": "../../../etc/shadow"}, "ENOENT: no such file"),
    ("sandbox_read_file", {"path": "x" * 5000}, "ENAMETOOLONG"),
    ("sandbox_write_file", {"path": "/etc", "content": ""}, "EISDIR: is a directory: /etc"),
    ("sandbox_edit_file", {"path": "f", "old_string": "q", "new_string": "r"}, "does not occur in"),
]
BAD_RESOURCES = [
    ("sandbox:///nowhere", "ENOENT: no such file or directory: /nowhere"),
    ("sandbox:///etc", "EISDIR"),
    ("sandbox://host/etc/passwd", "a resource is sandbox:///absolute/path"),
    ("file:///etc/passwd", "a resource is sandbox:///absolute/path"),
    ("sandbox:///a%00b", "path must not contain a NUL"),
    ("sandbox:///f?x=1", "write ? and # in a path as"),
    ("sandbox:///home/user/huge", "a resource may have 16777216"),
    ("relative", "a resource is sandbox:///absolute/path"),
]


def test_mistakes_are_answered_with_help() -> None:
    async def test() -> None:
        async with stdio_client(mode="legacy") as client:
            await call(client, "sandbox_run", command="echo x > f; truncate -s 17M huge")
            for tool, given, message in BAD_CALLS:
                result = await client.call_tool(tool, given)
                assert result.is_error, (tool, given)
                assert message in text(result), (tool, given)
            for uri, message in BAD_RESOURCES:
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                assert message in caught.value.message, uri
            with pytest.raises(MCPError, match="unknown tool 'fly'; use one of: sandbox_run"):
                await client.call_tool("fly", {})
            assert (await call(client, "sandbox_run", command="cat f"))["stdout"] == "x\n"

    run(test)


def converse(lines: bytes, wanted: set[int]) -> tuple[dict[int, Any], int]:
    """Send `lines`; returns the answers with the ids `wanted`, and the exit status."""
    answers: dict[int, Any] = {}
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        while not wanted <= set(answers):
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = answer
        process.stdin.close()
        assert process.stdout.read() == b""
        return answers, process.wait(60)


def message(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


HELLO = message(
    id=1,
    method="initialize",
    params={
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bytes", "version": "1"},
    },
) + message(method="notifications/initialized")


def test_standard_output_has_only_the_protocol_and_the_end_of_input_ends_the_server() -> None:
    answers, status = converse(HELLO + message(id=2, method="tools/list"), {1, 2})
    assert status == 0
    assert answers[1]["result"]["serverInfo"]["name"] == "wasmsand"
    assert answers[2]["result"]["tools"][0]["name"] == "sandbox_run"


def test_bytes_that_are_not_a_message_do_not_end_the_server() -> None:
    answers, status = converse(
        HELLO
        + b"not json\n\xff\xfe\n[]\n{}\n"
        + message(id=2, method="no/such/method")
        + message(id=3, method="tools/call", params={"name": 5})
        + message(id=4, method="ping"),
        {1, 2, 3, 4},
    )
    assert status == 0
    assert answers[2]["error"]["code"] == -32601
    assert answers[3]["error"]["code"] == -32602
    assert answers[4]["result"] == {}
