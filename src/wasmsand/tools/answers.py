"""Answers to tool calls in the formats of model APIs.

Owns the reading of a call that an API has returned, as an object of its package or as a dict, and
the message that answers it. Rules: no vendor's package is imported. What a model wrote never raises
an exception: arguments that are not JSON are an error for the model. Images are sent where the API
takes them in an answer, and are files of the sandbox otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from wasmsand.tools.rendering import images_of, text_of

Handle = Callable[[str, object, bool], dict[str, Any]]
"""Executes a call: name, input, whether the answer may have images."""


def anthropic_answer(handle: Handle, block: object) -> dict[str, Any]:
    """The `tool_result` block for a `tool_use` block."""
    answer = handle(_field(block, "name"), _field(block, "input"), True)
    content: list[dict[str, Any]] = [{"type": "text", "text": text_of(answer)}]
    content += [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": image.mime_type, "data": image.base64},
        }
        for image in images_of(answer)
    ]
    result = {
        "type": "tool_result",
        "tool_use_id": _field(block, "id"),
        "content": content,
    }
    return {**result, "is_error": True} if "error" in answer else result


def openai_answer(handle: Handle, call: object) -> dict[str, Any]:
    """The message for a tool call of chat completions, or the `function_call_output` for a
    `function_call` of responses."""
    function = _field(call, "function")
    if function is not None:  # chat completions take only text
        answer = handle(_field(function, "name"), parsed(_field(function, "arguments")), False)
        return {"role": "tool", "tool_call_id": _field(call, "id"), "content": text_of(answer)}
    answer = handle(_field(call, "name"), parsed(_field(call, "arguments")), True)
    output: str | list[dict[str, Any]] = text_of(answer)
    if images := images_of(answer):
        output = [{"type": "input_text", "text": output}]
        output += [
            {"type": "input_image", "image_url": f"data:{image.mime_type};base64,{image.base64}"}
            for image in images
        ]
    return {"type": "function_call_output", "call_id": _field(call, "call_id"), "output": output}


def gemini_answer(handle: Handle, call: object) -> dict[str, Any]:
    """The part with the `functionResponse` for a `functionCall`."""
    name = _field(call, "name")
    answer = handle(name, _field(call, "args") or {}, False)
    key = "error" if "error" in answer else "output"
    response: dict[str, Any] = {"name": name, "response": {key: text_of(answer)}}
    if (identity := _field(call, "id")) is not None:
        response["id"] = identity
    return {"functionResponse": response}


def parsed(sent: object) -> object:
    """Arguments that are JSON in a string. What is not JSON stays what it is, and is refused when
    the tool is called."""
    if not isinstance(sent, str):
        return sent
    try:
        return json.loads(sent or "{}")
    except (ValueError, RecursionError):
        return sent


def _field(source: object, name: str) -> Any:
    if isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)
