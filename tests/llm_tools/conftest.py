"""A sandbox and its tools for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand import Sandbox
from wasmsand.tools import SandboxTools


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def tools(sandbox: Sandbox) -> SandboxTools:
    return SandboxTools(sandbox)
