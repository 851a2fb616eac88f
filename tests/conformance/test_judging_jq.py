"""Verdicts from what jq prints about its programs."""

from __future__ import annotations

import pytest

from conformance.jq_suite import judge_programs
from conformance.suite import Verdict

pytestmark = pytest.mark.no_userland


def test_a_program_passes_if_jq_does_not_object() -> None:
    printed = (
        b"Test #1: '.a' at line number 3\n"
        b"Test #2: '.b' at line number 7\n"
        b"*** Expected 1, but got 2 for test at line number 9: .b\n"
        b"Test #3: '[.[]|tojson|fromjson]' at line number 12\n"
        b"2 of 3 tests passed (0 malformed, 0 skipped)\n"
    )
    outcome = judge_programs(printed, 1.0)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.cases == {"3": Verdict.PASS, "7": Verdict.FAIL, "12": Verdict.PASS}
    assert outcome.detail == ("line 7: *** Expected 1, but got 2 for test at line number 9: .b\n")


def test_a_file_passes_if_all_its_programs_do() -> None:
    printed = b"Test #1: '.' at line number 1\n1 of 1 tests passed (0 malformed, 0 skipped)\n"
    outcome = judge_programs(printed, 1.0)
    assert (outcome.verdict, outcome.detail) == (Verdict.PASS, "")


def test_the_program_at_which_jq_ended_counts_as_failed() -> None:
    printed = b"Test #1: '.' at line number 1\nTest #2: '.a' at line number 5\n"
    outcome = judge_programs(printed, 1.0)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.cases == {"1": Verdict.PASS, "5": Verdict.FAIL}
    assert outcome.detail == "line 5: jq ended here\n"


def test_nothing_printed_is_a_failure() -> None:
    assert judge_programs(b"", 1.0).verdict is Verdict.FAIL
