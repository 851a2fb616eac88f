"""The list of coreutils' tests and the verdict on one."""

from __future__ import annotations

import pytest

from conformance.coreutils_suite import judge, make_list
from conformance.suite import Verdict

pytestmark = pytest.mark.no_userland

MAKEFILE = """\
all_root_tests =\t\t\\
  tests/cp/root.sh\t\t\\
  tests/rm/root.sh

# Others.
all_tests =\t\t\\
  tests/help/one.sh\t\\
  tests/misc/two.pl\t\\
  $(all_root_tests)

other = tests/not/this.sh
"""


def test_a_list_ends_where_no_backslash_follows() -> None:
    assert make_list(MAKEFILE, "all_root_tests") == ["tests/cp/root.sh", "tests/rm/root.sh"]


def test_a_list_inside_a_list_is_left_out() -> None:
    assert make_list(MAKEFILE, "all_tests") == ["tests/help/one.sh", "tests/misc/two.pl"]


def test_a_list_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not set other_tests"):
        make_list(MAKEFILE, "other_tests")


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(0, Verdict.PASS), (77, Verdict.SKIP), (1, Verdict.FAIL), (99, Verdict.FAIL)],
)
def test_the_exit_status_is_the_verdict(status: int, verdict: Verdict) -> None:
    assert judge(status, b"", 1.0, timed_out=False).verdict is verdict


def test_a_skipped_test_says_why() -> None:
    log = b"+ set -x\nx.sh: skipped test: no strace program\n+ exit 77\n"
    assert judge(77, log, 1.0, timed_out=False).detail == "x.sh: skipped test: no strace program\n"


def test_a_failed_test_keeps_the_end_of_its_log() -> None:
    outcome = judge(1, b"x" * 100_000 + b"\nlast words", 1.0, timed_out=False)
    assert outcome.detail.startswith("exit status 1\n")
    assert outcome.detail.endswith("last words")


def test_a_test_that_takes_too_long_fails_whatever_its_status() -> None:
    outcome = judge(0, b"", 60.0, timed_out=True)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.detail.startswith("timed out")
