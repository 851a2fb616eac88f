"""A client's shell, interpreter and long commands keep their state, over both transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

import anyio
from mcp import Client
from mcp.types import ImageContent

from tests.mcp.serving import call, http_server, run, stdio_client, text

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@asynccontextmanager
async def over_http(*words: str) -> AsyncIterator[Client]:
    with http_server(*words) as url:
        async with Client(url) as client:
            yield client


@pytest.fixture(params=[stdio_client, over_http], ids=["stdio", "http"])
def connect(request: pytest.FixtureRequest) -> Connect:
    return request.param  # type: ignore[no-any-return]


def test_shell_and_variables_persist(connect: Connect) -> None:
    async def test() -> None:
        async with connect() as client:
            await call(client, "sandbox_run", command="cd /tmp; name=world")
            shell = await client.call_tool("sandbox_run", {"command": "pwd; echo $name"})
            assert text(shell) == "/tmp\nworld\n[exit code 0]"
            await call(client, "sandbox_python", code="x = 41")
            python = await client.call_tool("sandbox_python", {"code": "x + 1"})
            assert text(python) == "[result]\n42\n[exit code 0]"
            gone = await client.call_tool("sandbox_run", {"command": "exit 3"})
            assert text(gone) == (
                "[exit code 3; no output; the shell has ended: its variables and functions are "
                "lost, and the next call starts a new one in /tmp]"
            )
            new = await client.call_tool("sandbox_python", {"code": "x", "reset": True})
            assert "NameError" in text(new)

    run(test)


def test_a_long_command_is_started_watched_and_ended(connect: Connect) -> None:
    async def test() -> None:
        async with connect() as client:
            started = await call(client, "sandbox_start", command="cat -u")
            assert started["id"] == "c1"
            wait = {"id": "c1", "wait_ms": 20_000}
            seen = await client.call_tool("sandbox_process", {**wait, "input": "hello\n"})
            assert text(seen) == "hello\n[c1 is running]"
            quiet = await client.call_tool("sandbox_process", {"id": "c1", "wait_ms": 0})
            assert text(quiet) == "[c1 is running; no new output]"
            ended = await client.call_tool("sandbox_process", {"id": "c1", "kill": True})
            assert text(ended) == "[c1 has ended: exit code 137; no new output]"
            (listed,) = (await call(client, "sandbox_process"))["commands"]
            assert listed == {"id": "c1", "running": False, "exit_code": 137, "command": "cat -u"}

    run(test)


def test_a_cancelled_call_leaves_the_state() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            await call(client, "sandbox_run", command="name=world")
            await call(client, "sandbox_python", code="x = 1")
            for tool, given in (
                ("sandbox_run", {"command": "sleep 600"}),
                ("sandbox_python", {"code": "while True: pass"}),
            ):
                with anyio.move_on_after(1):
                    await client.call_tool(tool, given)
            shell = await call(client, "sandbox_run", command="echo $name; pgrep -x sleep")
            assert shell["stdout"] == "world\n"
            python = await call(client, "sandbox_python", code="x")
            assert python["results"] == [{"text": "1"}]

    run(test)


def test_an_image_file_is_image_content() -> None:
    async def test() -> None:
        async with stdio_client() as client:
            script = r"printf '\x89PNG\r\n\x1a\nrest' > a.png"
            await call(client, "sandbox_run", command=script)
            result = await client.call_tool("sandbox_read_file", {"path": "a.png"})
            _, image = result.content
            assert isinstance(image, ImageContent)
            assert image.mime_type == "image/png"
            assert result.structured_content == {
                "size": 12,
                "image": {"mime_type": "image/png", "size": 12},
                "truncated": False,
            }

    run(test)


def test_sandboxes_in_processes_of_their_own() -> None:
    async def test() -> None:
        async with over_http("--isolation", "process") as client:
            await call(client, "sandbox_run", command="cd /tmp; name=world")
            assert (await call(client, "sandbox_run", command="echo $name"))["stdout"] == "world\n"
            await call(client, "sandbox_python", code="x = 1")
            await call(client, "sandbox_fork", name="copy")
            copied = await call(client, "sandbox_python", code="x", copy="copy")
            assert copied["results"] == [{"text": "1"}]
            await call(client, "sandbox_start", command="echo started; sleep 1000")
            seen = await call(client, "sandbox_process", id="c1", wait_ms=20_000)
            assert seen == {"id": "c1", "running": True, "output": "started\n"}

    run(test)
