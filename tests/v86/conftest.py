"""A v86 machine for all tests of a module that leave it usable, or one for a single test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand import Sandbox

SECONDS = 240
"""A busy machine takes long to emulate another one."""


@pytest.fixture(scope="module")
def machine() -> Iterator[Sandbox]:
    """One machine for all tests of the module."""
    with Sandbox(mode="v86", timeout_ms=SECONDS * 1000) as sandbox:
        yield sandbox
