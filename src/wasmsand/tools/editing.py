"""Exact replacement of text in a file's bytes, and an error that helps to do it right.

Rules: nothing is guessed. The text stands there, and only once unless all are meant, or
nothing changes and the message says what is there instead.
"""

from __future__ import annotations

import re

from wasmsand.tools.parameters import InvalidToolInput

_LINES_NAMED = 5


def replace(
    content: bytes, old: str, new: str, *, replace_all: bool, path: str
) -> tuple[bytes, int]:
    """`content` with `old` replaced by `new`, and how often. Raises `InvalidToolInput`."""
    if old == new:
        raise InvalidToolInput("old_string and new_string are the same: there is nothing to change")
    wanted = old.encode("utf-8")
    count = content.count(wanted)
    if count == 0:
        raise InvalidToolInput(f"old_string does not stand in {path}{_near_miss(content, old)}")
    if count > 1 and not replace_all:
        raise InvalidToolInput(
            f"old_string stands {count} times in {path} (lines {_lines(content, wanted)}): add "
            "text around it until it is unique, or set replace_all to true"
        )
    return content.replace(wanted, new.encode("utf-8")), count


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
