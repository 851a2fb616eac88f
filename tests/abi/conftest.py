"""A sandbox per test; the marker by which a test says which system calls it covers.

`@pytest.mark.syscalls("read", "write")` is a promise: it is checked that the test really
makes these calls, and `test_coverage.py` checks that every call of the table is promised
by some test.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.abi import caller as callers
from tests.abi.caller import Caller, Sandbox


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "syscalls(*names): the system calls this test covers")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    box = Sandbox()
    yield box
    with box.lock:
        box.kernel.kill_all()


@pytest.fixture
def caller(sandbox: Sandbox) -> Caller:
    """A process of the user's."""
    return sandbox.process()


@pytest.fixture
def root(sandbox: Sandbox) -> Caller:
    """A process of root's."""
    return sandbox.process(uid=0)


@pytest.fixture(autouse=True)
def _promised_calls_are_made(request: pytest.FixtureRequest) -> Iterator[None]:
    promised = {name for mark in request.node.iter_markers("syscalls") for name in mark.args}
    callers.calls_made.clear()
    yield
    missing = promised - callers.calls_made
    assert not missing, f"covers {sorted(missing)} but never calls them"
