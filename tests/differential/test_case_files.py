"""Case files are read as case_files.py says, and mistakes in them are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.case_files import BadCaseFile, load_cases, read_cases

pytestmark = pytest.mark.no_userland


def _file(folder: Path, text: str) -> Path:
    path = folder / "subject.sh"
    path.write_text(text, encoding="utf-8")
    return path


def test_set_up_runs_before_each_case(tmp_path: Path) -> None:
    path = _file(tmp_path, "# About.\n#| needs: grep\nx=1\n\n#: one\necho 1\n\n#: two\necho 2\n")
    one, two = read_cases(path)
    assert (one.subject, one.name) == ("subject", "one")
    assert one.needs == {"grep"}
    assert one.script == "# About.\nx=1\n\necho 1\n\n"
    assert two.script == "# About.\nx=1\n\necho 2\n"


def test_attributes_of_a_case_add_to_those_of_the_file(tmp_path: Path) -> None:
    text = "#| needs: grep\n#| ignore: files\n#: one\n#| needs: sed\n#| xfail: L008 order\ntrue\n"
    (case,) = read_cases(_file(tmp_path, text))
    assert case.needs == {"grep", "sed"}
    assert case.ignore == {"files"}
    assert case.xfail == "L008 order"


@pytest.mark.parametrize(
    "text",
    ["#: one\n#| need: sed\n", "#: one\n#| ignore: exit\n", "#: one\n#: one\n"],
    ids=["unknown attribute", "unknown aspect", "same name twice"],
)
def test_mistakes_are_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadCaseFile):
        read_cases(_file(tmp_path, text))


def test_there_are_cases() -> None:
    assert len(load_cases()) >= 320
