"""The report of tests that pass only at a second try."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLAKY = """
from pathlib import Path

def test_steady():
    pass

def test_passes_the_second_time():
    before = Path("tried").exists()
    Path("tried").touch()
    assert before, "the first try"

def test_never_passes():
    assert False
"""


def run(folder: Path, repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.second_try", *words]
    environment = {"PYTHONPATH": str(repository), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_test_that_passes_only_at_the_second_try_is_reported(
    tmp_path: Path, repository: Path, parallel: tuple[str, ...]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(FLAKY)
    report = tmp_path / "build" / "flaky-tests.md"

    assert run(tmp_path, repository, *parallel).returncode == 1
    assert report.read_text() == "No test needed a second try.\n"

    again = run(tmp_path, repository, "--second-try", "--last-failed")
    assert again.returncode == 1
    assert "FLAKY test_it.py::test_passes_the_second_time" in again.stdout
    assert "the first try" in report.read_text()
    assert "test_never_passes" not in report.read_text()
    assert "test_steady" not in report.read_text()
