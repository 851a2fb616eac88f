"""Tools for CrewAI (package `crewai`).

agent = Agent(role="worker", ..., tools=crewai_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

from typing import Any

from crewai.tools import BaseTool
from pydantic import PrivateAttr

from wasmsand.tools.adapters.input_models import input_model
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools
from wasmsand.tools.rendering import text_of


def crewai_tools(tools: SandboxTools) -> list[BaseTool]:
    """Each tool as a CrewAI tool; its result is text for the model."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> BaseTool:
    tool = CrewAITool(
        name=definition.name,
        description=definition.description,
        args_schema=input_model(definition),
    )
    tool._tools = tools
    return tool


class CrewAITool(BaseTool):  # type: ignore[misc]  # see pyproject.toml
    """One tool."""

    _tools: SandboxTools = PrivateAttr()

    def _run(self, **given: Any) -> str:
        """Called by the agent with the model's input."""
        return text_of(self._tools.handle(self.name, given))
