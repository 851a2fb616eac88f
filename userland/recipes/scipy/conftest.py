"""What scipy's tests run in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Run = Callable[[str], str]


@pytest.fixture
def scipy_python(full_python: Run) -> Run:
    """Like `full_python`; skips if the interpreter was linked without scipy."""
    present = "from importlib.util import find_spec; print(find_spec('scipy') is not None)"
    if full_python(present) != "True\n":
        pytest.skip("scipy is not built: run `make packages`")
    return full_python
