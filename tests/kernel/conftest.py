"""A computer per test."""

from __future__ import annotations

import pytest

from tests.kernel.computer import Computer
from wasmsand.kernel.process.process import Process


@pytest.fixture
def computer() -> Computer:
    return Computer()


@pytest.fixture
def process(computer: Computer) -> Process:
    """A process that the host started."""
    return computer.command()
