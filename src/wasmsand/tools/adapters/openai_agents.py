"""Tools for the OpenAI Agents SDK (package `openai-agents`).

agent = Agent(name="worker", tools=openai_agents_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool, Tool, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from wasmsand.tools.answers import parsed
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools
from wasmsand.tools.rendering import images_of, text_of


def openai_agents_tools(tools: SandboxTools) -> list[Tool]:
    """Each tool as a function tool. If the tools are `with_images`, results have images."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> Tool:
    async def call(_context: ToolContext[Any], sent: str) -> Any:
        answer = await tools.handle_async(definition.name, parsed(sent))
        images = [
            ToolOutputImage(image_url=f"data:{image.mime_type};base64,{image.base64}")
            for image in images_of(answer)
        ]
        return [ToolOutputText(text=text_of(answer)), *images] if images else json.dumps(answer)

    return FunctionTool(
        name=definition.name,
        description=definition.description,
        params_json_schema=definition.input_schema(),
        on_invoke_tool=call,
        # Strict mode does not support optional parameters.
        strict_json_schema=False,
    )
