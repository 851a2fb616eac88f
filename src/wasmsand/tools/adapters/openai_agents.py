"""Tools for the OpenAI Agents SDK (package `openai-agents`).

agent = Agent(name="worker", tools=openai_agents_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import FunctionTool, Tool
from agents.tool_context import ToolContext

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools


def openai_agents_tools(tools: SandboxTools) -> list[Tool]:
    """Each tool as a function tool."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> Tool:
    async def call(_context: ToolContext[Any], sent: str) -> str:
        try:
            given: object = json.loads(sent or "{}")
        except (ValueError, RecursionError):
            # Not JSON: `handle` returns an error for the model.
            given = sent
        return json.dumps(await asyncio.to_thread(tools.handle, definition.name, given))

    return FunctionTool(
        name=definition.name,
        description=definition.description,
        params_json_schema=definition.input_schema(),
        on_invoke_tool=call,
        # Strict mode does not support optional parameters.
        strict_json_schema=False,
    )
