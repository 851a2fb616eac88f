"""The README's Python code runs as printed, in order, and its claims are true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import python_blocks, run_document


def test_readme_code_runs_and_its_values_are_true(repository: Path) -> None:
    assert run_document(repository / "README.md") > 10


@pytest.mark.no_userland
def test_readme_shows_the_whole_api_in_thirty_lines_of_code(repository: Path) -> None:
    tour = python_blocks((repository / "README.md").read_text(encoding="utf-8"))[1]
    assert len([line for line in tour.splitlines() if line.strip()]) <= 30
