"""A sandbox for each test, through each interface (see `backends`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sdk.backends import INTERFACES, MakeSandbox
from wasmsand import Sandbox


@pytest.fixture(params=list(INTERFACES))
def make_sandbox(request: pytest.FixtureRequest) -> Iterator[MakeSandbox]:
    """Makes sandboxes with options; they are killed after the test."""
    way: str = request.param
    kind = "http" if way == "fleet" else way  # a host of a fleet is a server
    for mark in request.node.iter_markers("not_by"):
        if mark.args == (kind,):
            request.applymarker(pytest.mark.xfail(reason=mark.kwargs["reason"], strict=True))
    made: list[Sandbox] = []

    def make(**options: Any) -> Sandbox:
        sandbox = INTERFACES[way](**options)
        made.append(sandbox)
        return sandbox

    yield make
    for sandbox in made:
        sandbox.kill()


@pytest.fixture
def sandbox(make_sandbox: MakeSandbox) -> Sandbox:
    return make_sandbox()
