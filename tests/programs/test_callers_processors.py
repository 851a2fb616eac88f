"""The processors of the host's threads that call guests, which are pinned while they wake up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from wasmsand import Sandbox
from wasmsand.engine.compiled import COMPILED
from wasmsand.engine.placement import CallerPlace

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two processors",
)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def places_of(*sessions: Any) -> list[CallerPlace]:
    """Where the callers of these sessions wait."""
    return [session._conversation.process.streamed._callers for session in sessions]


def test_a_caller_keeps_its_processors(sandbox: Sandbox) -> None:
    before = os.sched_getaffinity(0)
    with sandbox.shell() as shell, sandbox.python() as python:
        for _ in range(20):  # now this thread counts as the only one that calls sessions
            shell.run(":")
        places = places_of(shell, python)
        for _ in range(30):
            for place in places:
                place._left = 1  # as if Linux had moved the caller before
            assert shell.run("echo hi").stdout == "hi\n"
            assert os.sched_getaffinity(0) == before
            assert python.run("1").value == 1
            assert os.sched_getaffinity(0) == before
            is_used = [place._left != 1 for place in places]
            assert is_used == [COMPILED is not None] * 2


def test_a_caller_that_gives_up_keeps_its_processors(sandbox: Sandbox) -> None:
    before = os.sched_getaffinity(0)
    with sandbox.shell() as shell:
        for milliseconds in range(1, 10):
            for place in places_of(shell):
                place._left = 1
            shell.run(f"sleep 0.00{milliseconds}", timeout_ms=milliseconds)
            assert os.sched_getaffinity(0) == before
