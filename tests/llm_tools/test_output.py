"""Long text is cut in the middle: both ends stay, and the cut is visible."""

from __future__ import annotations

import pytest

from wasmsand.tools.output import head_and_tail

pytestmark = pytest.mark.no_userland


def test_short_text_is_left_alone() -> None:
    assert head_and_tail("abc", 3, "there") == "abc"


def test_lines_are_kept_whole() -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    cut = head_and_tail(text, 100, "all is there")
    before, after = cut.split("[... ")
    note, after = after.split(" ...]\n")
    assert text.startswith(before)
    assert before.endswith("\n")
    assert text.endswith(after)
    assert after.startswith("line ")
    count = int(note.split(" characters left out; all is there")[0])
    assert count == len(text) - len(before) - len(after)


def test_one_long_line_is_cut_in_the_middle() -> None:
    cut = head_and_tail("a" * 1000 + "b" * 1000, 100, "x")
    assert cut == "a" * 50 + "\n[... 1900 characters left out; x ...]\n" + "b" * 50
