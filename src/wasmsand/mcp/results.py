"""Formats a tool's result: as text for the model, and as JSON for programs.

Rules: the text and the images are those of `tools.rendering`; the JSON beside them is complete,
except for images. A tool that fails gives a result with `isError`, so that the model sees it and
can try again; only an unknown tool is a protocol error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent

from wasmsand.tools import rendering


def succeeded(result: Mapping[str, Any]) -> CallToolResult:
    """The result of a tool that succeeded."""
    content: list[ContentBlock] = [TextContent(type="text", text=rendering.text_of(result))]
    content += [
        ImageContent(type="image", data=image.base64, mime_type=image.mime_type)
        for image in rendering.images_of(result)
    ]
    return CallToolResult(content=content, structured_content=rendering.without_images(result))


def failed(error: Exception) -> CallToolResult:
    """The result of a tool that failed."""
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
