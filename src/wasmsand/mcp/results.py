"""Formats a tool's result: as text for the model, and as JSON for programs.

Rules: the text shows output unchanged, with remarks in brackets; the JSON beside it is complete,
except for images, which are content of their own. A
tool that fails gives a result with `isError`, so that the model sees it and can try again; only an
unknown tool is a protocol error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, ContentBlock, ImageContent, TextContent

from wasmsand.tools import definitions


def succeeded(tool: str, result: Mapping[str, Any]) -> CallToolResult:
    """The result of a tool that succeeded."""
    if tool in (definitions.RUN.name, definitions.PYTHON.name):
        text = _command_text(result)
    elif tool == definitions.READ_FILE.name:
        text = _file_text(result)
    else:
        text = json.dumps(result, ensure_ascii=False)
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    structured = dict(result)
    if "results" in result:
        structured["results"] = items = []
        for item in result["results"]:
            image = dict(item.get("image", {}))
            data = image.pop("base64", None)
            if data is not None:
                content.append(ImageContent(type="image", data=data, mime_type=image["mime_type"]))
            items.append({**item, "image": image} if image else item)
    return CallToolResult(content=content, structured_content=structured)


def failed(error: Exception) -> CallToolResult:
    """The result of a tool that failed."""
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)


def _command_text(result: Mapping[str, Any]) -> str:
    parts = [_line(result["stdout"])]
    if result["stderr"]:
        parts.append(f"[stderr]\n{_line(result['stderr'])}")
    results = result.get("results", ())
    parts += [f"[result]\n{_line(item['text'])}" for item in results if "text" in item]
    remarks = [f"exit code {result['exit_code']}"]
    if not result["stdout"] and not result["stderr"] and not results:
        remarks.append("no output")
    if "note" in result:
        remarks.append(result["note"])
    parts.append(f"[{'; '.join(remarks)}]")
    return "".join(parts)


def _file_text(result: Mapping[str, Any]) -> str:
    remarks = []
    if result["encoding"] != "utf-8":
        remarks.append("not UTF-8 text: this is base64")
    if result["truncated"]:
        remarks.append(f"cut here; the file has {result['size']} bytes")
    text = str(result["content"])
    return f"{_line(text)}[{'; '.join(remarks)}]" if remarks else text


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
