"""Replaces exact text in a file's content, and selects lines of a text.

Rules: nothing is guessed. If the text does not occur, or occurs more than once without
`replace_all`, nothing changes, and the error helps the model to correct its call. Selecting lines
takes little memory, even if a text has very many short lines.
"""

from __future__ import annotations

import re

from wasmsand.tools.parameters import InvalidToolInput

_LINES_NAMED = 5
_PIECE = 1 << 18


def select_lines(text: str, first: int, last: int | None) -> tuple[str, int]:
    """The lines from `first` up to but not including `last` (None: to the end), and the number of
    all lines. Lines are those of `str.splitlines`, counted from 0."""
    wanted: list[str] = []
    count = 0
    rest = ""
    for start in range(0, len(text), _PIECE):
        lines = (rest + text[start : start + _PIECE]).splitlines(keepends=True)
        # The last line, or its line end, may continue in the next piece.
        rest = lines.pop() if start + _PIECE < len(text) else ""
        begin = max(0, first - count)
        wanted.append("".join(lines[begin : None if last is None else max(begin, last - count)]))
        count += len(lines)
    return "".join(wanted), count


def replace(
    content: bytes, old: str, new: str, *, replace_all: bool, path: str, most: int
) -> tuple[bytes, int]:
    """`content` with `old` replaced by `new`, and the number of replacements. Raises
    `InvalidToolInput`, also if the result would have more than `most` bytes."""
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
    """What to do; if a similar text differs only in white space, where it is."""
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
