"""Tools for Pydantic AI (package `pydantic-ai-slim` or `pydantic-ai`).

agent = Agent(model, tools=pydantic_ai_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

import base64
from typing import Any

from pydantic_ai import BinaryContent, Tool, ToolReturn

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools
from wasmsand.tools.rendering import images_of, without_images


def pydantic_ai_tools(tools: SandboxTools) -> list[Tool[Any]]:
    """Each tool as a Pydantic AI tool. Its result is a dict; if the tools are `with_images`, images
    are content beside it."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> Tool[Any]:
    def call(**given: Any) -> dict[str, Any] | ToolReturn:
        answer = tools.handle(definition.name, given)
        images = [
            BinaryContent(base64.b64decode(image.base64), media_type=image.mime_type)
            for image in images_of(answer)
        ]
        if not images:
            return answer
        return ToolReturn(return_value=without_images(answer), content=images)

    return Tool.from_schema(
        call,
        name=definition.name,
        description=definition.description,
        json_schema=definition.input_schema(),
    )
