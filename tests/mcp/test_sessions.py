"""A sandbox lives as long as its session."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

from wasmsand import Sandbox, SandboxClosedError
from wasmsand.mcp.sessions import Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Sessions, Clock]:
    clock = Clock()
    return Sessions(Sandbox, output_limit=1000, clock=clock), clock


def is_alive(sandbox: Sandbox) -> bool:
    try:
        sandbox.files.list()
    except SandboxClosedError:
        return False
    return True


def test_a_sandbox_is_made_at_first_use_and_kept() -> None:
    sessions, _ = make()
    assert len(sessions) == 0
    first = sessions.get("a")
    assert sessions.get("a") is first
    assert sessions.get("b") is not first
    sessions.end_all()
    assert len(sessions) == 0
    assert not is_alive(first.sandbox)


def test_an_idle_session_ends_and_others_stay() -> None:
    sessions, clock = make()
    for name in ("idle", "used"):
        with sessions.request(name):
            sessions.get(name)
    idle, used = sessions.get("idle").sandbox, sessions.get("used").sandbox
    clock.now = 8
    with sessions.request("used"):
        pass
    clock.now = 10
    sessions.end_idle(10)
    assert (is_alive(idle), is_alive(used)) == (False, True)
    sessions.end_all()


def test_a_request_under_way_is_use() -> None:
    sessions, clock = make()
    with sessions.request("a"):
        sandbox = sessions.get("a").sandbox
    with sessions.request("a"), sessions.request("a"):
        clock.now = 100
        sessions.end_idle(10)
        assert is_alive(sandbox)
    sessions.end_idle(10)
    assert is_alive(sandbox)
    clock.now = 110
    sessions.end_idle(10)
    assert not is_alive(sandbox)


def test_names_of_requests_that_made_no_sandbox_are_forgotten() -> None:
    sessions, _ = make()
    for number in range(10):
        with sessions.request(str(number)):
            pass
        sessions.end(str(number))
    assert sessions._under_way == {}
    assert sessions._last_used == {}
