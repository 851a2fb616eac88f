"""Command lines that agents write do the same here as natively, byte for byte.

The native side runs the same versions of the same programs, built from the same recipes
with the machine's own compiler. See case_files.py for how a case is written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.case_files import Case, load_cases
from tests.differential.comparison import differences
from tests.differential.native_side import run_natively
from tests.differential.sandbox_side import run_sandboxed

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=[case.identity for case in CASES])
def test_acts_as_natively(
    case: Case, tree: Path, directory: Path, request: pytest.FixtureRequest
) -> None:
    if case.xfail:
        request.applymarker(pytest.mark.xfail(strict=True, reason=case.xfail))
    native = run_natively(case.script, directory, tree)
    sandboxed = run_sandboxed(case.script, str(directory))
    found = differences(native, sandboxed, case.ignore)
    assert not found, "\n".join([case.script, *found])
