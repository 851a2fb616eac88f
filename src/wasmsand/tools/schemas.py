"""Tool definitions in the formats of model APIs.

Rules: plain data, created anew at each call; no vendor's package is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from wasmsand.tools.definitions import ToolDefinition

OpenAIApi = Literal["chat", "responses"]


def anthropic(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """For Anthropic's Messages API."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema()}
        for tool in tools
    ]


def openai(tools: Iterable[ToolDefinition], *, api: OpenAIApi = "chat") -> list[dict[str, Any]]:
    """For OpenAI's APIs. `"chat"` completions nest the function, `"responses"` do not."""
    functions = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema(),
            # Strict mode supports neither optional parameters nor objects with arbitrary keys.
            "strict": False,
        }
        for tool in tools
    ]
    if api == "chat":
        return [{"type": "function", "function": function} for function in functions]
    if api == "responses":
        return [{"type": "function", **function} for function in functions]
    raise ValueError(f'api must be "chat" or "responses", not {api!r}')


def gemini(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """For Google's Gemini API."""
    return [
        {
            "functionDeclarations": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema(),
                }
                for tool in tools
            ]
        }
    ]
