"""The verdict on a test by its exit status, as automake has it.

0 passed, 77 skipped, 99 could not be set up, anything else failed; for a test that the suite
expects to fail, the reverse.
"""

from __future__ import annotations

from conformance.suite import Outcome, Verdict

_LOG_TAIL = 15_000
"""Characters of a failed test's log that are kept: its end tells most."""
_SKIPPED = 77
_SETUP_FAILED = 99


def judge(
    exit_code: int,
    printed: bytes,
    seconds: float,
    *,
    timed_out: bool = False,
    expected_to_fail: bool = False,
) -> Outcome:
    """The verdict as automake has it."""
    log = printed.decode("utf-8", "replace")[-_LOG_TAIL:]
    if timed_out:
        return Outcome(Verdict.FAIL, f"timed out after {seconds:.0f} s\n{log}", seconds)
    if exit_code == _SKIPPED:
        return Outcome(Verdict.SKIP, _reason(log), seconds)
    if exit_code == _SETUP_FAILED:
        return Outcome(Verdict.FAIL, f"could not be set up\n{log}", seconds)
    if (exit_code != 0) == expected_to_fail:
        return Outcome(Verdict.PASS, "", seconds)
    what = "the suite expects it to fail" if expected_to_fail else f"exit status {exit_code}"
    return Outcome(Verdict.FAIL, f"{what}\n{log}", seconds)


def _reason(log: str) -> str:
    """Why a test was skipped, as it said."""
    lines = [line for line in log.splitlines() if "skipped test:" in line]
    return lines[-1] + "\n" if lines else log
