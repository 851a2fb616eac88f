"""A sandbox per test, and the marker that names the system calls a test covers.

`@pytest.mark.syscalls("read", "write")` is a promise: a fixture checks that the test really makes
these calls, and `test_table.py` checks that some test promises every call of the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.abi import caller as callers
from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import ManualHost
from tests.abi.outside_sockets import CAPACITY


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
    """A process of the ordinary user."""
    return sandbox.process()


@pytest.fixture
def root(sandbox: Sandbox) -> Caller:
    """A process of root."""
    return sandbox.process(uid=0)


@pytest.fixture(autouse=True)
def _promised_calls_are_made(request: pytest.FixtureRequest) -> Iterator[None]:
    promised = {name for mark in request.node.iter_markers("syscalls") for name in mark.args}
    callers.calls_made.clear()
    yield
    missing = promised - callers.calls_made
    assert not missing, f"covers {sorted(missing)} but never calls them"


@pytest.fixture
def small_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to the host whose buffers fit into the memory of a caller."""
    monkeypatch.setattr("wasmsand.kernel.sockets.outside.OUTSIDE_CAPACITY", CAPACITY)


@pytest.fixture
def host(sandbox: Sandbox) -> Iterator[ManualHost]:
    """The capability of the test's sandbox. Afterwards everything must have been given back."""
    host = ManualHost()
    sandbox.kernel.network.outside = host
    yield host
    with sandbox.lock:
        sandbox.kernel.kill_all()
        for _, end in host.asked:
            end.close()
    network = sandbox.kernel.network
    assert (network.sockets, sandbox.kernel.pipes.in_use) == (0, 0)
    assert sandbox.kernel.ledger.queued == 0
    assert network.tcp._bound == {}
