"""Tools for LlamaIndex (package `llama-index-core`).

agent = FunctionAgent(tools=llama_index_tools(SandboxTools(sandbox)), llm=llm)
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ImageBlock, TextBlock
from llama_index.core.tools.types import AsyncBaseTool, ToolMetadata, ToolOutput

from wasmsand.tools.adapters.input_models import input_model
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.dispatch import SandboxTools
from wasmsand.tools.rendering import images_of, text_of


def llama_index_tools(tools: SandboxTools) -> list[AsyncBaseTool]:
    """Each tool as a LlamaIndex tool. What it returns has text for the model, and images if the
    tools are `with_images`."""
    return [LlamaIndexTool(tools, definition) for definition in tools.definitions]


class LlamaIndexTool(AsyncBaseTool):  # type: ignore[misc]  # see pyproject.toml
    """One tool."""

    def __init__(self, tools: SandboxTools, definition: ToolDefinition) -> None:
        self._tools = tools
        self._metadata = ToolMetadata(
            name=definition.name,
            description=definition.description,
            fn_schema=input_model(definition),
        )

    @property
    def metadata(self) -> ToolMetadata:
        """Name, description and schema."""
        return self._metadata

    def call(self, **given: Any) -> ToolOutput:
        """Called by the agent with the model's input."""
        return self._output(given, self._tools.handle(self._metadata.get_name(), given))

    async def acall(self, **given: Any) -> ToolOutput:
        """The same, without blocking the event loop."""
        answer = await self._tools.handle_async(self._metadata.get_name(), given)
        return self._output(given, answer)

    def _output(self, given: dict[str, Any], answer: dict[str, Any]) -> ToolOutput:
        blocks: list[Any] = [TextBlock(text=text_of(answer))]
        blocks += [
            ImageBlock(image=image.base64.encode(), image_mimetype=image.mime_type)
            for image in images_of(answer)
        ]
        return ToolOutput(
            blocks=blocks,
            tool_name=self._metadata.get_name(),
            raw_input=given,
            raw_output=answer,
            is_error="error" in answer,
        )
