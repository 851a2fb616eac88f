"""A sandbox lives as long as its session."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

from wasmsand import Sandbox, SandboxClosedError
from wasmsand.mcp.sessions import CALLS_AT_ONCE, SessionBusy, Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make(create: Callable[[], Sandbox] = Sandbox) -> tuple[Sessions, Clock]:
    clock = Clock()
    return Sessions(create, output_limit=1000, max_sessions=4, clock=clock), clock


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await test()

    asyncio.run(bounded())


async def is_alive(sessions: Sessions, sandbox: Sandbox) -> bool:
    await sessions.endings.settle(60)
    try:
        sandbox.files.list()
    except SandboxClosedError:
        return False
    return True


def test_a_sandbox_is_made_at_first_use_and_kept() -> None:
    async def test() -> None:
        sessions, _ = make()
        assert len(sessions) == 0
        first, same = await asyncio.gather(sessions.get("a"), sessions.get("a"))
        assert same is first is await sessions.get("a")
        assert await sessions.get("b") is not first
        await sessions.end_all()
        assert len(sessions) == 0
        assert not await is_alive(sessions, first.sandbox)

    run(test)


def test_an_idle_session_ends_and_others_stay() -> None:
    async def test() -> None:
        sessions, clock = make()
        for name in ("idle", "used"):
            with sessions.request(name):
                await sessions.get(name)
        idle, used = (await sessions.get("idle")).sandbox, (await sessions.get("used")).sandbox
        clock.now = 8
        with sessions.request("used"):
            pass
        clock.now = 10
        sessions.end_idle(10)
        assert not await is_alive(sessions, idle)
        assert await is_alive(sessions, used)
        await sessions.end_all()

    run(test)


def test_a_request_in_progress_counts_as_use() -> None:
    async def test() -> None:
        sessions, clock = make()
        with sessions.request("a"):
            sandbox = (await sessions.get("a")).sandbox
        with sessions.request("a"), sessions.request("a"):
            clock.now = 100
            sessions.end_idle(10)
            assert await is_alive(sessions, sandbox)
        sessions.end_idle(10)
        assert await is_alive(sessions, sandbox)
        clock.now = 110
        sessions.end_idle(10)
        assert not await is_alive(sessions, sandbox)

    run(test)


def test_names_of_requests_that_made_no_sandbox_are_forgotten() -> None:
    async def test() -> None:
        sessions, _ = make()
        for number in range(10):
            with sessions.request(str(number)):
                pass
            sessions.end(str(number))
        assert sessions._under_way == {}
        assert sessions._last_used == {}

    run(test)


def test_a_session_that_ends_while_its_sandbox_is_made_has_none() -> None:
    async def test() -> None:
        gate, made = threading.Event(), []

        def create() -> Sandbox:
            gate.wait(60)
            made.append(Sandbox())
            return made[0]

        sessions, _ = make(create)
        waiting = asyncio.create_task(sessions.get("a"))
        await asyncio.sleep(0.05)
        sessions.end("a")
        gate.set()
        with pytest.raises(SandboxClosedError):
            await waiting
        assert not await is_alive(sessions, made[0])
        assert len(sessions) == 0

    run(test)


def test_a_session_whose_calls_all_hang_does_not_hold_up_another() -> None:
    async def test() -> None:
        sessions, _ = make()
        gate = threading.Event()
        hanging = [
            asyncio.create_task(sessions.run("bad", lambda _used: gate.wait(60)))
            for _ in range(CALLS_AT_ONCE + 64)
        ]
        await sessions.get("bad")
        await asyncio.sleep(0.1)
        with pytest.raises(SessionBusy):
            await sessions.run("bad", lambda used: used.sandbox.files.list())
        assert await sessions.run("good", lambda used: used.sandbox.files.list()) == []
        gate.set()
        await asyncio.gather(*hanging)
        await sessions.end_all()

    run(test)


def test_ending_a_sandbox_whose_lock_is_held_holds_up_nobody() -> None:
    async def test() -> None:
        sessions, _ = make()
        held = await sessions.get("bad")
        held.sandbox.commands.start("sleep 1000")  # which must be ended under the lock
        lock = held.sandbox._attachment.backend._machine.lock  # type: ignore[attr-defined]
        lock.acquire()
        try:
            sessions.end("bad")
            assert len(sessions.endings) == 1
            assert await sessions.run("good", lambda used: used.sandbox.files.list()) == []
            await sessions.end_all()
            assert len(sessions.endings) == 1
        finally:
            lock.release()
        assert await sessions.endings.settle(60)

    run(test)
