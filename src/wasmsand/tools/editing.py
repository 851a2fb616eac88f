"""Exact replacement of text in a file's bytes, and an error that helps to do it right; lines
of a text.

Rules: nothing is guessed. The text stands there, and only once unless all are meant, or
nothing changes and the message says what is there instead. What a text of many short lines
takes is not many times its size.
"""

from __future__ import annotations

import re

from wasmsand.tools.parameters import InvalidToolInput

_LINES_NAMED = 5
_PIECE = 1 << 18


def select_lines(text: str, first: int, last: int | None) -> tuple[str, int]:
    """Lines `first` up to before `last` (None: to the end) as `str.splitlines` counts them from
    0, and how many there are in all."""
    wanted: list[str] = []
    count = 0
    rest = ""
    for start in range(0, len(text), _PIECE):
        lines = (rest + text[start : start + _PIECE]).splitlines(keepends=True)
        # The last one may go on, and its line end too.
        rest = lines.pop() if start + _PIECE < len(text) else ""
        begin = max(0, first - count)
        wanted.append("".join(lines[begin : None if last is None else max(begin, last - count)]))
        count += len(lines)
    return "".join(wanted), count


def replace(
    content: bytes, old: str, new: str, *, replace_all: bool, path: str, most: int
) -> tuple[bytes, int]:
    """`content` with `old` replaced by `new`, and how often. Raises `InvalidToolInput`, also if
    that would be more than `most` bytes."""
    if old == new:
        raise InvalidToolInput("old_string and new_string are the same: nothing to change")
    wanted = old.encode("utf-8")
    count = content.count(wanted)
    if count == 0:
        raise InvalidToolInput(f"old_string does not occur in {path}{_near_miss(content, old)}")
    if count > 1 and not replace_all:
        raise InvalidToolInput(
            f"old_string occurs {count} times in {path} (lines {_lines(content, wanted)}): add "
            "surrounding text until it is unique, or set replace_all to true"
        )
    replacement = new.encode("utf-8")
    size = len(content) + count * (len(replacement) - len(wanted))
    if size > most:
        raise InvalidToolInput(
            f"{path} would have {size} bytes, but the file system has only {most} (fs_limit_bytes)"
        )
    return content.replace(wanted, replacement), count


def _lines(content: bytes, wanted: bytes) -> str:
    """The numbers of the first lines where `wanted` begins."""
    numbers: list[str] = []
    position = content.find(wanted)
    while position >= 0 and len(numbers) <= _LINES_NAMED:
        numbers.append(str(content.count(b"\n", 0, position) + 1))
        position = content.find(wanted, position + len(wanted))
    if len(numbers) > _LINES_NAMED:
        numbers[_LINES_NAMED:] = ["..."]
    return ", ".join(numbers)


def _near_miss(content: bytes, old: str) -> str:
    """What to do, and where a text is that differs only in its white space."""
    words = old.split()
    if words:
        pattern = rb"\s+".join(re.escape(word.encode("utf-8")) for word in words)
        found = re.search(pattern, content)
        if found:
            line = content.count(b"\n", 0, found.start()) + 1
            return (
                f"; a text that differs only in white space begins in line {line}: copy it "
                "from there exactly, with its indentation and line ends"
            )
    return ": read the file and copy the text exactly"
