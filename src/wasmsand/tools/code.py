"""`sandbox_python`: runs code in the interpreter that the tools keep, as a cell of a notebook.

Rules: the answer says whether variables are kept or lost, whenever that is not obvious. A model
gets each result in the form that says most: its best text, and images. Images are large, so they
are in the answer only if the caller can show them to the model; otherwise they are files of the
sandbox.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import DisplayItem, PythonResult
from wasmsand.tools.images import IMAGE_BYTES_MAX, SUFFIXES, image_item
from wasmsand.tools.live_sessions import Interrupter
from wasmsand.tools.shell_tool import end_note
from wasmsand.tools.workbench import Workbench, shortened

_EMPTY_TEXT: Final = re.compile(r"<[\w.]+( object| size)[^<>]*>")
"""The text of objects that have no better one: `<Figure size 640x480 with 1 Axes>`."""
_TIMEOUT, _KILLED = 124, 137
_RESULTS_MAX, _IMAGES_MAX = 32, 8
"""Results, and images among them, in one answer to a model."""


def run_code(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the code, and describe what it did."""
    observer = bench.observer
    timeout_ms = given["timeout_ms"] or bench.sandbox.options.timeout_ms
    printed = None if observer is None else observer.printed
    interrupter = Interrupter()

    def request(session: PythonSession) -> PythonResult:
        if observer is not None:
            observer.started(interrupter)
        with nullcontext() if observer is None else interrupter.watching():
            return session.run(
                given["code"], timeout_ms=timeout_ms, on_stdout=printed, on_stderr=printed
            )

    with bench.live.python.turn(timeout_ms, fresh=given["reset"]) as turn:
        result = turn.run(request)
        exit_code, message = _status(result, turn.session.exit_code)
        notes = [turn.note, end_note(result, turn)]
    stderr = result.stderr + _encodable(message)
    described: dict[str, Any] = {
        "exit_code": exit_code,
        "stdout": shortened(bench, result.stdout, result.stdout.encode(), "stdout"),
        "stderr": shortened(bench, stderr, stderr.encode(), "stderr"),
        "execution_time_ms": round(result.execution_time_ms),
    }
    if result.results:
        described["results"] = _results(bench, result.results)
    if (more := len(result.results) - _RESULTS_MAX) > 0:
        notes.append(f"{more} results left out")
    if note := "; ".join(note for note in notes if note):
        described["note"] = note
    return described


def _results(bench: Workbench, items: Sequence[DisplayItem]) -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = []
    images = 0
    for item in items[:_RESULTS_MAX]:
        with_images = bench.with_images and images < _IMAGES_MAX
        described.append(_described(bench, item, with_images))
        images += "base64" in described[-1].get("image", ())
    return described


def _status(result: PythonResult, ended: int | None) -> tuple[int, str]:
    """The exit code that a program with this result has, and what it prints at its end."""
    if result.timed_out:
        return _TIMEOUT, ""
    if result.truncated:
        return _KILLED, ""
    error = result.error
    if error is None:
        return 0, ""
    if error.type == "InterpreterEnded":
        return (_KILLED if ended is None else ended), ""
    if error.type == "SystemExit":
        if error.message in ("", "None"):
            return 0, ""
        if re.fullmatch(r"-?\d{1,9}", error.message):
            return int(error.message) & 0xFF, ""
        return 1, f"{error.message}\n"
    return 1, error.traceback


def _described(bench: Workbench, item: DisplayItem, with_images: bool) -> dict[str, Any]:
    """An item for a model."""
    described: dict[str, Any] = {}
    text = best_text(item)
    if text is not None:
        text = _encodable(text)
        described["text"] = shortened(bench, text, text.encode(), "txt")
    for mime, suffix in SUFFIXES.items():
        data = item.data.get(mime)
        if not isinstance(data, bytes) or "image" in described:
            continue
        if with_images and len(data) <= IMAGE_BYTES_MAX:
            described["image"] = image_item(data, mime)
        else:
            path = bench.outputs.save(data, suffix)
            described["image"] = {"mime_type": mime, "size": len(data), "path": path}
    return described


def _encodable(text: str) -> str:
    """Text without the surrogates that a Python program can have in its strings."""
    return text.encode("utf-8", "replace").decode()


def best_text(item: DisplayItem) -> str | None:
    """The form of an item that says most to a reader of text; None if only an image does."""
    for form in (item.markdown, item.latex):
        if form:
            return form
    plain = item.text
    if plain is not None and not _EMPTY_TEXT.fullmatch(plain):
        return plain
    if item.json is not None:
        return json.dumps(item.json, ensure_ascii=False)
    if item.png is None and item.jpeg is None:
        for form in (item.svg, item.html, plain):
            if form:
                return form
    return None
