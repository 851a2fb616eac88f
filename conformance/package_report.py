"""A plugin of pytest that writes the verdict on each test to a file, in the sandbox and natively.

    python -m pytest -p package_report ...

The file is named by PACKAGE_REPORT. Each line is a verdict (pass, fail, skip) and a test's name
without the path of its file. Nothing here may need more than pytest itself.
"""

from __future__ import annotations

import os
from typing import Any

_RANKS = {"pass": 0, "skip": 1, "fail": 2}
_verdicts: dict[str, str] = {}


def pytest_runtest_logreport(report: Any) -> None:
    """Keep the worst verdict on set-up, call and tear-down."""
    name = report.nodeid.rpartition(".py::")[2]
    verdict = {"passed": "pass", "skipped": "skip"}.get(report.outcome, "fail")
    known = _verdicts.get(name, "pass")
    _verdicts[name] = max(known, verdict, key=_RANKS.__getitem__)


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be imported is one failed test, one that skips itself is skipped."""
    if report.outcome != "passed":
        _verdicts["the whole file"] = "skip" if report.outcome == "skipped" else "fail"


def pytest_sessionfinish() -> None:
    """Write what is known."""
    with open(os.environ["PACKAGE_REPORT"], "w", encoding="utf-8") as out:
        for name, verdict in _verdicts.items():
            print(verdict, name.encode("unicode_escape").decode(), file=out)
