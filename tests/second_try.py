"""A pytest plugin that reports flaky tests: those that passed only at a second try.

`make test` loads it. The first run stores each failure; the second run repeats the failed tests,
one at a time, and writes `build/flaky-tests.md`: every test that then passed, with its first
failure. A test in that report has a race or a bound that is too tight, and must be fixed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPORT = Path("build", "flaky-tests.md")
_FAILURES = Path("build", "test-failures.json")
_NONE = "No test needed a second try.\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-try", action="store_true", help="these tests have failed before")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker of xdist: only the main process reports
        config.pluginmanager.register(SecondTry(config), "second-try")


class SecondTry:
    """Collects the failures of one run, and compares them with those of the previous run."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._again = bool(config.getoption("second_try"))
        self._failures: dict[str, str] = {}
        self._seen: set[str] = set()
        self._flaky: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seen.add(report.nodeid)
        if report.failed:
            self._failures[report.nodeid] = report.longreprtext

    def pytest_sessionfinish(self) -> None:
        store = self._root / _FAILURES
        store.parent.mkdir(exist_ok=True)
        if self._again:
            before: dict[str, str] = json.loads(store.read_text()) if store.exists() else {}
            passed = self._seen - self._failures.keys()
            self._flaky = {name: text for name, text in before.items() if name in passed}
        else:
            store.write_text(json.dumps(self._failures))
        (self._root / REPORT).write_text(_report(self._flaky))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._flaky:
            terminalreporter.section(f"{len(self._flaky)} flaky (see {REPORT})")
            for name in self._flaky:
                terminalreporter.line(f"FLAKY {name}")


def _report(flaky: dict[str, str]) -> str:
    """The report's text."""
    lines = ["# Tests that passed only at the second try", ""]
    for name, text in sorted(flaky.items()):
        lines += [f"## {name}", "", "```text", text, "```", ""]
    return "\n".join(lines) if flaky else _NONE
