"""What the differential tests share: the native programs, and a place for both sides."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.native_side import native_directory
from tests.differential.reference import needed_recipes, reference_tree


@pytest.fixture(scope="session", autouse=True)
def usual_signals() -> None:
    """Of tests under nohup or in the background: what they ignore, native programs would too.

    A handler that does nothing ignores as well, and is not inherited.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session")
def tree() -> Path:
    """The native programs that all cases together need."""
    return reference_tree(needed_recipes())


@pytest.fixture
def directory() -> Iterator[Path]:
    """Empty, the ordinary user's; its path is also where the sandbox's script runs."""
    with native_directory() as made:
        yield made
