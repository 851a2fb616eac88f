"""Renders the answer of a tool: text for a model to read, and images beside it.

Rules: output is shown unchanged, with remarks in brackets, because models read it more easily than
JSON. The text is never empty: some APIs refuse that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Image:
    """An image of an answer."""

    mime_type: str
    base64: str


def text_of(answer: Mapping[str, Any]) -> str:
    """The answer as text."""
    if "error" in answer:
        return f"Error: {answer['error']['message']}"
    if "exit_code" in answer and "stdout" in answer:
        text = _command_text(answer)
    elif "output" in answer and "running" in answer:
        text = _process_text(answer)
    elif "content" in answer:
        text = _file_text(answer)
    elif isinstance(answer.get("text"), str):
        text = answer["text"]
    elif "patch" in answer:
        text = _diff_text(answer)
    elif "image" in answer:
        text = f"[an image of {answer['size']} bytes]"
    else:
        text = json.dumps(answer, ensure_ascii=False)
    return text or "[empty]"


def images_of(answer: Mapping[str, Any]) -> list[Image]:
    """The images that the answer contains."""
    items = [answer, *answer.get("results", ())]
    found = [item["image"] for item in items if "image" in item]
    return [Image(each["mime_type"], each["base64"]) for each in found if "base64" in each]


def without_images(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, of images only their types and sizes."""

    def plain(item: Mapping[str, Any]) -> dict[str, Any]:
        if "image" not in item:
            return dict(item)
        kept = {name: value for name, value in item["image"].items() if name != "base64"}
        return {**item, "image": kept}

    described = plain(answer)
    if "results" in answer:
        described["results"] = [plain(item) for item in answer["results"]]
    return described


def _command_text(answer: Mapping[str, Any]) -> str:
    parts = [_line(answer["stdout"])]
    if answer["stderr"]:
        parts.append(f"[stderr]\n{_line(answer['stderr'])}")
    results = answer.get("results", ())
    for item in results:
        if "text" in item:
            parts.append(f"[result]\n{_line(item['text'])}")
        path = item.get("image", {}).get("path")
        if path:
            parts.append(f"[image saved in {path}]\n")
    remarks = [f"exit code {answer['exit_code']}"]
    if not answer["stdout"] and not answer["stderr"] and not results:
        remarks.append("no output")
    parts.append(_remarks(answer, remarks))
    return "".join(parts)


def _process_text(answer: Mapping[str, Any]) -> str:
    code = answer.get("exit_code")
    remarks = [f"{answer['id']} is running"]
    if not answer["running"]:
        remarks = [f"{answer['id']} has ended" + ("" if code is None else f": exit code {code}")]
    if not answer["output"]:
        remarks.append("no new output")
    return _line(answer["output"]) + _remarks(answer, remarks)


def _file_text(answer: Mapping[str, Any]) -> str:
    remarks = []
    if answer["encoding"] != "utf-8":
        remarks.append("not UTF-8 text: this is base64")
    if answer["truncated"]:
        remarks.append(f"cut here; the file has {answer['size']} bytes")
    text = str(answer["content"])
    return f"{_line(text)}[{'; '.join(remarks)}]" if remarks else text


def _diff_text(answer: Mapping[str, Any]) -> str:
    counts = [
        f"{name}: {', '.join(answer[name])}"
        for name in ("added", "changed", "removed", "conflicts")
        if answer[name]
    ]
    return "\n".join([*counts, answer["patch"]]) if counts else "[no changes]"


def _remarks(answer: Mapping[str, Any], remarks: list[str]) -> str:
    if "note" in answer:
        remarks.append(answer["note"])
    return f"[{'; '.join(remarks)}]"


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
