"""Tools for LangChain and LangGraph (package `langchain-core`).

agent = create_agent(model, tools=langchain_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools


def langchain_tools(tools: SandboxTools) -> list[BaseTool]:
    """Each tool as a LangChain tool."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> BaseTool:
    def call(**given: Any) -> dict[str, Any]:
        return tools.handle(definition.name, given)

    return StructuredTool.from_function(
        func=call,
        name=definition.name,
        description=definition.description,
        args_schema=definition.input_schema(),
    )
