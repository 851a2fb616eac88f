"""The verdict on a test by automake's rules."""

from __future__ import annotations

import pytest

from conformance.exit_status import judge
from conformance.suite import Verdict

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(0, Verdict.PASS), (77, Verdict.SKIP), (1, Verdict.FAIL), (99, Verdict.FAIL)],
)
def test_the_exit_status_is_the_verdict(status: int, verdict: Verdict) -> None:
    assert judge(status, b"", 1.0).verdict is verdict


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(1, Verdict.PASS), (0, Verdict.FAIL), (77, Verdict.SKIP), (99, Verdict.FAIL)],
)
def test_a_test_that_is_expected_to_fail_passes_by_failing(status: int, verdict: Verdict) -> None:
    assert judge(status, b"", 1.0, expected_to_fail=True).verdict is verdict


def test_a_skipped_test_says_why() -> None:
    log = b"+ set -x\nx.sh: skipped test: no strace program\n+ exit 77\n"
    assert judge(77, log, 1.0).detail == "x.sh: skipped test: no strace program\n"


def test_a_failed_test_keeps_the_end_of_its_log() -> None:
    outcome = judge(1, b"x" * 100_000 + b"\nlast words", 1.0)
    assert outcome.detail.startswith("exit status 1\n")
    assert outcome.detail.endswith("last words")


def test_a_test_that_takes_too_long_fails_whatever_its_status() -> None:
    outcome = judge(0, b"", 60.0, timed_out=True)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.detail.startswith("timed out")
