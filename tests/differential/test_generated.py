"""Generated scripts do the same here as natively; `generator.py` describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.comparison import differences
from tests.differential.generator import script
from tests.differential.native_side import run_natively
from tests.differential.sandbox_side import run_sandboxed

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_acts_as_natively(seed: int, tree: Path, directory: Path) -> None:
    text = script(seed)
    native = run_natively(text, directory, tree)
    sandboxed = run_sandboxed(text, str(directory))
    found = differences(native, sandboxed)
    assert not found, "\n".join([text, *found])
