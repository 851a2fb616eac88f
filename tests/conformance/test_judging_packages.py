"""Verdicts on files of packages' tests, and which cases explanations name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.area import Ended
from conformance.explanations import Explanation, matches, needless, unexplained
from conformance.package_suite import judge_file, read_verdicts
from conformance.report import section
from conformance.suite import Comparison, Outcome, Suite, Verdict

pytestmark = pytest.mark.no_userland

PASS, FAIL, SKIP = Verdict.PASS, Verdict.FAIL, Verdict.SKIP
CONFTEST = """
import pytest

@pytest.fixture
def from_above(): return "above"
"""
TESTS = """
import pytest
from pathlib import Path

def test_passes(from_above): assert from_above == "above"

@pytest.mark.parametrize("word", ["a b", "[c]"])
def test_fails(word): assert word == "a b"

def test_fails_at_first():
    before = Path("seen").exists()
    Path("seen").touch()
    assert before

@pytest.mark.skip(reason="not here")
def test_skipped(): pass

@pytest.mark.slow
def test_slow(): raise RuntimeError

@pytest.fixture
def broken():
    yield
    raise RuntimeError

def test_whose_end_fails(broken): pass
"""


def run_driver(repository: Path, folder: Path, text: str) -> tuple[int, str, dict[str, Verdict]]:
    """The exit status, the log and the verdicts of a file of tests, by the native Python."""
    (folder / "conftest.py").write_text(CONFTEST)
    file = folder / "package/tests/test_it.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    results = folder / "results"
    results.mkdir()
    driver = repository / "conformance/package_driver.sh"
    log = results / "log"
    ended = subprocess.run(
        [
            "sh",
            driver,
            log,
            folder,
            sys.executable,
            folder,
            file.relative_to(folder),
            "-m",
            "not slow",
        ],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(driver.parent)},
        check=False,
    )
    verdicts = read_verdicts((results / "verdicts").read_bytes())
    return ended.returncode, log.read_text(), verdicts


def test_each_test_function_with_its_parameters_is_a_case(repository: Path, tmp_path: Path) -> None:
    status, log, verdicts = run_driver(repository, tmp_path, TESTS)
    assert status == 1
    assert verdicts == {
        "test_passes": PASS,
        "test_fails[a b]": PASS,
        "test_fails[[c]]": FAIL,
        "test_fails_at_first": PASS,
        "test_skipped": SKIP,
        "test_whose_end_fails": FAIL,
    }
    assert "not here" in log


def test_a_file_that_cannot_be_imported_is_one_failed_case(
    repository: Path, tmp_path: Path
) -> None:
    status, _, verdicts = run_driver(repository, tmp_path, "import no_such_module")
    assert (status, verdicts) == (2, {"the whole file": FAIL})


def test_verdicts_before_a_crash_remain(repository: Path, tmp_path: Path) -> None:
    crash = "import os\ndef test_a(): pass\ndef test_b(): os._exit(9)\n"
    status, _, verdicts = run_driver(repository, tmp_path, crash)
    assert (status, verdicts) == (9, {"test_a": PASS})


@pytest.mark.parametrize(
    ("status", "cases", "verdict", "tries"),
    [
        (0, {"a": PASS, "b": SKIP}, PASS, 1),
        (0, {"a": SKIP}, SKIP, 1),
        (5, {}, SKIP, 1),
        (1, {"a": PASS, "b": FAIL}, FAIL, 2),
        (2, {"the whole file": FAIL}, FAIL, 1),
    ],
)
def test_the_verdict_on_a_file_follows_pytest(
    status: int, cases: dict[str, Verdict], verdict: Verdict, tries: int
) -> None:
    outcome = judge_file(Ended(status, False, 1.0), b"SKIPPED [1] x.py:3: why\n", cases)
    assert (outcome.verdict, outcome.tries, outcome.cases) == (verdict, tries, cases)
    assert "why" in outcome.detail


def test_a_pattern_names_cases_of_a_file() -> None:
    assert matches("a/test_x.py::T::test_y[*]", "a/test_x.py", "T::test_y[1-[z]]")
    assert not matches("a/test_x.py::T::test_y[*]", "a/test_x.py", "T::test_yy")
    assert matches("a/*::*[int32*", "a/test_x.py", "test_z[int32-2]")


def _comparison(**cases: tuple[Verdict, Verdict]) -> Comparison:
    native = {name: pair[0] for name, pair in cases.items()}
    sandbox = {name: pair[1] for name, pair in cases.items()}
    return Comparison("t.py", Outcome(PASS, "", 1, 1, native), Outcome(FAIL, "", 1, 1, sandbox))


def test_an_explanation_by_pattern_leaves_other_cases_unexplained() -> None:
    comparison = _comparison(a_32=(PASS, FAIL), b=(PASS, FAIL), c=(PASS, PASS))
    entry = Explanation((), "why", "L090", ("t.py::*_32",))
    assert unexplained(comparison, [entry]) == ["b"]


def test_absent_cases_are_explained_only_if_the_file_ran_to_its_end() -> None:
    entry = Explanation((), "why", "L090", ("*::*",), absent=True)
    native = Outcome(PASS, "", 1, 1, {"a": PASS, "b": PASS, "c": PASS})
    ended = Outcome(FAIL, "", 1, 2, {"a": PASS, "b": FAIL})
    assert unexplained(Comparison("t.py", native, ended), [entry]) == ["b"]
    crashed = Outcome(FAIL, "", 1, 1, {"a": PASS})
    assert unexplained(Comparison("t.py", native, crashed), [entry]) == ["b", "c"]


def test_a_pattern_that_no_differing_case_needs_is_reported() -> None:
    comparison = _comparison(a=(PASS, FAIL), b=(PASS, PASS))
    entry = Explanation((), "why", None, ("t.py::a", "t.py::b", "other.py::*"))
    assert needless([comparison], [entry]) == ["t.py::b"]


def test_the_share_without_32_bit_cases_is_shown() -> None:
    class Named:
        name, title, patience = "x", "X 1", 1.0

    suite: Suite = Named()  # type: ignore[assignment]  # the report uses the names alone
    comparison = _comparison(a_32=(PASS, FAIL), b=(PASS, FAIL), c=(PASS, PASS), d=(FAIL, FAIL))
    entries = [Explanation((), "why", "L090", ("*::*_32",)), Explanation(("t.py",), "so", None)]
    text = section(suite, [comparison], entries)
    assert "Of 3 tests that pass natively, 1 pass in the sandbox (**33.3%**)" in text
    assert "Apart from 1 cases that differ because programs are 32-bit" in text
    assert "1 of 2 pass (**50.00%**)" in text
    assert "| t.py (1) | L090 | why |" in text
