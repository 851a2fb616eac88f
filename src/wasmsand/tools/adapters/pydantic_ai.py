"""Tools for Pydantic AI (package `pydantic-ai-slim` or `pydantic-ai`).

agent = Agent(model, tools=pydantic_ai_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import Tool

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools


def pydantic_ai_tools(tools: SandboxTools) -> list[Tool[Any]]:
    """Each tool as a Pydantic AI tool."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> Tool[Any]:
    def call(**given: Any) -> dict[str, Any]:
        return tools.handle(definition.name, given)

    return Tool.from_schema(
        call,
        name=definition.name,
        description=definition.description,
        json_schema=definition.input_schema(),
    )
