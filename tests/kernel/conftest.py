"""A system per test."""

from __future__ import annotations

import pytest

from tests.kernel.system import System
from wasmsand.kernel.process.process import Process


@pytest.fixture
def system() -> System:
    return System()


@pytest.fixture
def process(system: System) -> Process:
    """A process that the host started."""
    return system.command()
