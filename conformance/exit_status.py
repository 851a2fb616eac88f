"""The verdict on a test by its exit status, by automake's rules.

0: passed; 77: skipped; 99: could not be set up; anything else: failed. For a test that the
suite expects to fail, "passed" and "failed" change places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.area import Area, Ended, ordinary_environment
from conformance.suite import Outcome, Verdict

LOG = "log"
"""The file in an area's results to which a test's command writes what it prints."""

_LOG_TAIL = 15_000
"""Characters kept of a failed test's log: the end says most about the failure."""
_SKIPPED = 77
_SETUP_FAILED = 99


def run_logged(
    area: Area,
    command: Sequence[str],
    *,
    cwd: str,
    timeout: float,
    variables: Mapping[str, str] | None = None,
) -> tuple[Ended, bytes]:
    """Run a command that writes to `LOG`, as an ordinary user; returns its end and its log."""
    env = {**ordinary_environment(area, cwd=cwd), **(variables or {})}
    ended = area.run(command, cwd=cwd, env=env, timeout=timeout)
    return ended, area.kept().get(LOG, b"")


def run_and_judge(
    area: Area,
    command: Sequence[str],
    *,
    cwd: str,
    timeout: float,
    variables: Mapping[str, str] | None = None,
) -> Outcome:
    """Run a command that writes to `LOG`, and judge it by its exit status."""
    ended, log = run_logged(area, command, cwd=cwd, timeout=timeout, variables=variables)
    return judge(ended.exit_code, log, ended.seconds, timed_out=ended.timed_out)


def judge(
    exit_code: int,
    printed: bytes,
    seconds: float,
    *,
    timed_out: bool = False,
    expected_to_fail: bool = False,
) -> Outcome:
    """The verdict by automake's rules."""
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
    """Why the test skipped itself, in its own words."""
    lines = [line for line in log.splitlines() if "skipped test:" in line]
    return lines[-1] + "\n" if lines else log
