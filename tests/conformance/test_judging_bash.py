"""How a run-* script of bash's suite is judged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conformance import bash_suite
from conformance.bash_suite import judge
from conformance.suite import Verdict

pytestmark = pytest.mark.no_userland

DRIVER = Path(bash_suite.__file__).with_name("bash_driver.sh")


def comparison(left: bytes, right: bytes, **more: bytes) -> dict[str, bytes]:
    kept = {"0.left": left, "0.right": right, "0.options": b"\n", "log": b""}
    return kept | {name.replace("_", "."): value for name, value in more.items()}


def drive(tmp_path: Path, script: str, right: str) -> dict[str, bytes]:
    """Run a script of our own with the driver, natively; `right` is its file `it.right`."""
    (tmp_path / "it.right").write_text(right)
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "run-it").write_text(script)
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "THIS_SH": "/bin/bash"}
    subprocess.run(
        ["bash", DRIVER, "run-it", results], cwd=tmp_path, env=environment, check=False, timeout=30
    )
    return {path.name: path.read_bytes() for path in results.iterdir()}


def test_equal_files_pass() -> None:
    assert judge(comparison(b"a\n", b"a\n"), 1.5, timed_out=False).verdict is Verdict.PASS


def test_a_difference_fails_and_is_shown() -> None:
    outcome = judge(comparison(b"a\nx\n", b"a\nb\n"), 1.5, timed_out=False)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.detail == "@@ -1,2 +1,2 @@\n a\n-b\n+x\n"


def test_every_comparison_of_a_script_counts() -> None:
    second = {"1_left": b"x\n", "1_right": b"y\n", "1_options": b"\n"}
    outcome = judge(comparison(b"a\n", b"a\n", **second), 1.5, timed_out=False)
    assert outcome.verdict is Verdict.FAIL


def test_options_of_diff_are_used() -> None:
    kept = comparison(b"a  b\n", b"a b\n", **{"0_options": b"-w\n"})
    assert judge(kept, 1.5, timed_out=False).verdict is Verdict.PASS


def test_a_filter_is_applied_to_the_output_alone() -> None:
    kept = comparison(b"expect 1\n1\n", b"1\n", **{"0_filter": b"-v\n^expect\n"})
    assert judge(kept, 1.5, timed_out=False).verdict is Verdict.PASS
    kept = comparison(b"1\n", b"expect 1\n1\n", **{"0_filter": b"-v\n^expect\n"})
    assert judge(kept, 1.5, timed_out=False).verdict is Verdict.FAIL


def test_a_script_that_compares_nothing_fails() -> None:
    outcome = judge({"log": b"bash: not found\n"}, 1.5, timed_out=False)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.detail == "nothing was compared\nbash: not found\n"


def test_a_time_out_fails_even_if_all_comparisons_are_equal() -> None:
    outcome = judge(comparison(b"a\n", b"a\n"), 120.0, timed_out=True)
    assert outcome.verdict is Verdict.FAIL


def test_the_driver_keeps_what_the_script_compares(tmp_path: Path) -> None:
    kept = drive(
        tmp_path,
        "$THIS_SH -c 'echo hello' > $BASH_TSTOUT 2>&1\n"
        "diff -w $BASH_TSTOUT it.right && rm -f $BASH_TSTOUT\n",
        right="hello\n",
    )
    assert kept["0.left"] == kept["0.right"] == b"hello\n"
    assert kept["0.options"] == b"-w\n"
    assert judge(kept, 0.1, timed_out=False).verdict is Verdict.PASS


def test_the_driver_keeps_filters_for_the_harness(tmp_path: Path) -> None:
    kept = drive(
        tmp_path,
        "$THIS_SH -c 'echo expect 1; echo 1' | grep -v '^expect' > $BASH_TSTOUT\n"
        "diff $BASH_TSTOUT it.right && rm -f $BASH_TSTOUT\n",
        right="1\n",
    )
    assert kept["0.left"] == b"expect 1\n1\n"
    assert judge(kept, 0.1, timed_out=False).verdict is Verdict.PASS


def test_probing_an_option_of_diff_is_not_a_comparison(tmp_path: Path) -> None:
    script = "( diff -a it.right it.right >/dev/null 2>&1 ) && echo AFLAG\n"
    kept = drive(tmp_path, script, right="1\n")
    assert kept["log"] == b"AFLAG\n"
    assert judge(kept, 0.1, timed_out=False).detail.startswith("nothing was compared")
