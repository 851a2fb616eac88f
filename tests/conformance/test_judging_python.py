"""Verdicts on modules of CPython's test suite."""

from __future__ import annotations

import pytest

from conformance.python_suite import judge_module
from conformance.suite import Verdict

_SKIPPED = b"""\
0:00:00 [1/1] test_winreg
test_winreg skipped -- No module named 'winreg'

== Tests result: SUCCESS ==

1 test skipped:
    test_winreg

Result: SUCCESS
"""
_PARTLY = b"0:00:01 [1/1] test_os passed\n\n== Tests result: SUCCESS ==\n\n1 test OK.\n"
_PART_OF_A_PACKAGE_SKIPPED = b"""\
test_capi.test_x skipped -- requires test modules
3 tests OK.

1 test skipped:
    test_capi.test_x

Result: SUCCESS
"""
_NOTHING_BUT_SKIPPED = b"1 test OK.\n\nTotal tests: run=0 skipped=1\nResult: SUCCESS\n"
_FAILED = b"FAIL: test_x (test.test_os.T.test_x)\n\n1 test failed:\n    test_os\n"


@pytest.mark.parametrize(
    ("exit_code", "log", "verdict"),
    [
        (0, _SKIPPED, Verdict.SKIP),
        (0, _PARTLY, Verdict.PASS),
        (0, _NOTHING_BUT_SKIPPED, Verdict.SKIP),
        (0, _PART_OF_A_PACKAGE_SKIPPED, Verdict.PASS),
        (2, _FAILED, Verdict.FAIL),
        (3, _PARTLY, Verdict.FAIL),
        (4, b"Result: NO TESTS RAN", Verdict.SKIP),
        (139, b"", Verdict.FAIL),
    ],
)
def test_the_verdict_on_a_module_follows_regrtest(
    exit_code: int, log: bytes, verdict: Verdict
) -> None:
    assert judge_module(exit_code, log, 1.0, timed_out=False).verdict is verdict


def test_a_module_that_takes_too_long_fails() -> None:
    outcome = judge_module(124, _PARTLY, 900.0, timed_out=True)
    assert (outcome.verdict, outcome.detail.splitlines()[0]) == (
        Verdict.FAIL,
        "timed out after 900 s",
    )
