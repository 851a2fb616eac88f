"""The commands of Anthropic's text editor tool: view, create, str_replace, insert.

Rules: answers are text, in the form that the models know: lines are numbered as by `cat -n`, and a
change is answered with the lines around it. Errors say what was wrong and what to do. Nothing
changes if a command fails.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, Final

from wasmsand.tools.actions import content_of
from wasmsand.tools.images import IMAGE_BYTES_MAX, image_item, image_type
from wasmsand.tools.parameters import InvalidToolInput
from wasmsand.tools.workbench import Workbench

EDITED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Largest file that the editor views or changes."""
_AROUND: Final = 4
"""Lines to show before and after a change."""
_LISTED_MAX: Final = 1_000
_LEVELS: Final = 2


def edit(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one command."""
    return _ACTIONS[given["command"]](bench, given)


def _view(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    path, wanted = given["path"], given["view_range"]
    if bench.sandbox.files.stat(path).type == "dir":
        if wanted is not None:
            raise InvalidToolInput("view_range can be used only with a file, not a directory")
        return {"text": _tree(bench, path)}
    content = content_of(bench, path, EDITED_BYTES_MAX)
    mime = image_type(content)
    if bench.with_images and mime and wanted is None and len(content) <= IMAGE_BYTES_MAX:
        return {"size": len(content), "image": image_item(content, mime)}
    lines = _text(content, path).splitlines(keepends=True)
    first, last = _range(wanted, len(lines))
    return {"text": _shown(bench, path, lines, first, last)}


def _create(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    path, text = given["path"], given["file_text"]
    if text is None:
        raise InvalidToolInput("file_text is missing: it is needed by the command create")
    existed = bench.sandbox.files.exists(path)
    bench.sandbox.files.write(path, text)
    what = "replaced" if existed else "created"
    return {"text": f"File {what} successfully: {path}"}


def _str_replace(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    path, old, new = given["path"], given["old_str"], given["new_str"] or ""
    if not old:
        raise InvalidToolInput("old_str is missing: it is needed by the command str_replace")
    text = _text(content_of(bench, path, EDITED_BYTES_MAX), path)
    count = text.count(old)
    if count == 0:
        raise InvalidToolInput(
            f"No match found for replacement: old_str does not occur in {path}. View the file, and "
            "copy the text exactly, with its indentation."
        )
    if count > 1:
        raise InvalidToolInput(
            f"Found {count} matches for replacement text in {path} (lines {_lines_of(text, old)}). "
            "Provide more context to make a unique match."
        )
    before = text[: text.index(old)]
    changed = text.replace(old, new)
    _check_size(bench, changed, path)
    bench.sandbox.files.write(path, changed)
    first = before.count("\n")
    return {"text": _changed(path, changed, first, first + new.count("\n") + 1)}


def _insert(bench: Workbench, given: Mapping[str, Any]) -> dict[str, Any]:
    path, at = given["path"], given["insert_line"]
    # Earlier versions of the tool call it new_str.
    new = given["insert_text"] if given["insert_text"] is not None else given["new_str"]
    if at is None:
        raise InvalidToolInput("insert_line is missing: it is needed by the command insert")
    if new is None:
        raise InvalidToolInput("insert_text is missing: it is needed by the command insert")
    lines = _text(content_of(bench, path, EDITED_BYTES_MAX), path).split("\n")
    ends_with_line = lines[-1] == ""
    if ends_with_line:
        lines.pop()
    if at > len(lines):
        raise InvalidToolInput(
            f"insert_line is {at}, but {path} has only {len(lines)} lines; 0 inserts at the "
            "beginning"
        )
    added = new.removesuffix("\n").split("\n")
    lines[at:at] = added
    changed = "\n".join(lines) + ("\n" if ends_with_line or new.endswith("\n") else "")
    _check_size(bench, changed, path)
    bench.sandbox.files.write(path, changed)
    return {"text": _changed(path, changed, at, at + len(added))}


_ACTIONS: Final[Mapping[str, Callable[[Workbench, Mapping[str, Any]], dict[str, Any]]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
}


def _text(content: bytes, path: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidToolInput(
            f"{path} is not UTF-8 text; look at it with the commands file and xxd"
        ) from None


def _check_size(bench: Workbench, text: str, path: str) -> None:
    most = bench.sandbox.options.fs_limit_bytes
    if len(text) > most:
        raise InvalidToolInput(f"{path} would be larger than the file system ({most} bytes)")


def _range(wanted: list[int] | None, total: int) -> tuple[int, int]:
    """The first line, from 0, and the end of the lines to show."""
    if wanted is None:
        return 0, total
    if len(wanted) != 2:
        raise InvalidToolInput("view_range must have two numbers: the first and the last line")
    first, last = wanted
    if not 1 <= first <= max(total, 1):
        raise InvalidToolInput(f"view_range begins at line {first}, but the file has {total} lines")
    if last == -1:
        return first - 1, total
    if last < first:
        raise InvalidToolInput(f"view_range ends at line {last}, before line {first}")
    return first - 1, min(last, total)


def _shown(bench: Workbench, path: str, lines: list[str], first: int, last: int) -> str:
    """Numbered lines, up to the output limit."""
    pieces: list[str] = []
    size = 0
    for number in range(first, last):
        line = lines[number].rstrip("\r\n")
        piece = f"{number + 1:6}\t{line}\n"
        size += len(piece)
        if size > bench.output_limit:
            pieces.append(
                f"[cut here: {path} has {len(lines)} lines; use view_range to see lines from "
                f"{number + 1}]"
            )
            break
        pieces.append(piece)
    return "".join(pieces) or "[the file is empty]"


def _changed(path: str, text: str, first: int, last: int) -> str:
    """The answer to a change of the lines from `first` up to `last`, counted from 0."""
    lines = text.splitlines()
    begin, end = max(0, first - _AROUND), min(len(lines), last + _AROUND)
    shown = [f"{n + 1:6}\t{lines[n][:500]}" for n in range(begin, min(end, begin + 200))]
    return "\n".join([f"{path} has been edited. The lines around the change:", *shown])


def _lines_of(text: str, old: str) -> str:
    numbers: list[str] = []
    position = text.find(old)
    while position >= 0 and len(numbers) < 5:
        numbers.append(str(text.count("\n", 0, position) + 1))
        position = text.find(old, position + len(old))
    return ", ".join(numbers) + (", ..." if position >= 0 else "")


def _tree(bench: Workbench, path: str) -> str:
    """The names in a directory, two levels deep, without hidden ones."""
    found: list[str] = []

    def visit(directory: str, depth: int) -> None:
        for entry in bench.sandbox.files.list(directory):
            if entry.name.startswith(".") or len(found) > _LISTED_MAX:
                continue
            below = posixpath.join(directory, entry.name)
            is_directory = entry.type == "dir"
            found.append(f"{below}/" if is_directory else f"{below}  ({entry.size} bytes)")
            if is_directory and depth < _LEVELS:
                visit(below, depth + 1)

    visit(path, 1)
    names = [name.encode("utf-8", "replace").decode() for name in found[:_LISTED_MAX]]
    more = ["[more entries left out]"] if len(found) > _LISTED_MAX else []
    return "\n".join([f"Files in {path}, up to {_LEVELS} levels deep:", *names, *more])
