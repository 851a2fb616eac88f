"""What the differential tests share: the native programs, and a place for both sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.native import let_native_programs_be_interrupted
from tests.differential.native_side import native_directory
from tests.differential.reference import needed_recipes, reference_tree


@pytest.fixture(scope="session", autouse=True)
def usual_signals() -> None:
    """A test run under nohup or in the background must not change what native programs do."""
    let_native_programs_be_interrupted()


@pytest.fixture(scope="session")
def tree() -> Path:
    """The native programs that all cases together need."""
    return reference_tree(needed_recipes())


@pytest.fixture
def directory() -> Iterator[Path]:
    """An empty directory of the ordinary user; the sandbox's script runs at the same path."""
    with native_directory() as made:
        yield made
