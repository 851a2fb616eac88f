"""Every difference between two outcomes is reported, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.comparison import differences
from tests.differential.outcome import Left, Outcome

pytestmark = pytest.mark.no_userland

FILE = Left("-", "0644", 1, b"content\n")
BASE = Outcome(0, b"out\n", b"err\n", {"f": FILE})


def test_equal_outcomes_do_not_differ() -> None:
    assert differences(BASE, replace(BASE, files={"f": replace(FILE)})) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(BASE, exit_code=1), "exit code: natively 0, here 1"),
        (replace(BASE, stdout=b"out"), "stdout"),
        (replace(BASE, stderr=b""), "stderr"),
        (replace(BASE, files={}), "file f: only natively"),
        (replace(BASE, files={"f": FILE, "g": FILE}), "file g: only here"),
        (replace(BASE, files={"f": replace(FILE, mode="0600")}), "mode: natively 0644, here 0600"),
        (replace(BASE, files={"f": replace(FILE, links=2)}), "links: natively 1, here 2"),
        (replace(BASE, files={"f": replace(FILE, kind="l")}), "kind: natively -, here l"),
        (replace(BASE, files={"f": replace(FILE, content=b"\xff")}), "\\xff"),
    ],
)
def test_a_difference_is_told(other: Outcome, told: str) -> None:
    found = differences(BASE, other)
    assert len(found) == 1
    assert told in found[0]


def test_what_is_ignored_does_not_differ() -> None:
    other = replace(BASE, stdout=b"", stderr=b"", files={})
    assert differences(BASE, other, {"stdout", "stderr", "files"}) == []
