"""Verdicts from the output of scripts of git's suite, and the comparison of their cases."""

from __future__ import annotations

import pytest

from conformance.git_suite import judge
from conformance.report import Counts
from conformance.suite import Comparison, Outcome, Verdict

pytestmark = pytest.mark.no_userland

PASS, FAIL, SKIP = Verdict.PASS, Verdict.FAIL, Verdict.SKIP

TAP = """\
ok 1 - setup
not ok 2 - it works
#
#	git it &&
#	test_cmp a b
#
ok 3 # skip needs it (missing PERL)
not ok 4 - never did # TODO known breakage
# failed 1 among 4 test(s)
1..4
"""
LOG = """\
expecting success of 0.1 'setup': git init
ok 1 - setup
expecting success of 0.2 'it works': git it
it: not a git command
not ok 2 - it works
ok 3 # skip needs it (missing PERL)
"""


def test_each_case_has_its_verdict() -> None:
    cases = {"1 - setup": PASS, "2 - it works": FAIL, "3 - needs it": SKIP, "4 - never did": PASS}
    outcome = judge(TAP, LOG, 1.0)
    assert (outcome.verdict, outcome.cases) == (FAIL, cases)


def test_the_output_of_a_failed_case_is_kept() -> None:
    printed = "expecting success of 0.2 'it works': git it\nit: not a git command\n"
    assert judge(TAP, LOG, 1.0).detail == f"{printed}not ok 2 - it works\n"


def test_a_script_without_failures_passes() -> None:
    assert judge("ok 1 - a\nok 2 - b\n1..2\n", "", 1.0).verdict is PASS


def test_a_script_that_ends_early_fails() -> None:
    outcome = judge("ok 1 - a\nFATAL: no more\n", "", 1.0)
    assert (outcome.verdict, outcome.cases) == (FAIL, {"1 - a": PASS})
    assert "ended early" in outcome.detail
    assert "FATAL: no more" in outcome.detail


def test_a_script_may_skip_itself() -> None:
    outcome = judge("1..0 # SKIP no web server\n", "", 1.0)
    assert (outcome.verdict, outcome.detail) == (SKIP, "no web server\n")


def test_cases_that_are_missing_in_the_sandbox_count_as_failed() -> None:
    native = Outcome(PASS, "", 1.0, cases={"1": PASS, "2": PASS, "3": SKIP})
    sandbox = Outcome(FAIL, "", 1.0, cases={"1": PASS})
    comparison = Comparison("t0", native, sandbox)
    assert list(comparison.verdicts()) == [(PASS, PASS), (PASS, FAIL), (SKIP, FAIL)]
    assert not comparison.as_native
    assert Counts.of([comparison]) == Counts(3, 2, 1, 1, 1, 1)


def test_scripts_that_fail_in_different_cases_differ() -> None:
    native = Outcome(FAIL, "", 1.0, cases={"1": PASS, "2": FAIL})
    assert not Comparison("t0", native, Outcome(FAIL, "", 1.0, cases={"1": FAIL})).as_native
    assert Comparison("t0", native, Outcome(FAIL, "", 1.0, cases={"1": PASS, "2": FAIL})).as_native
