"""Handlers for the requests of the Model Context Protocol.

Owns the handlers that both transports share. Rules: a handler never blocks the event loop: calls
of a sandbox run on a thread of its session (`sessions`). While a command runs, a client that asked
for progress is notified once a second of the run time and the last line of output; if the client
cancels the request, the command is killed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Tool,
    ToolAnnotations,
)

from wasmsand.mcp import resources, results
from wasmsand.mcp.command_watch import CommandWatch
from wasmsand.mcp.sessions import McpSession, Sessions
from wasmsand.sdk.errors import SandboxError
from wasmsand.tools import TOOL_ERRORS, ToolDefinition, UnknownTool

Context = ServerRequestContext[Any, Any]
SessionName = Callable[[Context], str]
Lifespan = Callable[[Server[Any]], AbstractAsyncContextManager[Any]]

PROGRESS_SECONDS = 1.0

_INSTRUCTIONS = """\
A private Linux sandbox with {programs} and more, on its own file system. {network}
{absent}{mounts} Work in {cwd}. One shell and one Python interpreter keep their state
from call to call. Files persist until the session ends."""


@asynccontextmanager
async def _no_lifespan(_server: Server[Any]) -> AsyncIterator[None]:
    yield


def make_server(
    sessions: Sessions,
    session_name: SessionName,
    version: str,
    lifespan: Lifespan = _no_lifespan,
) -> Server[Any]:
    """A server that executes each request in the sandbox of `session_name(request)`."""

    async def ready(context: Context) -> str:
        """Create the session's sandbox if needed; return the session's name."""
        name = session_name(context)
        try:
            await sessions.get(name)
        except SandboxError as error:
            raise MCPError(INTERNAL_ERROR, f"cannot create a sandbox: {error}") from None
        return name

    async def list_tools(
        context: Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        name = await ready(context)
        try:
            offered = await sessions.run(name, lambda used: used.tools.definitions)
        except SandboxError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        return ListToolsResult(tools=[_described(tool, sessions.has_network) for tool in offered])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        return await _call(context, sessions, await ready(context), params)

    async def list_resources(
        context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        name = await ready(context)
        try:
            found = await sessions.run(name, lambda used: resources.listed(used.sandbox))
        except SandboxError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        return ListResourcesResult(resources=found)

    async def list_templates(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(
        context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri, name = str(params.uri), await ready(context)
        try:
            content = await sessions.run(name, lambda used: resources.read(used.sandbox, uri))
        except (SandboxError, ValueError) as error:
            raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from None
        return ReadResourceResult(contents=[content])

    return Server(
        "wasmsand",
        version=version,
        title="wasmsand",
        instructions=_INSTRUCTIONS.format(**sessions.surroundings.fields()),
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


async def _call(
    context: Context, sessions: Sessions, name: str, params: CallToolRequestParams
) -> CallToolResult:
    watch = CommandWatch()

    def attempt(used: McpSession) -> dict[str, Any] | Exception:
        try:
            return used.tools.call(params.name, params.arguments or {}, observer=watch)
        except TOOL_ERRORS as error:
            return error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, context, watch)
        outcome: dict[str, Any] | Exception
        try:
            outcome = await sessions.run(name, attempt)
        except SandboxError as error:
            outcome = error
        except anyio.get_cancelled_exc_class():
            # Cancelling takes the sandbox's lock, so do it on a thread.
            sessions.endings.run(watch.cancel)
            raise
        tasks.cancel_scope.cancel()
    if isinstance(outcome, UnknownTool):
        raise MCPError(INVALID_PARAMS, str(outcome))
    if isinstance(outcome, Exception):
        return results.failed(outcome)
    return results.succeeded(outcome)


async def _report(context: Context, watch: CommandWatch) -> None:
    started = time.monotonic()
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        seconds = round(time.monotonic() - started, 1)
        message = watch.last_line or f"{seconds:.0f} s"
        try:
            await context.session.report_progress(seconds, message=message)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            # The client has disconnected; the command continues.
            return


def _described(tool: ToolDefinition, reaches_others: bool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            # Other tools can destroy only files of the sandbox; without a network they have no
            # effect outside.
            destructive_hint=tool.changes_host,
            open_world_hint=reaches_others and not tool.read_only,
        ),
    )
