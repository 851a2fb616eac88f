"""The conformance document, and the explanations of differences."""

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
from conformance.report import section, update
from conformance.suite import Comparison, Outcome, Suite, Verdict

pytestmark = pytest.mark.no_userland

PASS = Outcome(Verdict.PASS, "", 1.0)
FAIL = Outcome(Verdict.FAIL, "-a\n", 2.0)


class Named:
    name = "sh"
    title = "A shell 1.0"
    patience = 1.0


class Other:
    name = "ed"
    title = "An editor 2"
    patience = 1.0


SUITE: Suite = Named()  # type: ignore[assignment]  # the report uses the names alone


MARKED = """\
before
<!-- summary: begin -->
<!-- summary: end -->
between
<!-- sh: begin -->
old
<!-- sh: end -->
after
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "conformance.md"
    file.write_text(MARKED)
    return file


def test_a_section_counts_and_explains() -> None:
    comparisons = [Comparison("t1", PASS, PASS), Comparison("t2", PASS, FAIL)]
    text = section(SUITE, comparisons, [Explanation(("t2",), "no | here", "L009")])
    assert "A shell 1.0: 1 of 2 as native. Of 2 tests that pass natively, 1 pass" in text
    assert "(**50.0%**)" in text
    assert "| sandbox | 1 | 1 | 0 |" in text
    assert "| t2 | L009 | no \\| here |" in text


def test_a_section_counts_differences_by_limitation() -> None:
    skip = Outcome(Verdict.SKIP, "", 0.1)
    comparisons = [Comparison(name, PASS, FAIL) for name in ("t1", "t2", "t3")]
    comparisons.append(Comparison("t4", PASS, skip))
    explanations = [
        Explanation(("t1", "t4"), "why", "L009"),
        Explanation(("t2",), "why", "L002"),
        Explanation(("t3",), "why", None),
        Explanation(("t1",), "why else", "L002"),
    ]
    text = section(SUITE, comparisons, explanations)
    assert "4 differ, of which 3 fail in the sandbox and 1 are skipped there." in text
    assert "By limitation: L002 2, L009 2, another cause 1." in text


def test_tests_with_one_cause_share_a_row() -> None:
    comparisons = [Comparison(name, PASS, FAIL) for name in ("t1", "t2", "t3")]
    text = section(SUITE, comparisons, [Explanation(("t1", "t3", "t9"), "why", None)])
    assert "| t1, t3 | - | why |" in text
    assert "| t2 | - | **unexplained** |" in text


def test_a_failure_on_both_sides_needs_no_explanation() -> None:
    text = section(SUITE, [Comparison("t2", FAIL, FAIL)], [])
    assert "Tests that fail on both sides:" in text
    assert "| t2 | - |  |" in text


def test_only_the_text_between_the_markers_changes(document: Path) -> None:
    for _ in range(2):
        update(document, SUITE, [Comparison("t1", PASS, PASS)], [])
    text = document.read_text()
    assert text.startswith("before\n<!-- summary: begin -->\n\n| suite ")
    assert "<!-- summary: end -->\nbetween\n<!-- sh: begin -->\n\nA shell 1.0: 1 of 1" in text
    assert text.endswith("\n\n<!-- sh: end -->\nafter\n")
    assert "old" not in text


def test_the_summary_has_a_row_per_suite_and_a_sum(document: Path) -> None:
    text = document.read_text()
    document.write_text(text + "<!-- ed: begin -->\n<!-- ed: end -->\n")
    update(document, SUITE, [Comparison("t1", PASS, PASS), Comparison("t2", PASS, FAIL)], [])
    other: Suite = Other()  # type: ignore[assignment]
    update(document, other, [Comparison("t1", PASS, PASS), Comparison("t2", FAIL, FAIL)], [])
    text = document.read_text()
    assert "| [An editor 2](#ed) | 2 | 1 | 1 | 100.0% | 2 | 3 | 3 |\n" in text
    assert "| [A shell 1.0](#sh) | 2 | 2 | 1 | 50.0% | 1 | 2 | 3 |\n" in text
    assert "| all | 4 | 3 | 2 | 66.7% | 3 | 5 | 6 |\n" in text


def test_all_tests_are_listed_beside_the_document(document: Path) -> None:
    second = Outcome(Verdict.PASS, "", 2.0, tries=2)
    update(
        document, SUITE, [Comparison("t1", PASS, second, "ab12"), Comparison("t2", PASS, FAIL)], []
    )
    table = (document.parent / "conformance/sh.md").read_text()
    assert "| t1 | pass | pass (second try) | 1.0 | 2.0 | ab12 |" in table
    assert "| t2 | pass | **fail** | 1.0 | 2.0 | - |" in table
    assert "Tests by the sandbox's image: `ab12` 1." in document.read_text()


def test_a_document_without_markers_is_an_error(tmp_path: Path) -> None:
    document = tmp_path / "conformance.md"
    document.write_text("nothing\n")
    with pytest.raises(ValueError, match="sh: begin"):
        update(document, SUITE, [Comparison("t1", PASS, PASS)], [])


def test_a_test_that_is_skipped_only_in_the_sandbox_needs_its_explanation() -> None:
    entry = Explanation(("t1",), "why", None)
    skipped = Outcome(Verdict.SKIP, "", 1.0)
    assert needless([Comparison("t1", PASS, skipped)], [entry]) == []
    assert needless([Comparison("t1", skipped, skipped)], [entry]) == ["t1"]


def test_an_explanation_of_a_passing_test_is_reported() -> None:
    entry = Explanation(("t1", "t2"), "why", None)
    comparisons = [Comparison("t1", PASS, PASS), Comparison("t2", PASS, FAIL)]
    assert needless(comparisons, [entry]) == ["t1"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[sh]]\ntests = []\nbecause = 'x'", "tests must be"),
        ("[[sh]]\ntests = ['a']\nbecause = ' '", "because must"),
        ("[[sh]]\ntests = ['a']\nbecause = 'x'\nwhy = 'y'", "'why' is an unknown field"),
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
