"""Tools for smolagents (package `smolagents`).

agent = ToolCallingAgent(tools=smolagents_tools(SandboxTools(sandbox)), model=model)
"""

from __future__ import annotations

from typing import Any

from smolagents import Tool

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools


def smolagents_tools(tools: SandboxTools) -> list[Tool]:
    """Each tool as a smolagents tool; its result is a dict."""
    return [SmolagentsTool(tools, definition) for definition in tools.definitions]


class SmolagentsTool(Tool):  # type: ignore[misc]  # the package has no types
    """One tool."""

    output_type = "object"
    # The parameters are those of the definition, not of `forward`.
    skip_forward_signature_validation = True

    def __init__(self, tools: SandboxTools, definition: ToolDefinition) -> None:
        self.name = definition.name
        self.description = definition.description
        self.inputs = {
            parameter.name: {**parameter.schema(), "nullable": not parameter.required}
            for parameter in definition.parameters
        }
        self._tools = tools
        super().__init__()

    def forward(self, **given: Any) -> dict[str, Any]:
        """Called by the agent with the model's input."""
        return self._tools.handle(self.name, given)
