"""Threads and queues per tenant and per sandbox."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from wasmsand.serving.daemons import Daemons
from wasmsand.serving.lanes import Lane, LaneFull, LaneLimits

pytestmark = pytest.mark.no_userland


def lane(
    *,
    threads: int = 8,
    tenant: int = 8,
    waiting: int = 8,
    sandbox: int = 8,
    sandbox_waiting: int = 8,
    tenants: int = 1,
    queue_seconds: float = 20,
) -> Lane:
    limits = LaneLimits(threads, tenant, waiting, sandbox, sandbox_waiting, queue_seconds)
    return Lane("test", limits, tenants, Daemons("test"))


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


async def hang(where: Lane, gate: threading.Event, *names: str) -> list[asyncio.Task[bool]]:
    """Make calls that wait for the gate; each name is tenant and sandbox ("a/1")."""
    tasks = []
    for name in names:
        tenant, _, sandbox = name.partition("/")
        tasks.append(asyncio.create_task(where.run(tenant, sandbox, gate.wait)))
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)
    return tasks


def test_a_call_returns_its_value_and_raises_its_error() -> None:
    async def main() -> None:
        used = lane()
        assert await used.run("a", "1", lambda: threading.current_thread().daemon) is True
        for raised in (ZeroDivisionError, TimeoutError, KeyError):
            with pytest.raises(raised):
                await used.run("a", "1", partial(throw, raised))
        assert used.taken == 0

    run(main)


def throw(kind: type[Exception]) -> None:
    raise kind


def test_a_call_beyond_the_limit_is_refused_until_one_has_ended() -> None:
    async def main() -> None:
        used, gate = lane(threads=1, waiting=1), threading.Event()
        tasks = await hang(used, gate, "a/1", "a/1")
        with pytest.raises(LaneFull) as caught:
            await used.run("a", "1", gate.wait)
        assert caught.value.cause == "tenant"
        gate.set()
        assert all(await asyncio.gather(*tasks))
        assert await used.run("a", "1", gate.wait)

    run(main)


def test_a_call_that_waits_too_long_for_a_thread_is_refused() -> None:
    async def main() -> None:
        used, gate = lane(threads=1, queue_seconds=0.1), threading.Event()
        (running,) = await hang(used, gate, "a/1")
        with pytest.raises(LaneFull):
            await used.run("a", "1", gate.wait)
        assert used.taken == 1
        gate.set()
        assert await running  # it took longer, but had a thread

    run(main)


def test_a_call_that_nobody_waits_for_keeps_its_place_until_it_ends() -> None:
    async def main() -> None:
        used, gate, ended = lane(threads=1, waiting=0), threading.Event(), asyncio.Event()
        running = asyncio.create_task(used.run("a", "1", gate.wait, ended.set))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert used.taken == 1
        assert not ended.is_set()
        gate.set()
        await ended.wait()
        assert used.taken == 0

    run(main)


def test_the_cleanup_of_a_call_runs_once_even_if_the_call_never_began() -> None:
    async def main() -> None:
        used, gate = lane(threads=1, waiting=1), threading.Event()
        ended: list[str] = []
        (running,) = await hang(used, gate, "a/1")
        waiting = asyncio.create_task(used.run("a", "1", gate.wait, lambda: ended.append("w")))
        await asyncio.sleep(0)
        with pytest.raises(LaneFull):
            await used.run("a", "1", gate.wait, lambda: ended.append("r"))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.set()
        await running
        assert ended == ["r", "w"]
        assert used.taken == 0

    run(main)


def test_a_tenant_whose_calls_all_hang_takes_nothing_from_others() -> None:
    async def main() -> None:
        used, gate = lane(threads=8, tenants=4, waiting=4), threading.Event()
        hanging = await hang(used, gate, *["bad/1", "bad/2", "bad/3"] * 3)
        with pytest.raises(LaneFull):  # five run, four wait
            await used.run("bad", "4", gate.wait)
        for tenant in ("one", "two", "three"):
            assert await used.run(tenant, "1", lambda: 5) == 5
        gate.set()
        await asyncio.gather(*hanging, return_exceptions=True)

    run(main)


def test_hanging_tenants_leave_every_other_tenant_its_share() -> None:
    async def main() -> None:
        used, gate = lane(threads=8, tenants=4, waiting=20), threading.Event()
        hanging = await hang(used, gate, *["bad/1", "worse/1", "worst/1"] * 6)
        assert await used.run("good", "1", lambda: 5) == 5
        gate.set()
        await asyncio.gather(*hanging)

    run(main)


def test_a_sandbox_that_hangs_leaves_threads_to_its_tenants_other_sandboxes() -> None:
    async def main() -> None:
        used, gate = lane(threads=4, sandbox=2, sandbox_waiting=2), threading.Event()
        hanging = await hang(used, gate, *["a/1"] * 4)
        with pytest.raises(LaneFull) as caught:
            await used.run("a", "1", gate.wait)
        assert caught.value.cause == "sandbox"
        assert await used.run("a", "2", lambda: 5) == 5
        gate.set()
        await asyncio.gather(*hanging)

    run(main)


def test_waiting_calls_take_turns() -> None:
    async def main() -> None:
        used, gate = lane(threads=1), threading.Event()
        order: list[str] = []
        hanging = await hang(used, gate, "a/0")
        calls = []
        for name in ("a/1", "a/1", "a/1", "a/2", "a/2"):
            sandbox = name[-1]
            calls.append(used.run("a", sandbox, partial(order.append, name)))
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.gather(*hanging, *tasks)
        assert order == ["a/1", "a/2", "a/1", "a/2", "a/1"]

    run(main)


def test_a_closed_lane_refuses_waiting_calls() -> None:
    async def main() -> None:
        used, gate = lane(threads=1), threading.Event()
        running, waiting = await hang(used, gate, "a/1", "a/1")
        used.close()
        with pytest.raises(LaneFull):
            await waiting
        with pytest.raises(LaneFull):
            await used.run("a", "1", gate.wait)
        gate.set()
        assert await running

    run(main)
