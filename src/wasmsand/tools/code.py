"""`sandbox_python`: runs code in a new interpreter, as a cell of a notebook.

Rules: the interpreter ends as a program ends, so threads finish and files are written. A model gets
each result in the form that says most: its best text, and images. Images are large, so they are in
the answer only if the caller can show them to the model; otherwise they are files of the sandbox.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import CommandResult, DisplayItem, PythonResult
from wasmsand.tools.workbench import Workbench, note_of, shortened

_IMAGES: Final = {"image/png": "png", "image/jpeg": "jpg"}
_EMPTY_TEXT: Final = re.compile(r"<[\w.]+( object| size)[^<>]*>")
"""The text of objects that have no better one: `<Figure size 640x480 with 1 Axes>`."""
_TIMEOUT, _KILLED = 124, 137
_RESULTS_MAX, _IMAGES_MAX = 32, 8
"""Results, and images among them, in one answer to a model."""


def run_code(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the code, and describe what it did."""
    sandbox, observer = bench.sandbox, bench.observer
    timeout_ms = given["timeout_ms"] or sandbox.options.timeout_ms
    with sandbox.python(env=given["env"], cwd=given["cwd"], stdin=given["stdin"] or "") as session:
        if observer is not None:
            observer.started(_Killable(session))
        printed = None if observer is None else observer.printed
        result = session.run(
            given["code"], timeout_ms=timeout_ms, on_stdout=printed, on_stderr=printed
        )
        rest = None
        if not session.closed and not result.timed_out and not result.truncated:
            left = None if timeout_ms is None else max(1.0, timeout_ms - result.execution_time_ms)
            rest = session.finish(timeout_ms=left)
        exit_code, message = _status(result, rest, session.exit_code)
    stdout, stderr = result.stdout, result.stderr + _encodable(message)
    milliseconds = result.execution_time_ms
    if rest is not None:
        stdout, stderr = stdout + rest.stdout, stderr + rest.stderr
        milliseconds += rest.execution_time_ms
    described: dict[str, Any] = {
        "exit_code": exit_code,
        "stdout": shortened(bench, stdout, stdout.encode(), "stdout"),
        "stderr": shortened(bench, stderr, stderr.encode(), "stderr"),
        "execution_time_ms": round(milliseconds),
    }
    if result.results:
        described["results"] = _results(bench, result.results)
    notes = [note_of(result) or (rest and note_of(rest))]
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
        images += "image" in described[-1]
    return described


class _Killable:
    def __init__(self, session: PythonSession) -> None:
        self._session = session

    def kill(self) -> None:
        self._session.close()


def _status(result: PythonResult, rest: CommandResult | None, ended: int | None) -> tuple[int, str]:
    """The exit code that a program with this result has, and what it prints at its end."""
    if result.timed_out or (rest is not None and rest.timed_out):
        return _TIMEOUT, ""
    if result.truncated:
        return _KILLED, ""
    error = result.error
    if error is None:
        return (0 if rest is None else rest.exit_code), ""
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
    for mime, suffix in _IMAGES.items():
        data = item.data.get(mime)
        if not isinstance(data, bytes) or "image" in described:
            continue
        image: dict[str, Any] = {"mime_type": mime, "size": len(data)}
        if with_images:
            image["base64"] = base64.b64encode(data).decode("ascii")
        else:
            image["path"] = bench.outputs.save(data, suffix)
        described["image"] = image
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
