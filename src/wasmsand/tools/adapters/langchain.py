"""Tools for LangChain and LangGraph (package `langchain-core`).

agent = create_agent(model, tools=langchain_tools(SandboxTools(sandbox)))
"""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools
from wasmsand.tools.rendering import images_of, text_of


def langchain_tools(tools: SandboxTools) -> list[BaseTool]:
    """Each tool as a LangChain tool. Its result is a dict; if the tools are `with_images`, results
    with images are lists of content blocks."""
    return [_tool(tools, definition) for definition in tools.definitions]


def _tool(tools: SandboxTools, definition: ToolDefinition) -> BaseTool:
    def call(**given: Any) -> dict[str, Any] | list[dict[str, Any]]:
        return described(tools.handle(definition.name, given))

    async def call_async(**given: Any) -> dict[str, Any] | list[dict[str, Any]]:
        return described(await tools.handle_async(definition.name, given))

    def described(answer: dict[str, Any]) -> dict[str, Any] | list[dict[str, Any]]:
        images: list[dict[str, Any]] = [
            {"type": "image", "base64": image.base64, "mime_type": image.mime_type}
            for image in images_of(answer)
        ]
        return [{"type": "text", "text": text_of(answer)}, *images] if images else answer

    return StructuredTool.from_function(
        func=call,
        coroutine=call_async,
        name=definition.name,
        description=definition.description,
        args_schema=definition.input_schema(),
    )
