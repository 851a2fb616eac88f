"""A sandbox for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand import Sandbox


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox
