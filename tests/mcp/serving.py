"""The MCP server as a user starts it, in a process of its own, and the official client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

COMMAND = [sys.executable, "-m", "wasmsand", "mcp"]
Mode = Literal["legacy", "auto"]


def environment(**variables: str) -> dict[str, str]:
    # A coverage tool may need more variables, but the server does not.
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **variables}


@asynccontextmanager
async def stdio_client(*words: str, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A client that has started its server."""
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *words], env=environment()
    )
    async with Client(server, mode=mode) as client:
        yield client


@contextmanager
def http_server(*words: str, **variables: str) -> Iterator[str]:
    """A running server; gives its URL."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "127.0.0.1:0", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        announced = process.stderr.readline()
        assert announced.startswith("wasmsand mcp: listening on http://"), announced
        yield announced.split()[-1]
    finally:
        process.terminate()
        process.wait(30)
        said, logged = process.stdout.read(), process.stderr.read()
        process.stdout.close()
        process.stderr.close()
    assert said == ""
    assert "Traceback" not in logged, logged


def run(test: Callable[[], Awaitable[None]], *, seconds: float = 180) -> None:
    """Run an asynchronous test, with a time limit."""

    async def limited() -> None:
        with anyio.fail_after(seconds):
            await test()

    anyio.run(limited)


async def call(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """Call a tool, which must succeed; returns its result."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, text(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def text(result: CallToolResult) -> str:
    """The text of a result, as a model reads it."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
