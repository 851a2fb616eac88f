"""A plugin of pytest that writes the verdict on each test to a file, in the sandbox and natively.

    python -m pytest -p package_report ...

The file is named by PACKAGE_REPORT. Each line is a verdict (pass, fail, skip) and a test's name
without the path of its file. A line is written when a test has ended, so that the verdicts before
a crash remain; lines are added to those of earlier runs. Nothing here may need more than pytest
itself.

Tests of numpy, scipy and scikit-learn skip themselves on a machine called wasm32, because Python in
a browser has no threads, no processes and no floating-point errors. The sandbox has them, so the
tests are told another name of the machine.
"""

from __future__ import annotations

import os
import platform
from typing import Any

_RANKS = {"pass": 0, "skip": 1, "fail": 2}
if platform.machine() == "wasm32":
    platform.machine = lambda: "wasm"
_unfinished: dict[str, str] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the worst verdict on set-up, call and tear-down."""
    name = report.nodeid.rpartition(".py::")[2]
    verdict = {"passed": "pass", "skipped": "skip"}.get(report.outcome, "fail")
    known = _unfinished.pop(name, "pass")
    worst = max(known, verdict, key=_RANKS.__getitem__)
    if report.when == "teardown":
        _write(worst, name)
    else:
        _unfinished[name] = worst


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported is one failed test, one that skips itself is skipped."""
    if report.outcome != "passed":
        _write("skip" if report.outcome == "skipped" else "fail", "the whole file")


def _write(verdict: str, name: str) -> None:
    with open(os.environ["PACKAGE_REPORT"], "a", encoding="utf-8") as out:
        print(verdict, name.encode("unicode_escape").decode(), file=out)
