"""The document and the explanations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.explanations import (
    BadExplanations,
    Explanation,
    load_explanations,
    needless,
)
from conformance.report import suite_text, update
from conformance.suite import Comparison, Outcome, Suite, Verdict

pytestmark = pytest.mark.no_userland

PASS = Outcome(Verdict.PASS, "", 1.0)
FAIL = Outcome(Verdict.FAIL, "-a\n", 2.0)


class Named:
    name = "sh"
    title = "A shell 1.0"


SUITE: Suite = Named()  # type: ignore[assignment]  # the report uses the names alone


def test_the_report_counts_and_explains() -> None:
    comparisons = [Comparison("t1", PASS, PASS), Comparison("t2", PASS, FAIL)]
    text = suite_text(SUITE, comparisons, [Explanation(("t2",), "no | here", "L009")])
    assert "A shell 1.0: **1 of 2 as native**." in text
    assert "| sandbox | 1 | 1 | 0 | 3 |" in text
    assert "| t2 | L009 | no \\| here |" in text
    assert "| t2 | pass | **fail** | 1.0 | 2.0 |" in text


def test_a_difference_without_explanation_is_called_that() -> None:
    text = suite_text(SUITE, [Comparison("t2", PASS, FAIL)], [])
    assert "| t2 | - | **unexplained** |" in text


def test_only_the_text_between_the_markers_changes(tmp_path: Path) -> None:
    document = tmp_path / "conformance.md"
    document.write_text("before\n<!-- sh: begin -->\nold\n<!-- sh: end -->\nafter\n")
    update(document, SUITE, "new")
    update(document, SUITE, "new")
    assert document.read_text() == (
        "before\n<!-- sh: begin -->\n\nnew\n\n<!-- sh: end -->\nafter\n"
    )


def test_a_document_without_markers_is_an_error(tmp_path: Path) -> None:
    document = tmp_path / "conformance.md"
    document.write_text("nothing\n")
    with pytest.raises(ValueError, match="sh: begin"):
        update(document, SUITE, "new")


def test_an_explanation_of_a_test_that_is_skipped_in_the_sandbox_alone_is_needed() -> None:
    entry = Explanation(("t1",), "why", None)
    skipped = Outcome(Verdict.SKIP, "", 1.0)
    assert needless([Comparison("t1", PASS, skipped)], [entry]) == []
    assert needless([Comparison("t1", skipped, skipped)], [entry]) == ["t1"]


def test_an_explanation_of_a_passing_test_is_needless() -> None:
    entry = Explanation(("t1", "t2"), "why", None)
    comparisons = [Comparison("t1", PASS, PASS), Comparison("t2", PASS, FAIL)]
    assert needless(comparisons, [entry]) == ["t1"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[sh]]\ntests = []\nbecause = 'x'", "tests must be"),
        ("[[sh]]\ntests = ['a']\nbecause = ' '", "because must"),
        ("[[sh]]\ntests = ['a']\nbecause = 'x'\nwhy = 'y'", "'why' is not a field"),
    ],
)
def test_a_bad_explanation_names_the_entry(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "explanations.toml"
    file.write_text(text)
    with pytest.raises(BadExplanations, match=rf"sh\[0\]: .*{complaint}"):
        load_explanations(file)


def test_limitations_named_in_explanations_exist(repository: Path) -> None:
    known = set(re.findall(r"^\| (L\d+) ", (repository / "docs/limitations.md").read_text(), re.M))
    for entries in load_explanations().values():
        for entry in entries:
            assert entry.limitation is None or entry.limitation in known
